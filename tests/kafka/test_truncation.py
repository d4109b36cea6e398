"""An unclean election truncates a log, and a topic is recreated while it is read: both on three real nodes."""

from __future__ import annotations

from typing import Any

import pytest

from kclient import Consumer, TopicPartition
from kclient.errors import LogTruncatedError, OffsetOutOfRangeError
from localkafka import KafkaCluster, probe
from tests.kafka.blocking_consumers import read
from tests.kafka.other_clients import delete_topic, producer
from tests.kafka.wire_tap import Tap

SECONDS = 60
COMMON, LOST, NEW = range(10), range(100, 110), range(200, 225)
# A follower that misses records may lead only where both of these say so (KIP-966).
UNCLEAN = {"unclean_leader_election_enable": "true", "min_insync_replicas": 1}


def write(kafka: KafkaCluster, topic: str, numbers: range) -> None:
    """Records that are all acknowledged by every replica in sync."""
    source = producer(kafka, acks="all", reconnect_backoff_max_ms=500)
    for number in numbers:
        source.produce(topic, value=b"%d" % number, partition=0)
    assert source.flush(SECONDS) == 0


def reader(kafka: KafkaCluster, tp: TopicPartition, **settings: Any) -> Consumer:
    keys = {"bootstrap_servers": kafka.bootstrap_servers, "metadata_max_age_ms": 1000, **settings}
    consumer = Consumer(**keys)
    consumer.assign([tp])
    consumer.seek_to_beginning()
    return consumer


def numbers(records: list[Any]) -> list[tuple[int, int]]:
    return [(record.offset, int(record.value)) for record in records]


def placed(first: int, *ranges: range) -> list[tuple[int, int]]:
    """Offset and number of each record, from an offset on."""
    return list(enumerate([number for part in ranges for number in part], first))


def leader_and_follower(kafka: KafkaCluster, tp: TopicPartition) -> tuple[int, int]:
    leader = kafka.leader_of(*tp)
    (follower,) = probe.metadata(kafka.address(leader), timeout=10).replicas[tp] - {leader}
    return leader, follower


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.spec("S0-04", "S0-18", "B.9", "B.6.4", "D-40", "I-13", "C-09")
def test_an_unclean_election_cuts_off_what_was_read(kafka3: KafkaCluster, fresh_name: str) -> None:
    """Without a reset policy the error has the offset where the logs diverge; with one, reading continues there."""
    kafka3.create_topic(fresh_name, replication=2, **UNCLEAN)
    tp = TopicPartition(fresh_name, 0)
    leader, follower = leader_and_follower(kafka3, tp)
    write(kafka3, fresh_name, COMMON)
    tap = Tap()
    with (
        reader(kafka3, tp) as strict,
        reader(kafka3, tp, auto_offset_reset="latest", runtime=tap) as lenient,
    ):
        kafka3.kill(follower)
        write(kafka3, fresh_name, LOST)  # acknowledged by the leader alone
        for consumer in (strict, lenient):
            assert numbers(read(consumer, 20)) == placed(0, COMMON, LOST)
        kafka3.kill(leader)
        tap.forget()
        kafka3.restart(follower)
        assert kafka3.leader_of(*tp) == follower
        write(kafka3, fresh_name, NEW)
        assert numbers(read(lenient, len(NEW))) == placed(len(COMMON), NEW)
        assert tap.asked("ListOffsets") == []
        with pytest.raises(LogTruncatedError) as caught:
            read(strict, 1)
        divergent = caught.value.divergent[tp]
        assert divergent is not None
        assert (caught.value.positions, divergent.offset) == ({tp: 20}, len(COMMON))
        strict.seek(tp, divergent)
        assert numbers(read(strict, len(NEW))) == placed(len(COMMON), NEW)


@pytest.mark.slow
@pytest.mark.spec("B.5.5", "B.10.13", "D-25", "I-14", "C-10")
def test_a_longer_topic_of_the_same_name_is_another_topic(kafka3: KafkaCluster, fresh_name: str) -> None:
    """The offset that comes next exists in the new log, too, and is still none of its own."""
    kafka3.create_topic(fresh_name)
    tp = TopicPartition(fresh_name, 0)
    write(kafka3, fresh_name, COMMON)
    tap = Tap()
    with (
        reader(kafka3, tp) as strict,
        reader(kafka3, tp, auto_offset_reset="earliest", runtime=tap) as lenient,
    ):
        for consumer in (strict, lenient):
            assert numbers(read(consumer, len(COMMON))) == placed(0, COMMON)
        delete_topic(kafka3, fresh_name)
        kafka3.create_topic(fresh_name)
        write(kafka3, fresh_name, NEW)
        assert numbers(read(lenient, len(NEW))) == placed(0, NEW)
        ids = [topic.topic_id for one in tap.asked("Fetch") for topic in one.request.topics]
        assert ids[0] != ids[-1]
        with pytest.raises(OffsetOutOfRangeError) as caught:
            read(strict, 1)
        assert caught.value.positions == {tp: len(COMMON)}
        strict.seek_to_beginning()
        assert numbers(read(strict, len(NEW))) == placed(0, NEW)
