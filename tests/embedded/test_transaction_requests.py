"""What AddPartitionsToTxn, AddOffsetsToTxn and EndTxn refuse, and how a leader sees to who writes to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.embedded.partition import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kclient.generated.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kclient.group.offsets_topic import offsets_topic_partition
from kclient.protocol.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_TXN_STATE,
    NONE,
    NOT_COORDINATOR,
    NOT_ENOUGH_REPLICAS,
    OPERATION_NOT_ATTEMPTED,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    PRODUCER_FENCED,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTION_ABORTABLE,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kclient.types import TopicPartition
from tests.embedded.raw_client import RawClient
from tests.embedded.raw_producer import RawProducer, coordinator_of, settled

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
Test = Callable[[EmbeddedCluster, RawClient], Awaitable[None]]


def run(test: Test, **keys: Any) -> None:
    async def main() -> None:
        async with EmbeddedCluster(topics={"t": 2}, **keys) as cluster, RawClient(cluster) as raw_client:
            await test(cluster, raw_client)

    asyncio.run(main())


def test_one_bad_partition_keeps_the_others_out() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a")
        await producer.init()
        nowhere, hidden = TopicPartition("nowhere", 0), TopicPartition("hidden", 0)
        cluster.deny("*", "WRITE", "Topic:hidden")
        assert await producer.add(T0, nowhere, hidden) == [
            OPERATION_NOT_ATTEMPTED,
            UNKNOWN_TOPIC_OR_PARTITION,
            TOPIC_AUTHORIZATION_FAILED,
        ]
        assert await producer.end(commit=True) == INVALID_TXN_STATE  # nothing was begun
        assert await producer.add(T0, TopicPartition("t", 2)) == [
            OPERATION_NOT_ATTEMPTED,
            UNKNOWN_TOPIC_OR_PARTITION,
        ]
        await coordinator_of(cluster, raw_client, OFFSETS_TOPIC, "g")
        assert await producer.add(TopicPartition(OFFSETS_TOPIC, 0)) == [TOPIC_AUTHORIZATION_FAILED]
        assert await producer.add(T0, T1) == [NONE, NONE]

    run(test)


def test_authorization() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a", v2=True)
        await producer.init()
        cluster.deny("*", "READ", "Group:g")
        assert await producer.add_group("g") == GROUP_AUTHORIZATION_FAILED
        cluster.deny("*", "WRITE", "TransactionalId:a")
        refused = TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert await producer.init() == refused
        assert await producer.add(T0, T1) == [refused, refused]
        assert await producer.add_group("g") == refused
        assert await producer.end(commit=True) == refused
        assert await producer.write(T0, b"1") == refused

    run(test)


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_ask_for_many_at_once(version: int) -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        first, second = RawProducer(cluster, raw_client, "a"), RawProducer(cluster, raw_client, "b")
        await first.init()
        await second.init()
        assert await first.add(T0) == [NONE]

        def row(name: str, producer_id: int, epoch: int, *numbers: int) -> AddPartitionsToTxnTransaction:
            return AddPartitionsToTxnTransaction(
                transactional_id=name,
                producer_id=producer_id,
                producer_epoch=epoch,
                verify_only=True,
                topics=[AddPartitionsToTxnTopic(name="t", partitions=list(numbers))],
            )

        rows = [
            row("a", first.producer_id, first.epoch, 0, 1),
            row("b", second.producer_id, second.epoch + 1, 0),
            row("c", 1, 0, 0),
            row("b", second.producer_id, second.epoch, 0, 9),
        ]
        response = await raw_client.ask(AddPartitionsToTxnRequest(transactions=rows), version)
        codes = [
            [one.partition_error_code for topic in result.topic_results for one in topic.results_by_partition]
            for result in response.results_by_transaction
        ]
        assert codes == [
            [NONE, TRANSACTION_ABORTABLE],
            [PRODUCER_FENCED],
            [INVALID_PRODUCER_ID_MAPPING],
            [OPERATION_NOT_ATTEMPTED, UNKNOWN_TOPIC_OR_PARTITION],
        ]
        cluster.deny("*", "CLUSTER_ACTION", "Cluster:*")
        response = await raw_client.ask(AddPartitionsToTxnRequest(transactions=rows), version)
        assert (response.error_code, response.results_by_transaction) == (CLUSTER_AUTHORIZATION_FAILED, [])

    run(test)


@pytest.mark.parametrize(
    ("release", "version", "code"),
    [
        ("4.3", 12, NONE),
        ("4.3", 11, TRANSACTION_ABORTABLE),
        ("4.3", 10, INVALID_TXN_STATE),
        ("3.6", 9, INVALID_TXN_STATE),
        ("3.5", 9, NONE),
        ("2.8", 9, NONE),
    ],
)
def test_a_partition_that_was_not_added(release: str, version: int, code: int) -> None:
    """KIP-890: refused, or added by its leader; brokers before took it, and no marker ever came."""

    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a")
        await producer.init()
        assert await producer.write(T0, b"1", version=version) == code
        ends = {NONE: (NONE if version == 12 else INVALID_TXN_STATE)}.get(code, INVALID_TXN_STATE)
        assert await producer.end(commit=True) == ends

    run(test, release=release)


def test_a_batch_that_comes_after_the_marker_opens_no_transaction() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a")
        await producer.init()
        await producer.transact(T0, b"1", commit=True)
        await settled(cluster)
        assert await producer.write(T0, b"late") == INVALID_TXN_STATE
        (partition, _) = cluster.state.topics["t"].partitions
        assert partition.last_stable_offset == partition.high_watermark == 2

    run(test)


@pytest.mark.parametrize("v2", [False, True], ids=["V1", "V2"])
def test_a_leader_whose_coordinator_is_not_there(v2: bool) -> None:
    """Producers expect errors of a leader: NOT_ENOUGH_REPLICAS is one that they try again after."""

    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a", v2=v2)
        await producer.init()
        assert v2 or await producer.add(T0) == [NONE]
        cluster.move_leader("t", 0, 1)
        number = offsets_topic_partition("a", 50)
        cluster.move_leader(TRANSACTIONS_TOPIC, number, 2)
        cluster.pause(2)
        assert await producer.write(T0, b"1") == NOT_ENOUGH_REPLICAS
        cluster.resume(2)
        cluster.state.coordinator_load_seconds = 5.0
        cluster.move_leader(TRANSACTIONS_TOPIC, number, 3)
        assert await producer.write(T0, b"1") == NOT_ENOUGH_REPLICAS
        assert await producer.end(commit=True) == COORDINATOR_LOAD_IN_PROGRESS
        assert await producer.init() == COORDINATOR_LOAD_IN_PROGRESS
        cluster.state.clock.advance(5.0)
        assert await producer.write(T0, b"1") == NONE
        producer.epoch -= 1
        assert await producer.write(T1, b"1") == INVALID_PRODUCER_EPOCH
        producer.epoch += 1
        assert await producer.end(commit=True) == NONE

    run(test, brokers=3)


def test_v2_writes_while_the_transaction_before_ends() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        cluster.delay_markers(10000)
        producer = RawProducer(cluster, raw_client, "a", v2=True)
        await producer.init()
        assert await producer.write(T0, b"1") == NONE
        assert await producer.end(commit=True) == NONE
        assert await producer.write(T0, b"2") == CONCURRENT_TRANSACTIONS
        assert await producer.commit_offset("g", T0, 1) == CONCURRENT_TRANSACTIONS
        cluster.state.clock.advance(10.0)
        producer.sequences[T1] = 3
        assert await producer.write(T1, b"2") == OUT_OF_ORDER_SEQUENCE_NUMBER
        assert await producer.write(T0, b"2") == NONE

    run(test)


def test_too_few_replicas_of_the_log() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a")
        await producer.init()
        assert await producer.add(T0) == [NONE]
        alone = await producer.coordinator()
        others = [node for node in (1, 2, 3) if node != alone]
        for node in others:
            cluster.kill(node)
        assert await producer.end(commit=True) == COORDINATOR_NOT_AVAILABLE
        assert await producer.add(T1) == [COORDINATOR_NOT_AVAILABLE]
        await cluster.restart(others[0])
        assert await producer.end(commit=True) == NONE

    run(test, brokers=3)


def test_a_coordinator_whose_topic_is_new() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        cluster.state.coordinator_start_seconds = 1.0
        producer = RawProducer(cluster, raw_client, "a")
        assert await producer.init() == NOT_COORDINATOR
        cluster.state.clock.advance(1.0)
        assert await producer.init() == NONE

    run(test)
