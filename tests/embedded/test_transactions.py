"""Transactions as producers and consumers see them: what is visible when, who is fenced, what survives a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.embedded.partition import TRANSACTIONS_TOPIC
from kclient.embedded.transactions.coordinator import transactions_of
from kclient.group.offsets_topic import offsets_topic_partition
from kclient.protocol.errors import (
    CONCURRENT_TRANSACTIONS,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_REQUEST,
    INVALID_TRANSACTION_TIMEOUT,
    INVALID_TXN_STATE,
    NONE,
    NOT_COORDINATOR,
    PRODUCER_FENCED,
)
from kclient.types import TopicPartition
from tests.embedded.raw_client import RawClient
from tests.embedded.raw_producer import RawProducer, settled

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
Test = Callable[[EmbeddedCluster, RawClient], Awaitable[None]]


def run(test: Test, **keys: Any) -> None:
    async def main() -> None:
        keys.setdefault("brokers", 1)
        async with EmbeddedCluster(topics={"t": 2}, **keys) as cluster, RawClient(cluster) as raw_client:
            await test(cluster, raw_client)

    asyncio.run(main())


async def read(cluster: EmbeddedCluster, count: int, isolation_level: str = "read_committed") -> list[bytes]:
    """The first `count` values of partition 0."""
    async with AsyncConsumer(
        bootstrap_servers=cluster.bootstrap_servers,
        auto_offset_reset="earliest",
        isolation_level=isolation_level,
    ) as consumer:
        await consumer.assign([T0])
        found: list[bytes] = []
        async with asyncio.timeout(10):
            while len(found) < count:
                found += [record.value for record in await consumer.poll(1.0)]
        return found


async def last_stable(cluster: EmbeddedCluster, tp: TopicPartition = T0) -> int:
    async with AsyncConsumer(
        bootstrap_servers=cluster.bootstrap_servers, isolation_level="read_committed"
    ) as consumer:
        return (await consumer.end_offsets([tp]))[tp]


both = pytest.mark.parametrize("v2", [False, True], ids=["V1", "V2"])


@both
@pytest.mark.spec("B.12", "S0-51")
def test_only_what_is_committed_is_read(v2: bool) -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a", v2=v2)
        assert await producer.init() == NONE
        await producer.transact(T0, b"1", b"2", commit=True)
        await producer.transact(T0, b"3", commit=False)
        await producer.transact(T0, b"4", commit=True)
        assert await read(cluster, 3) == [b"1", b"2", b"4"]
        assert await read(cluster, 4, "read_uncommitted") == [b"1", b"2", b"3", b"4"]

    run(test)


@both
@pytest.mark.spec("B.12")
def test_an_open_transaction_holds_the_last_stable_offset(v2: bool) -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer, other = (RawProducer(cluster, raw_client, name, v2=v2) for name in "ab")
        assert [await producer.init(), await other.init()] == [NONE, NONE]
        await producer.begin_write(T0, b"first")
        await other.transact(T0, b"second", commit=True)
        await settled(cluster)
        assert await last_stable(cluster) == 0
        assert await producer.end(commit=True) == NONE
        await settled(cluster)
        assert await read(cluster, 2) == [b"first", b"second"]

    run(test)


@both
def test_markers_may_come_later_than_the_response(v2: bool) -> None:
    """While they are not written the transaction is committed, and no reader sees it."""

    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        cluster.delay_markers(3600000)
        producer = RawProducer(cluster, raw_client, "a", v2=v2)
        await producer.init()
        await producer.begin_write(T0, b"1")
        assert await producer.end(commit=True) == NONE
        assert await last_stable(cluster) == 0
        again = (await producer.add(T0))[0] if not v2 else await producer.write(T1, b"2")
        assert again == CONCURRENT_TRANSACTIONS
        assert await producer.end(commit=True, version=3) in (CONCURRENT_TRANSACTIONS, PRODUCER_FENCED)
        assert await producer.init() == CONCURRENT_TRANSACTIONS
        cluster.state.clock.advance(3600.0)
        assert await last_stable(cluster) == 2
        assert await read(cluster, 1) == [b"1"]

    run(test)


def test_a_second_producer_fences_the_first() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        old, new = RawProducer(cluster, raw_client, "a"), RawProducer(cluster, raw_client, "a")
        await old.init()
        await old.begin_write(T0, b"zombie")
        assert await new.init() == CONCURRENT_TRANSACTIONS  # first the open transaction is aborted
        assert await new.init_patiently() == NONE
        assert (new.producer_id, new.epoch) == (old.producer_id, old.epoch + 2)
        assert await old.add(T1) == [PRODUCER_FENCED]
        assert await old.add(T1, version=1) == [INVALID_PRODUCER_EPOCH]
        assert await old.end(commit=True) == PRODUCER_FENCED
        assert await old.end(commit=True, version=1) == INVALID_PRODUCER_EPOCH
        assert await old.add_group("g") == PRODUCER_FENCED
        assert await old.add_group("g", version=1) == INVALID_PRODUCER_EPOCH
        assert await old.write(T0, b"late") == INVALID_PRODUCER_EPOCH
        assert await old.init(expected=(old.producer_id, old.epoch)) == PRODUCER_FENCED
        assert await old.init(expected=(old.producer_id, old.epoch), version=3) == INVALID_PRODUCER_EPOCH
        await new.transact(T0, b"alive", commit=True)
        assert await read(cluster, 1) == [b"alive"]

    run(test)


def test_a_producer_bumps_its_own_epoch_and_may_ask_twice() -> None:
    """KIP-360: the response to the first request was lost."""

    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a")
        await producer.init()
        before = (producer.producer_id, producer.epoch)
        assert await producer.init(expected=before) == NONE
        assert (producer.producer_id, producer.epoch) == (before[0], before[1] + 1)
        assert await producer.init(expected=before) == NONE
        assert (producer.producer_id, producer.epoch) == (before[0], before[1] + 1)
        assert await producer.init(expected=(before[0] + 1, 0)) == PRODUCER_FENCED
        assert await producer.init(expected=(before[0], -1)) == INVALID_REQUEST

    run(test)


@both
def test_the_last_epoch_is_followed_by_another_producer_id(v2: bool) -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a", v2=v2)
        await producer.init()
        first = producer.producer_id
        transactions_of(cluster.state.brokers[1]).transactions["a"].epoch = producer.epoch = 2**15 - 2
        if v2:
            await producer.begin_write(T0, b"1")
            last = (producer.producer_id, producer.epoch)
            assert await producer.end(commit=True) == NONE
            await settled(cluster)
            new = (producer.producer_id, producer.epoch)
            producer.producer_id, producer.epoch = last
            assert await producer.end(commit=True) == NONE  # the same request gets the same response
            assert (producer.producer_id, producer.epoch) == new
        else:
            assert await producer.init() == NONE
        assert producer.producer_id != first
        assert producer.epoch == 0
        await producer.transact(T0, b"2", commit=True)
        assert await read(cluster, 1 + v2) == [b"1", b"2"][not v2 :]

    run(test)


def test_v2_ends_every_transaction_with_another_epoch() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a", v2=True)
        await producer.init()
        assert await producer.end(commit=True) == INVALID_TXN_STATE
        epoch = producer.epoch
        assert await producer.end(commit=False) == NONE  # nothing was written: an epoch all the same
        assert producer.epoch == epoch + 1
        await settled(cluster)
        await producer.begin_write(T0, b"1")
        assert await producer.end(commit=True) == NONE
        await settled(cluster)
        assert producer.epoch == epoch + 2
        producer.epoch -= 1  # the response was lost
        assert await producer.write(T0, b"late") == INVALID_PRODUCER_EPOCH
        assert await producer.end(commit=False) == INVALID_TXN_STATE
        assert await producer.end(commit=True) == NONE
        assert producer.epoch == epoch + 2

    run(test)


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a")
        await producer.init(timeout_ms=60_000)
        await producer.begin_write(T0, b"1")
        cluster.state.clock.advance(50.0)
        assert await last_stable(cluster) == 0
        cluster.state.clock.advance(11.0)
        await settled(cluster)
        assert await last_stable(cluster) == 2
        assert await producer.end(commit=True) == PRODUCER_FENCED
        assert await producer.write(T0, b"2") == INVALID_PRODUCER_EPOCH
        assert await producer.init() == NONE
        await producer.transact(T0, b"3", commit=True)
        assert await read(cluster, 1) == [b"3"]

    run(test)


def test_a_transactional_id_that_is_unused_is_forgotten() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a")
        await producer.init()
        cluster.state.clock.advance(100.0)
        assert await producer.add(T0) == [INVALID_PRODUCER_ID_MAPPING]
        log = cluster.state.topics[TRANSACTIONS_TOPIC].partitions
        assert sum(len(partition.log.batches) for partition in log) == 2

    run(test, config={"transactional.id.expiration.ms": 100_000})


def test_what_init_refuses() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a")
        assert await producer.init(timeout_ms=0) == INVALID_TRANSACTION_TIMEOUT
        assert await producer.init(timeout_ms=900_001) == INVALID_TRANSACTION_TIMEOUT
        assert await producer.init(timeout_ms=900_000) == NONE
        nameless = RawProducer(cluster, raw_client, "")
        assert await nameless.init() == INVALID_REQUEST

    run(test)


def test_end_without_a_transaction() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a")
        assert await producer.end(commit=True) == INVALID_PRODUCER_ID_MAPPING
        await producer.init()
        assert await producer.end(commit=True) == INVALID_TXN_STATE
        assert await producer.end(commit=False) == INVALID_TXN_STATE
        await producer.transact(T0, b"1", commit=True)
        await settled(cluster)
        assert await producer.end(commit=True) == NONE  # asked twice
        assert await producer.end(commit=False) == INVALID_TXN_STATE

    run(test)


@both
def test_another_coordinator_writes_the_markers(v2: bool) -> None:
    """What was decided when the coordinator died is done by the next one."""

    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        cluster.delay_markers(5000)
        producer = RawProducer(cluster, raw_client, "a", v2=v2)
        await producer.init()
        await producer.begin_write(T0, b"1")
        assert await producer.end(commit=True) == NONE
        dead = await producer.coordinator()
        cluster.kill(dead)
        cluster.state.clock.advance(4.0)
        assert await producer.coordinator() != dead
        cluster.state.clock.advance(6.0)
        await settled(cluster)
        assert await last_stable(cluster) == 2
        assert await read(cluster, 1) == [b"1"]
        cluster.delay_markers(0)
        await producer.transact(T0, b"2", commit=True)
        assert await read(cluster, 2) == [b"1", b"2"]

    run(test, brokers=3)


def test_another_coordinator_continues_with_an_open_transaction() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer, slow = RawProducer(cluster, raw_client, "a"), RawProducer(cluster, raw_client, "b")
        await producer.init()
        await slow.init(timeout_ms=100_000)
        await producer.begin_write(T0, b"1")
        await slow.begin_write(T0, b"2")
        for name, node in (("a", 2), ("b", 3)):
            cluster.move_leader(TRANSACTIONS_TOPIC, offsets_topic_partition(name, 50), node)
        assert (await producer.coordinator(), await slow.coordinator()) == (2, 3)
        assert await producer.add(T1) == [NONE]
        assert await producer.end(commit=True) == NONE
        cluster.state.clock.advance(101.0)
        await settled(cluster)
        assert await slow.end(commit=True) == PRODUCER_FENCED
        assert await read(cluster, 1) == [b"1"]

    run(test, brokers=3)


def test_others_are_not_the_coordinator() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a")
        await producer.init()
        here = await producer.coordinator()
        ask = raw_client.ask

        async def elsewhere(request: Any, version: int, node: int | None = None, lane: str = "") -> Any:
            return await ask(request, version, (node or 1) % 3 + 1, lane)

        raw_client.ask = elsewhere  # type: ignore[method-assign]
        assert here == await producer.coordinator()
        assert await producer.add(T0) == [NOT_COORDINATOR]
        assert await producer.end(commit=True) == NOT_COORDINATOR
        assert await producer.init() == NOT_COORDINATOR
        assert await producer.add_group("g") == NOT_COORDINATOR

    run(test, brokers=3)
