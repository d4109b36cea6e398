"""Moving about: by time, to the ends, to an offset; pausing; and what the cluster says about offsets."""

from __future__ import annotations

from typing import Any

import pytest

from kclient import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from localkafka import KafkaCluster
from tests.kafka.blocking_consumers import read, read_nothing
from tests.kafka.other_clients import SECONDS, produce_numbers, producer

COUNT = 100
FIRST = 1_700_000_000_000
STEP = 1000


def produce_timed(kafka: KafkaCluster, topic: str) -> None:
    """Partition 0 holds COUNT records, STEP milliseconds apart; partition 1 half of them, twice as far apart."""
    source = producer(kafka)
    for number in range(COUNT):
        for partition in (0, 1) if number % 2 == 0 else (0,):
            source.produce(topic, value=b"%d" % number, partition=partition, timestamp=FIRST + STEP * number)
    assert source.flush(SECONDS) == 0


def numbers(records: list[Any], partition: int) -> list[int]:
    return [int(record.value) for record in records if record.partition == partition]


@pytest.mark.spec("S0-45", "S0-55", "S4-47", "B.8", "I-15")
@pytest.mark.parametrize("cluster", ["kafka1", "kafka28"])
def test_seek_by_time(
    request: pytest.FixtureRequest, consumer_class: Any, cluster: str, fresh_name: str
) -> None:
    kafka = request.getfixturevalue(cluster)
    kafka.create_topic(fresh_name, 3, retention_ms=-1)
    produce_timed(kafka, fresh_name)
    zero, one, empty = (TopicPartition(fresh_name, partition) for partition in range(3))
    with consumer_class(bootstrap_servers=kafka.bootstrap_servers) as consumer:
        between = FIRST + 40 * STEP + 1
        found = consumer.offsets_for_times({zero: between, one: between, empty: FIRST})
        assert found == {
            zero: OffsetAndTimestamp(41, FIRST + 41 * STEP, 0),
            one: OffsetAndTimestamp(21, FIRST + 42 * STEP, 0),
            empty: None,
        }
        assert consumer.offsets_for_times({zero: FIRST + COUNT * STEP}) == {zero: None}
        consumer.assign([zero, one])
        for tp in (zero, one):
            consumer.seek(tp, found[tp].offset)
        records = read(consumer, 59 + 29)
        assert numbers(records, 0) == list(range(41, COUNT))
        assert numbers(records, 1) == list(range(42, COUNT, 2))
        assert (consumer.position(zero), consumer.position(one)) == (COUNT, COUNT // 2)


@pytest.mark.spec("S0-48", "S0-51", "S0-53", "S0-54", "S2-25", "S2-40", "S2-43", "D-31")
def test_seek_to_the_ends_and_to_an_offset(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    kafka1.create_topic(fresh_name, 2, retention_ms=-1)
    produce_timed(kafka1, fresh_name)
    zero, one = (TopicPartition(fresh_name, partition) for partition in range(2))
    with consumer_class(bootstrap_servers=kafka1.bootstrap_servers, auto_offset_reset="none") as consumer:
        assert consumer.beginning_offsets([zero, one]) == {zero: 0, one: 0}
        assert consumer.end_offsets([zero, one]) == {zero: COUNT, one: COUNT // 2}
        consumer.assign([zero, one])
        consumer.seek_to_end()
        assert (consumer.position(zero), consumer.position(one)) == (COUNT, COUNT // 2)
        read_nothing(consumer, 0.5)
        consumer.seek_to_beginning([one])
        records = read(consumer, COUNT // 2)
        assert numbers(records, 1) == list(range(0, COUNT, 2))
        assert numbers(records, 0) == []
        consumer.seek(zero, OffsetAndMetadata(90, leader_epoch=0))
        first = consumer.poll(5.0, max_records=3)
        assert numbers(list(first), 0) == [90, 91, 92]
        consumer.seek(zero, 7)  # the rest of what was fetched is stale now
        assert consumer.position(zero) == 7
        assert numbers(read(consumer, COUNT - 7), 0) == list(range(7, COUNT))
        assert consumer.current_lag(zero) == 0


@pytest.mark.spec("S2-09", "S2-38", "S2-42", "D-22", "I-11")
def test_a_paused_partition_waits_and_loses_nothing(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    """Paused with data of it buffered: nothing comes, its position stays, and resumed it goes on there."""
    kafka1.create_topic(fresh_name, 2, retention_ms=-1)
    produce_timed(kafka1, fresh_name)
    zero, one = (TopicPartition(fresh_name, partition) for partition in range(2))
    with consumer_class(bootstrap_servers=kafka1.bootstrap_servers) as consumer:
        consumer.assign([zero, one])
        consumer.seek_to_beginning()
        before: list[Any] = []
        while len(numbers(before, 0)) < 10:
            before += list(consumer.poll(1.0, max_records=10))
        consumer.pause([zero])
        assert consumer.paused() == (zero,)
        stopped_at = consumer.position(zero)
        assert stopped_at == len(numbers(before, 0))
        produce_numbers(kafka1, fresh_name, [1001], 2)
        meanwhile = read(consumer, COUNT // 2 + 1 - len(numbers(before, 1)))
        assert numbers(before + meanwhile, 1) == [*range(0, COUNT, 2), 1001]
        assert numbers(meanwhile, 0) == []
        assert consumer.position(zero) == stopped_at
        consumer.resume([zero])
        assert consumer.paused() == ()
        assert numbers(before + read(consumer, COUNT - stopped_at), 0) == list(range(COUNT))


@pytest.mark.spec("B.2", "B.5.10", "S4-47")
def test_what_the_cluster_has(kafka3: KafkaCluster, consumer_class: Any, fresh_name: str) -> None:
    kafka3.create_topic(fresh_name, 3)
    with consumer_class(bootstrap_servers=kafka3.bootstrap_servers) as consumer:
        infos = consumer.partitions_for(fresh_name)
        assert [info.partition for info in infos] == [0, 1, 2]
        for info in infos:
            assert info.leader == kafka3.leader_of(fresh_name, info.partition)
            assert sorted(info.replicas) == sorted(info.in_sync_replicas) == [1, 2, 3]
        assert len(consumer.list_topics()[fresh_name]) == 3
        assert consumer.partitions_for("no-" + fresh_name) == []
