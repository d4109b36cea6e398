"""DeliveredRecords: consumed and committable offsets while records are iterated, polled, committed or returned."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.consumer.assigned import AssignedPartitions
from kclient.consumer.delivered import DeliveredRecords, RecordsAhead
from kclient.positions.state import LATEST, UNKNOWN_LEADER, FetchState
from kclient.positions.table import Positions
from kclient.records.reader import PartitionReader
from kclient.records.records import Records
from kclient.records.writer import NewRecord, build_batch
from kclient.types import OffsetAndMetadata, TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def records(**counts: int) -> Records:
    """`p0=3, p1=2`: so many records of each partition, from offset 10 on, in epoch 4."""
    chunks = []
    for name, count in counts.items():
        new = [NewRecord(value=b"x") for _ in range(count)]
        data = build_batch(new, base_offset=10, partition_leader_epoch=4)
        chunks.append(PartitionReader("t", int(name[1:]), data, 10).take(1_000))
    return Records(chunks)


def read_ahead(*polls: Records) -> RecordsAhead:
    ahead = RecordsAhead()
    for each in polls:
        ahead.add(each)
    return ahead


def size_bytes(ahead: RecordsAhead) -> int:
    return sum(chunk.size_bytes for chunk in ahead.chunks())


def table(**offsets: int) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        TopicPartition("t", int(name[1:])): OffsetAndMetadata(offset, 4) for name, offset in offsets.items()
    }


BEHIND = table(p0=13, p1=12, p2=7)


def test_a_poll_returns_everything_and_releases_nothing() -> None:
    delivered = DeliveredRecords(records(p0=3, p1=2), one_by_one=False)
    assert delivered.consumed(BEHIND) == BEHIND
    assert delivered.committable(BEHIND) == table(p0=10, p1=10, p2=7)
    assert list(delivered) == []


@pytest.mark.spec("D-78")
def test_iterating_consumes_one_by_one_and_releases_the_one_before() -> None:
    delivered = DeliveredRecords(records(p0=3, p1=2), one_by_one=True)
    assert delivered.consumed(BEHIND) == delivered.committable(BEHIND) == table(p0=10, p1=10, p2=7)
    places = [(delivered.committable(BEHIND), delivered.consumed(BEHIND)) for _ in delivered]
    assert places == [
        (table(p0=10, p1=10, p2=7), table(p0=11, p1=10, p2=7)),
        (table(p0=11, p1=10, p2=7), table(p0=12, p1=10, p2=7)),
        (table(p0=12, p1=10, p2=7), table(p0=13, p1=10, p2=7)),
        (table(p0=13, p1=10, p2=7), table(p0=13, p1=11, p2=7)),
        (table(p0=13, p1=11, p2=7), table(p0=13, p1=12, p2=7)),
    ]
    assert delivered.consumed(BEHIND) == delivered.committable(BEHIND) == BEHIND


@pytest.mark.spec("D-78")
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_iterating_in_pieces_gives_the_same_records_as_at_once(
    counts: list[int], data: st.DataObject
) -> None:
    whole = {f"p{number}": count for number, count in enumerate(counts)}
    expected = [(record.partition, record.offset) for record in records(**whole)]
    delivered, seen = DeliveredRecords(records(**whole), one_by_one=True), []
    while len(seen) < len(expected):
        wanted = data.draw(st.integers(1, 5))
        for record in delivered:
            seen.append((record.partition, record.offset))
            wanted -= 1
            if not wanted:
                break
    assert seen == expected
    assert next(delivered.shared(), None) is None


def test_what_is_taken_back_comes_no_more_and_reports_where_it_continues() -> None:
    delivered = DeliveredRecords(records(p0=3, p1=2), one_by_one=True)
    assert next(delivered.shared(), None) is not None
    assert delivered.return_undelivered([A]) == {A: OffsetAndMetadata(11, 4)}
    assert delivered.consumed(table(p0=11, p1=12)) == table(p0=11, p1=10)
    assert delivered.committable(table(p0=11, p1=12)) == table(p0=10, p1=10)
    assert [record.partition for record in delivered] == [1, 1]


def test_everything_left_can_be_taken_back() -> None:
    delivered = DeliveredRecords(records(p0=3, p1=2), one_by_one=True)
    assert delivered.return_undelivered() == table(p0=10, p1=10)
    assert list(delivered) == []
    assert DeliveredRecords(records(p0=3), one_by_one=False).return_undelivered() == {}
    assert DeliveredRecords(records(p0=3), one_by_one=False).return_all() == table(p0=10)


def test_what_an_interceptor_leaves_out_does_not_come_from_an_iterator_made_before() -> None:
    delivered = DeliveredRecords(records(p0=3, p1=2), one_by_one=True)
    delivered.shared()
    delivered.replace(records(p1=2))
    assert [record.partition for record in delivered.shared()] == [1, 1]
    assert delivered.consumed(BEHIND) == delivered.committable(BEHIND) == BEHIND


def test_what_the_application_committed_itself_is_released() -> None:
    delivered = DeliveredRecords(records(p0=3, p1=2), one_by_one=False)
    delivered.mark_committed(table(p0=12))
    assert delivered.committable(BEHIND) == table(p0=12, p1=10, p2=7)
    delivered.mark_committed(BEHIND)
    assert delivered.committable(BEHIND) == BEHIND


@pytest.mark.parametrize("one_by_one", [False, True])
def test_what_was_read_ahead_is_neither_consumed_nor_committable(one_by_one: bool) -> None:
    """Also of a partition that the poll itself has nothing of."""
    ahead = read_ahead(records(p1=2), records(p2=4))
    delivered = DeliveredRecords(records(p0=3), one_by_one=one_by_one, ahead=ahead)
    positions = table(p0=13, p1=12, p2=14)
    assert len(list(delivered)) == (3 if one_by_one else 0)
    assert delivered.consumed(positions) == table(p0=13, p1=10, p2=10)
    assert delivered.committable(positions) == table(p0=13 if one_by_one else 10, p1=10, p2=10)
    assert delivered.count_from(delivered.committable(positions)) == ({} if one_by_one else {A: 3})
    assert delivered.return_all() == table(p0=10, p1=10, p2=10)
    assert delivered.return_undelivered([A, B]) == table(p1=10)
    assert [len(each) for each in delivered.ahead.polls] == [4]
    assert (delivered.ahead.count, delivered.ahead.size_bytes) == (4, size_bytes(delivered.ahead))
    assert delivered.consumed(table(p0=13, p1=10, p2=14)) == table(p0=13, p1=10, p2=10)


def test_what_follows_is_a_delivery_of_its_own() -> None:
    delivered = DeliveredRecords(
        records(p0=3), one_by_one=True, ahead=read_ahead(records(p1=2), records(p2=4))
    )
    following = delivered.following()
    assert [chunk.partition.partition for chunk in following.records.chunks] == [1]
    assert following.committable(table(p0=13, p1=12, p2=14)) == table(p0=13, p1=10, p2=10)
    assert (delivered.ahead.count, following.ahead.count, following.following().ahead.count) == (6, 4, 0)
    assert following.ahead.size_bytes == size_bytes(following.ahead) > 0


def assigned_at(records: DeliveredRecords, **offsets: int) -> AssignedPartitions:
    """The partitions at these positions, after these records."""
    positions = Positions()
    positions.assign(table(**offsets))
    for tp, offset in table(**offsets).items():
        positions.seek(tp, offset, UNKNOWN_LEADER)
    unused: Any = None
    assigned = AssignedPartitions(positions, unused, unused, unused)
    assigned.delivered = records
    return assigned


@pytest.mark.parametrize("lost", [True, False])
def test_records_before_a_lost_position_are_read_again(lost: bool) -> None:
    """Unless it is the user who resets it."""
    assigned = assigned_at(DeliveredRecords(records(p0=3), one_by_one=True), p0=13)
    assigned.positions.request_offset_reset(A, LATEST, lost=lost)
    assigned.return_undelivered()
    state = assigned.positions.state(A)
    assert state.fetch_state is (FetchState.FETCHING if lost else FetchState.AWAIT_RESET)
    assert state.position is None if not lost else state.position and state.position.offset == 10


def test_what_was_read_ahead_of_a_deleted_topic_is_dropped() -> None:
    ahead = read_ahead(records(p0=2, p1=2), records(p0=2))
    assigned = assigned_at(DeliveredRecords(Records(), one_by_one=True, ahead=ahead), p0=14, p1=12)
    assigned.positions.state(A).topic_replaced = True
    assigned.return_of_deleted_topics()
    left = [(chunk.partition, len(chunk)) for each in assigned.delivered.ahead.polls for chunk in each.chunks]
    assert left == [(B, 2)]
    assert [state.position and state.position.offset for _, state in assigned.positions.items()] == [14, 12]
