"""Idempotent producers without transactions: ids, sequences, what a broker recognizes as sent twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import confluent_kafka
import pytest

from kclient import Consumer
from kclient.embedded import EmbeddedCluster
from kclient.generated.init_producer_id_request import InitProducerIdRequest
from kclient.protocol.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_PRODUCER_EPOCH,
    NONE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_PRODUCER_ID,
)
from kclient.records.writer import NewRecord, build_batch
from kclient.types import TopicPartition
from tests.embedded.raw_client import RawClient
from tests.embedded.raw_producer import produce

T0 = TopicPartition("t", 0)
SECONDS = 20.0
Test = Callable[[EmbeddedCluster, RawClient], Awaitable[None]]


def run(test: Test, **keys: Any) -> None:
    async def main() -> None:
        async with EmbeddedCluster(topics={"t": 1}, **keys) as cluster, RawClient(cluster) as raw_client:
            await test(cluster, raw_client)

    asyncio.run(main())


async def send(
    cluster: EmbeddedCluster,
    raw_client: RawClient,
    sequence: int,
    *,
    producer_id: int = 7,
    epoch: int = 0,
    count: int = 1,
    transactional: bool = False,
    transactional_id: str | None = None,
) -> tuple[int, int]:
    """Error code and base offset of one batch."""
    batch = build_batch(
        [NewRecord(None, b"x", cluster.state.clock.wall_ms())] * count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=transactional,
    )
    row = await produce(cluster, raw_client, T0, batch, 9, transactional_id)
    return row.error_code, row.base_offset


@pytest.mark.parametrize("version", range(6))
def test_each_producer_gets_another_id(version: int) -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        responses = [
            await raw_client.ask(InitProducerIdRequest(transactional_id=None), version, node=node)
            for node in (1, 2, 1)
        ]
        assert [response.error_code for response in responses] == [NONE] * 3
        assert len({response.producer_id for response in responses}) == 3
        assert [response.producer_epoch for response in responses] == [0] * 3

    run(test, brokers=2)


def test_sequences() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        assert await send(cluster, raw_client, 0, count=3) == (NONE, 0)
        assert await send(cluster, raw_client, 3) == (NONE, 3)
        assert await send(cluster, raw_client, 3) == (NONE, 3)  # the response was lost
        assert await send(cluster, raw_client, 0, count=3) == (NONE, 0)
        assert await send(cluster, raw_client, 5) == (OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert await send(cluster, raw_client, 4) == (NONE, 4)
        assert await send(cluster, raw_client, 1, epoch=1) == (OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert await send(cluster, raw_client, 0, epoch=1) == (NONE, 5)
        assert await send(cluster, raw_client, 5) == (INVALID_PRODUCER_EPOCH, -1)

    run(test)


@pytest.mark.parametrize(
    ("release", "code"),
    [("4.3", NONE), ("2.5", NONE), ("2.4", UNKNOWN_PRODUCER_ID), ("1.0", UNKNOWN_PRODUCER_ID)],
)
def test_a_producer_whose_records_are_gone(release: str, code: int) -> None:
    """KIP-360: the broker accepts any first sequence. Up to 2.4 it returned UNKNOWN_PRODUCER_ID."""

    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        batch = build_batch([NewRecord()], producer_id=7, producer_epoch=0, base_sequence=9)
        assert (await produce(cluster, raw_client, T0, batch, 3)).error_code == code

    run(test, release=release)


def test_sequences_outlive_the_leader() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        assert await send(cluster, raw_client, 0, count=2) == (NONE, 0)
        cluster.kill(cluster.leader_of("t", 0))
        assert await send(cluster, raw_client, 0, count=2) == (NONE, 0)
        assert await send(cluster, raw_client, 3) == (OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        assert await send(cluster, raw_client, 2) == (NONE, 2)

    run(test, brokers=3)


def test_a_client_that_may_be_an_idempotent_producer() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        request = InitProducerIdRequest(transactional_id=None)
        cluster.deny("*", "IDEMPOTENT_WRITE", "Cluster:*")
        assert (await raw_client.ask(request, 4)).error_code == NONE  # it may write to a topic
        cluster.deny("*", "WRITE", "Topic:*")
        response = await raw_client.ask(request, 4)
        assert response.error_code == CLUSTER_AUTHORIZATION_FAILED
        assert (response.producer_id, response.producer_epoch) == (-1, -1)

    run(test)


def test_transactional_records_need_a_transactional_id() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        sent = await send(cluster, raw_client, 0, transactional=True)
        assert sent == (TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1)

    run(test)


@pytest.mark.parametrize("release", ["4.3", "2.8", "1.0"])
def test_confluent_kafka_loses_and_repeats_nothing(release: str) -> None:
    """The connection breaks after a response that never came, and the leader dies."""
    with EmbeddedCluster(brokers=3, release=release, topics={"t": 1}) as cluster:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 0,
                "retry.backoff.ms": 10,
                "retry.backoff.max.ms": 20,
                "log_level": 0,
            }
        )
        for number in range(100):
            producer.produce("t", value=b"%d" % number, partition=0)
            producer.poll(0)
            if number in (20, 60):
                cluster.cut("Produce", after=0)
            if number == 40:
                producer.flush(SECONDS)
                cluster.kill_leader("t", 0)
        assert producer.flush(SECONDS) == 0
        with Consumer(bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([T0])
            found: list[bytes | None] = []
            while len(found) < 100:
                records = consumer.poll(SECONDS)
                assert records
                found += [record.value for record in records]
        assert found == [b"%d" % number for number in range(100)]
