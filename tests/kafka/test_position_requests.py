"""The requests that give every partition its position, at a real broker, and those that must not be sent."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from kclient import Consumer, OffsetAndMetadata, TopicPartition
from localkafka import KafkaCluster
from tests.kafka.blocking_consumers import read, read_nothing
from tests.kafka.other_clients import produce_numbers
from tests.kafka.wire_tap import Exchange, Tap
from tests.realtime import within

EARLIEST = -2


def settings(kafka: KafkaCluster, tap: Tap, **more: Any) -> dict[str, Any]:
    keys = {"bootstrap_servers": kafka.bootstrap_servers, "auto_offset_reset": "earliest", "runtime": tap}
    return {**keys, "fetch_max_wait_ms": 100, "enable_auto_commit": False, **more}


def partitions(kafka: KafkaCluster, name: str, count: int) -> list[TopicPartition]:
    """A topic of so many partitions with five records each."""
    kafka.create_topic(name, count)
    produce_numbers(kafka, name, range(5 * count), count)
    return [TopicPartition(name, number) for number in range(count)]


def fetched(one: Exchange) -> list[int]:
    return [row.partition for topic in one.request.topics for row in topic.partitions]


def looked_up(one: Exchange) -> list[tuple[int, int]]:
    """The partitions of a ListOffsets, with the times that are asked for."""
    return [(row.partition_index, row.timestamp) for topic in one.request.topics for row in topic.partitions]


def restored(one: Exchange) -> list[int]:
    """The partitions of an OffsetFetch."""
    topics = [topic for group in one.request.groups for topic in group.topics or []]
    return sorted(number for topic in topics for number in topic.partition_indexes)


def stir(consumer: Any) -> None:
    """Change something that is no reason to ask again."""
    consumer.pause(consumer.assignment())
    consumer.resume(consumer.assignment())


@pytest.mark.spec("S0-01", "S0-03", "S0-06", "S0-08", "S0-15", "S0-17", "E3")
def test_the_order_of_a_first_start(kafka1: KafkaCluster, fresh_name: str) -> None:
    """The group first, then its commits, then the leaders, and no fetch of a partition that has no position."""
    parts = partitions(kafka1, fresh_name, 2)
    with Consumer(**settings(kafka1, Tap(), group_id=fresh_name)) as consumer:
        consumer.assign(parts)
        consumer.commit({parts[0]: OffsetAndMetadata(3)})
    tap = Tap()
    with Consumer(fresh_name, **settings(kafka1, tap, group_id=fresh_name)) as consumer:
        assert len(read(consumer, 7)) == 7
    wanted = ("FindCoordinator", "JoinGroup", "SyncGroup", "OffsetFetch", "ListOffsets")
    order = [one for one in tap.exchanges if one.api in wanted]
    assert list(dict.fromkeys(one.api for one in order)) == list(wanted)
    (lookup,) = tap.asked("ListOffsets")
    assert looked_up(lookup) == [(1, EARLIEST)]
    early = tap.exchanges[: tap.exchanges.index(lookup)]
    assert all(fetched(one) == [0] for one in early if one.api == "Fetch")
    (restore,) = tap.asked("OffsetFetch")
    assert restored(restore) == [0, 1]
    assert "Fetch" not in [one.api for one in tap.exchanges[: tap.exchanges.index(restore)]]


@pytest.mark.spec("S0-02", "S0-05", "S0-16")
def test_what_has_positions_is_asked_about_no_more(kafka1: KafkaCluster, fresh_name: str) -> None:
    parts = partitions(kafka1, fresh_name, 2)
    tap = Tap()
    with Consumer(**settings(kafka1, tap)) as consumer:
        consumer.assign(parts)
        assert len(read(consumer, 10)) == 10
        assert set(tap.apis()) == {"ApiVersions", "Metadata", "ListOffsets", "Fetch"}
        tap.forget()
        read_nothing(consumer, 0.4)
        assert set(tap.apis()) == {"Fetch"}


@pytest.mark.spec("S0-20", "S0-26", "S0-58", "S0-19", "D-20")
def test_a_coordinator_that_hangs_is_asked_once(kafka1: KafkaCluster, fresh_name: str) -> None:
    """Polls end in their time and find nothing; nothing is reset; a seek changes what is asked for."""
    zero, one = partitions(kafka1, fresh_name, 2)
    tap = Tap()
    with Consumer(**settings(kafka1, tap, group_id=fresh_name)) as consumer:
        consumer.commit({zero: OffsetAndMetadata(2), one: OffsetAndMetadata(4)})
        tap.forget()
        kafka1.pause(1)
        try:
            consumer.assign([zero, one])
            for _ in range(3):
                with within(1):
                    assert len(consumer.poll(0.1)) == 0
                stir(consumer)
            assert [restored(asked) for asked in tap.asked("OffsetFetch")] == [[0, 1]]
            consumer.seek(zero, 1)
            with within(5):
                while len(tap.asked("OffsetFetch")) < 2:
                    assert len(consumer.poll(0.1)) == 0
            assert [restored(asked) for asked in tap.asked("OffsetFetch")] == [[0, 1], [1]]
            assert tap.asked("ListOffsets") == []
        finally:
            kafka1.resume(1)
        assert (consumer.position(zero), consumer.position(one)) == (1, 4)
        assert len(read(consumer, 5)) == 5


@pytest.mark.spec("S0-43", "S0-46", "S2-47")
def test_a_leader_that_hangs_is_asked_once(kafka1: KafkaCluster, fresh_name: str) -> None:
    parts = partitions(kafka1, fresh_name, 2)
    tap = Tap()
    with Consumer(**settings(kafka1, tap)) as consumer:
        consumer.assign(parts)
        assert len(read(consumer, 10)) == 10
        tap.forget()
        kafka1.pause(1)
        try:
            consumer.seek_to_beginning()
            for _ in range(4):
                assert len(consumer.poll(0.1)) == 0
                stir(consumer)
            assert [sorted(looked_up(one)) for one in tap.asked("ListOffsets")] == [
                [(0, EARLIEST), (1, EARLIEST)]
            ]
        finally:
            kafka1.resume(1)
        assert len(read(consumer, 10)) == 10


@pytest.mark.spec("S0-57")
def test_no_committed_offset_is_looked_up_for_a_partition_that_is_reset(
    kafka1: KafkaCluster, fresh_name: str
) -> None:
    parts = partitions(kafka1, fresh_name, 2)
    tap = Tap()
    with Consumer(**settings(kafka1, tap, group_id=fresh_name)) as consumer:
        consumer.assign(parts)
        consumer.seek_to_end()
        assert [consumer.position(tp) for tp in parts] == [5, 5]
        read_nothing(consumer, 0.2)
    assert tap.asked("OffsetFetch") == []
    assert len(tap.asked("ListOffsets")) == 1


@pytest.mark.spec("S0-50", "S0-51")
def test_a_lookup_carries_the_isolation_level(kafka1: KafkaCluster, fresh_name: str) -> None:
    (tp,) = partitions(kafka1, fresh_name, 1)
    for number, level in enumerate(("read_uncommitted", "read_committed")):
        tap = Tap()
        with Consumer(**settings(kafka1, tap, isolation_level=level)) as consumer:
            consumer.assign([tp])
            assert len(read(consumer, 5)) == 5
            consumer.end_offsets([tp])
        lookups = tap.asked("ListOffsets")
        assert [one.request.isolation_level for one in lookups] == [number, number]
        assert {one.request.isolation_level for one in tap.asked("Fetch")} == {number}


@pytest.mark.spec("S0-45", "S2-15", "S2-47", "E3")
def test_every_leader_is_asked_once_and_all_of_them_together(kafka3: KafkaCluster, fresh_name: str) -> None:
    parts = partitions(kafka3, fresh_name, 6)
    tap = Tap()
    with Consumer(**settings(kafka3, tap)) as consumer:
        consumer.assign(parts)
        assert len(read(consumer, 30)) == 30
        tap.forget()
        consumer.seek_to_beginning()
        assert len(read(consumer, 30)) == 30
    leaders = {tp.partition: kafka3.address(kafka3.leader_of(*tp))[1] for tp in parts}
    assert len(set(leaders.values())) == 3
    lookups = tap.asked("ListOffsets")
    assert sorted(one.port for one in lookups) == sorted(set(leaders.values()))
    assert [len(one.beside) for one in lookups] == [0, 1, 2]
    for one in lookups:
        assert {leaders[number] for number, _ in looked_up(one)} == {one.port}
    for one in tap.asked("Fetch"):
        assert {leaders[number] for number in fetched(one)} <= {one.port}
        is_last_word = one.request.session_epoch == -1  # it gives the session back and waits for no response
        assert is_last_word or one.port not in one.beside


@pytest.mark.spec("S0-40", "S0-25", "S0-38")
def test_a_commit_that_is_gone_is_no_commit(kafka1: KafkaCluster, fresh_name: str) -> None:
    (tp,) = partitions(kafka1, fresh_name, 1)
    keys = settings(kafka1, Tap(), group_id=fresh_name)
    with Consumer(**keys) as consumer:
        consumer.commit({tp: OffsetAndMetadata(3)})
        (found,) = consumer.committed([tp]).values()
        assert found is not None
        assert found.offset == 3
    admin = AdminClient({"bootstrap.servers": kafka1.bootstrap_servers})
    admin.delete_consumer_groups([fresh_name])[fresh_name].result(timeout=20)
    with Consumer(fresh_name, **keys) as consumer:
        assert [record.offset for record in read(consumer, 5)] == list(range(5))
        assert consumer.committed([tp]) == {tp: None}
