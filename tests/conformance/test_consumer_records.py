"""What a coordinator writes of a group of the consumer protocol into `__consumer_offsets`, record by record."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kclient.group.offsets_topic import OffsetsRecord, offsets_topic_partition, read_offsets_record
from kclient.protocol import errors
from kclient.records.batch import read_batches
from kclient.records.sections import columns_for, open_batch
from tests.conformance.consumer import REBALANCE_TIMEOUT_MS, Member
from tests.conformance.target import SETTINGS, Target
from tests.conformance.test_consumer_migration import Classic

pytestmark = [pytest.mark.since("4.3"), pytest.mark.spec("C.4", "B.17.6")]

OFFSETS, MEGABYTE = "__consumer_offsets", 1 << 20
CLASSIC_GROUP = 2
STABLE, UNREVOKED, UNRELEASED = 0, 1, 2

Row = tuple[Any, ...]


def written(target: Target, group: str) -> list[Row]:
    """Every record of a group, in order: what it is, whose, and what it says."""
    number = offsets_topic_partition(group, int(SETTINGS["offsets.topic.num.partitions"]))
    asked = FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=MEGABYTE)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=MEGABYTE, topics=[FetchTopic(topic=OFFSETS, partitions=[asked])]
    )
    [response] = target.ask(request, 11).responses[0].partitions
    assert response.error_code == errors.NONE
    rows = []
    for batch in read_batches(response.records):
        section = open_batch(batch, check_crcs=True)
        columns = columns_for(section)
        section.read_into(columns, batch.count)
        for key, value in zip(columns.raw_keys(), columns.raw_values(), strict=True):
            record = read_offsets_record(key, value)
            if isinstance(record, OffsetsRecord) and record.group_id == group:
                rows.append(_row(record.record_type, getattr(record.key, "member_id", ""), record.value))
    return rows


def _row(kind: int, member_id: str, value: Any) -> Row:
    who = (kind, member_id) if member_id else (kind,)
    return (*who, None) if value is None else (*who, *_SAYS[kind](value))


def _numbers(topics: Any) -> dict[int, int]:
    """Partition → since which epoch, of the one topic here."""
    found = {}
    for topic in topics:
        found |= dict(zip(topic.partitions, topic.assignment_epochs, strict=True))
    return found


_SAYS: dict[int, Any] = {
    2: lambda value: (value.generation, [member.member_id for member in value.members]),
    3: lambda value: (value.epoch, value.metadata_hash != 0),
    5: lambda value: (
        value.instance_id,
        value.subscribed_topic_names,
        value.subscribed_topic_regex,
        value.rebalance_timeout_ms,
        value.classic_member_metadata is not None,
    ),
    6: lambda value: (value.assignment_epoch,),
    7: lambda value: ([number for topic in value.topic_partitions for number in topic.partitions],),
    8: lambda value: (
        value.member_epoch,
        value.previous_member_epoch,
        value.state,
        _numbers(value.assigned_partitions),
        _numbers(value.partitions_pending_revocation),
    ),
}


def test_members_that_share_and_leave(target: Target, group: str) -> None:
    topic = target.topic(4)
    topic_id = target.topic_id(topic)
    one, two = Member(target, group, "m1"), Member(target, group, "m2", instance_id="i")
    one.join(topic)
    two.join(topic)
    one.beat()
    one.beat(owned={topic_id: [0, 1]})
    two.beat()
    heir = Member(target, group, "m3", instance_id="i")
    two.beat(-2)
    heir.join(topic)
    heir.beat(-1)
    one.beat(-1)
    said = ([topic], "", REBALANCE_TIMEOUT_MS, False)
    assert written(target, group) == [
        # m1 joins
        (5, "m1", None, *said),
        (3, 2, True),
        (7, "m1", [0, 1, 2, 3]),
        (6, 2),
        (8, "m1", 2, 0, STABLE, dict.fromkeys(range(4), 2), {}),
        # m2 joins
        (5, "m2", "i", *said),
        (3, 3, True),
        (7, "m1", [0, 1]),
        (7, "m2", [2, 3]),
        (6, 3),
        (8, "m2", 3, 0, UNRELEASED, {}, {}),
        # the heartbeat response asks m1 to revoke, and m1 does; m2 gets the partitions
        (8, "m1", 2, 2, UNREVOKED, {0: 2, 1: 2}, {2: 2, 3: 2}),
        (8, "m1", 3, 2, STABLE, {0: 2, 1: 2}, {}),
        (8, "m2", 3, 3, STABLE, {2: 3, 3: 3}, {}),
        # m2 leaves for a while, and m3 takes its place
        (8, "m2", -2, 3, STABLE, {2: 0, 3: 0}, {}),
        (8, "m2", None),
        (7, "m2", None),
        (5, "m2", None),
        (5, "m3", "i", *said),
        (7, "m3", [2, 3]),
        (8, "m3", 0, 0, STABLE, {2: 0, 3: 0}, {}),
        (8, "m3", 3, 0, STABLE, {2: 0, 3: 0}, {}),
        # they leave
        (8, "m3", None),
        (7, "m3", None),
        (5, "m3", None),
        (3, 4, True),
        (8, "m1", None),
        (7, "m1", None),
        (5, "m1", None),
        (3, 5, False),
        *([(6, 5)] if target.since("4.4") else []),
    ]


def test_a_group_that_changes_its_protocol_twice(target: Target, group: str) -> None:
    topic = target.topic(2)
    with Classic(target, group, topic).settled(0, 1) as old:
        new = Member(target, group, "m1")
        new.join(topic)
        new.beat(-1)
        rows = written(target, group)
        name = old.member_id
        begin = rows.index((CLASSIC_GROUP, None))
        hosted = ([topic], "", old.rebalance_timeout_ms, True)
        up = rows[begin : begin + 12]
        assert [row for row in up if row[0] != 7] == [
            (CLASSIC_GROUP, None),
            (5, name, None, *hosted),
            (3, 1, True),
            (6, 1),
            (8, name, 1, 1, STABLE, {0: 1, 1: 1}, {}),
            (5, "m1", None, [topic], "", REBALANCE_TIMEOUT_MS, False),
            (3, 2, True),
            (6, 2),
            (8, "m1", 2, 0, UNRELEASED, {}, {}),
        ]
        assert next(row for row in up if row[0] == 7) == (7, name, [0, 1])
        down = rows[begin + 12 :]
        gone = [(kind, who, None) for kind in (8, 7) for who in sorted([name, "m1"])]
        assert sorted(down[:4]) == sorted(gone)
        assert down[4] == (6, None)
        assert sorted(down[5:7]) == sorted([(5, name, None), (5, "m1", None)])
        assert down[7:] == [(4, None), (3, None), (CLASSIC_GROUP, 2, [name])]
