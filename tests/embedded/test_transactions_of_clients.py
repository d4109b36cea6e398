"""Other clients' transactional producers against the embedded cluster, and what our consumer makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import confluent_kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition

from kclient import Consumer, OffsetAndMetadata, TopicPartition
from kclient.embedded import EmbeddedCluster

SECONDS = 20.0
T0 = TopicPartition("t", 0)


@pytest.fixture(params=["4.3", "2.8"])
def cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3, release=request.param, topics={"t": 1, "source": 1}) as running:
        yield running


def transactional(cluster: EmbeddedCluster, name: str) -> confluent_kafka.Producer:
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "transactional.id": name,
            "linger.ms": 0,
            "log_level": 0,
        }
    )
    producer.init_transactions(SECONDS)
    return producer


def write(producer: confluent_kafka.Producer, *values: bytes) -> None:
    for value in values:
        producer.produce("t", value=value, partition=0)
    assert producer.flush(SECONDS) == 0


def read(cluster: EmbeddedCluster, count: int, isolation_level: str = "read_committed") -> list[bytes | None]:
    with Consumer(
        bootstrap_servers=cluster.bootstrap_servers,
        auto_offset_reset="earliest",
        isolation_level=isolation_level,
    ) as consumer:
        consumer.assign([T0])
        found: list[bytes | None] = []
        while len(found) < count:
            records = consumer.poll(SECONDS)
            assert records, f"{count - len(found)} records are missing"
            found += [record.value for record in records]
        assert not consumer.poll(0.05)
        return found


@pytest.mark.spec("B.12", "S0-51", "D-51")
def test_commit_abort_and_two_producers_at_once(cluster: EmbeddedCluster) -> None:
    first, second = transactional(cluster, "first"), transactional(cluster, "second")
    first.begin_transaction()
    write(first, b"1", b"2")
    first.commit_transaction(SECONDS)
    first.begin_transaction()
    second.begin_transaction()
    write(first, b"3")
    write(second, b"4")
    write(first, b"5")
    second.commit_transaction(SECONDS)
    first.abort_transaction(SECONDS)
    first.begin_transaction()
    write(first, b"6")
    assert read(cluster, 3) == [b"1", b"2", b"4"]
    assert read(cluster, 6, "read_uncommitted") == [b"1", b"2", b"3", b"4", b"5", b"6"]
    first.commit_transaction(SECONDS)
    assert read(cluster, 4) == [b"1", b"2", b"4", b"6"]


def test_a_fenced_producer_gets_the_error(cluster: EmbeddedCluster) -> None:
    old = transactional(cluster, "one")
    old.begin_transaction()
    write(old, b"zombie")
    new = transactional(cluster, "one")
    with pytest.raises(confluent_kafka.KafkaException) as fenced:
        old.commit_transaction(SECONDS)
    assert fenced.value.args[0].code() == confluent_kafka.KafkaError._FENCED
    assert fenced.value.args[0].fatal()
    new.begin_transaction()
    write(new, b"alive")
    new.commit_transaction(SECONDS)
    assert read(cluster, 1) == [b"alive"]


@pytest.mark.spec("S0-29", "S0-37", "D-21")
@pytest.mark.parametrize("commits", [True, False], ids=["commit", "abort"])
def test_offsets_go_with_the_transaction(cluster: EmbeddedCluster, commits: bool) -> None:
    """Consume, transform, produce: the group's offset moves with the records that came of it, or not at all."""
    cluster.produce("source", [b"a", b"b"])
    source = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    source.subscribe(["source"])
    producer = transactional(cluster, "etl")
    try:
        messages = source.consume(2, SECONDS)
        assert [message.value() for message in messages] == [b"a", b"b"]
        producer.begin_transaction()
        write(producer, *(message.value().upper() for message in messages))
        positions = source.position(source.assignment())
        producer.send_offsets_to_transaction(positions, source.consumer_group_metadata(), SECONDS)
        end = producer.commit_transaction if commits else producer.abort_transaction
        end(SECONDS)
        tp = TopicPartition("source", 0)
        with Consumer(bootstrap_servers=cluster.bootstrap_servers, group_id="g") as reader:
            found = reader.committed([tp])
        if commits:
            assert found == {tp: OffsetAndMetadata(2, 0, "")}
            assert read(cluster, 2) == [b"A", b"B"]
        else:
            assert found == {tp: None}
            assert read(cluster, 0) == []
    finally:
        source.close()


def test_aiokafka(cluster: EmbeddedCluster) -> None:
    async def main() -> list[bytes | None]:
        producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id="aio")
        await producer.start()
        try:
            for value, commits in ((b"1", True), (b"2", False), (b"3", True)):
                await producer.begin_transaction()
                await producer.send_and_wait("t", value, partition=0)
                offsets = {AioTopicPartition("source", 0): int(value)}
                await producer.send_offsets_to_transaction(offsets, "aio")
                await (producer.commit_transaction() if commits else producer.abort_transaction())
        finally:
            await producer.stop()
        consumer = AIOKafkaConsumer(
            "t",
            bootstrap_servers=cluster.bootstrap_servers,
            group_id="aio",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        await consumer.start()
        try:
            assert await consumer.committed(AioTopicPartition("source", 0)) == 3
            return [(await consumer.getone()).value for _ in range(2)]
        finally:
            await consumer.stop()

    assert asyncio.run(asyncio.wait_for(main(), 2 * SECONDS)) == [b"1", b"3"]
