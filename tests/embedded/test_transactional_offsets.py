"""Offsets committed within a transaction: visible after its marker, kept through a change of coordinator, refused to
producers and members of yesterday."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.embedded.partition import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kclient.embedded.transactions.coordinator import transactions_of
from kclient.generated.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from kclient.protocol.errors import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    ILLEGAL_GENERATION,
    INVALID_GROUP_ID,
    INVALID_PRODUCER_EPOCH,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_TXN_STATE,
    NONE,
    NOT_COORDINATOR,
    OFFSET_METADATA_TOO_LARGE,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTION_ABORTABLE,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSTABLE_OFFSET_COMMIT,
)
from kclient.records.aborted import control_type
from kclient.types import TopicPartition
from tests.embedded.raw_client import RawClient
from tests.embedded.raw_producer import RawProducer, coordinator_of, settled

T0 = TopicPartition("t", 0)
LIMIT = 1 << 20
Test = Callable[[EmbeddedCluster, RawClient], Awaitable[None]]
both = pytest.mark.parametrize("v2", [False, True], ids=["V1", "V2"])


def run(test: Test, **keys: Any) -> None:
    async def main() -> None:
        keys.setdefault("brokers", 1)
        async with EmbeddedCluster(topics={"t": 2}, **keys) as cluster, RawClient(cluster) as raw_client:
            await test(cluster, raw_client)

    asyncio.run(main())


async def fetched(
    cluster: EmbeddedCluster, raw_client: RawClient, *, stable: bool = True, group_id: str = "g"
) -> tuple[int, int]:
    """Committed offset and error code of partition 0."""
    topic = OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    request = OffsetFetchRequest(group_id=group_id, topics=[topic], require_stable=stable)
    node = await coordinator_of(cluster, raw_client, OFFSETS_TOPIC, group_id)
    response = await raw_client.ask(request, 7, node=node)
    row = response.topics[0].partitions[0]
    return row.committed_offset, row.error_code


async def commit(producer: RawProducer, offset: int, **keys: Any) -> int:
    """As a producer of its kind does: V1 adds the group first."""
    if not producer.v2:
        assert await producer.add_group("g") == NONE
    return await producer.commit_offset("g", T0, offset, **keys)


@both
@pytest.mark.spec("S0-37", "S0-22", "D-21")
def test_an_offset_is_unstable_until_the_marker(v2: bool) -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        cluster.delay_markers(60000)
        producer = RawProducer(cluster, raw_client, "a", v2=v2)
        await producer.init()
        assert await commit(producer, 7) == NONE
        assert await fetched(cluster, raw_client) == (-1, UNSTABLE_OFFSET_COMMIT)
        assert await fetched(cluster, raw_client, stable=False) == (-1, NONE)
        assert await producer.end(commit=True) == NONE
        assert await fetched(cluster, raw_client) == (-1, UNSTABLE_OFFSET_COMMIT)
        cluster.state.clock.advance(60.0)
        assert await fetched(cluster, raw_client) == (7, NONE)
        assert await commit(producer, 9) == NONE
        assert await fetched(cluster, raw_client, stable=False) == (7, NONE)
        assert await producer.end(commit=False) == NONE
        cluster.state.clock.advance(60.0)
        assert await fetched(cluster, raw_client) == (7, NONE)

    run(test)


@both
def test_records_and_markers_in_the_offsets_topic(v2: bool) -> None:
    """A transactional batch under the producer's name, then a control batch with the coordinator's epoch."""

    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a", v2=v2)
        await producer.init()
        epoch = producer.epoch
        for offset, commits in ((5, True), (6, False)):
            await commit(producer, offset)
            await producer.end(commit=commits)
            await settled(cluster)
        (partition,) = [one for one in cluster.state.topics[OFFSETS_TOPIC].partitions if one.log.end]
        headers = [stored.header for stored in partition.log.batches]
        assert {header.producer_id for header in headers} == {producer.producer_id}
        assert [header.is_transactional for header in headers] == [True] * 4
        kinds = [control_type(header, LIMIT) if header.is_control else None for header in headers]
        assert kinds == [None, 1, None, 0]
        epochs = [header.producer_epoch for header in headers]
        assert epochs == [epoch, epoch + v2, epoch + v2, epoch + 2 * v2]

    run(test)


@both
@pytest.mark.parametrize("commits", [True, False], ids=["commit", "abort"])
def test_another_coordinator_of_the_group_knows_what_is_pending(v2: bool, commits: bool) -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a", v2=v2)
        await producer.init()
        assert await commit(producer, 7) == NONE
        dead = await coordinator_of(cluster, raw_client, OFFSETS_TOPIC, "g")
        cluster.kill(dead)
        assert await fetched(cluster, raw_client) == (-1, UNSTABLE_OFFSET_COMMIT)
        assert await producer.end(commit=commits) == NONE
        await settled(cluster)
        assert await fetched(cluster, raw_client) == (7 if commits else -1, NONE)
        cluster.restart(dead)
        cluster.move_coordinator("g")
        assert await fetched(cluster, raw_client) == (7 if commits else -1, NONE)

    run(test, brokers=3)


@both
def test_markers_wait_for_a_leader_of_the_offsets_partition(v2: bool) -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a", v2=v2)
        await producer.init()
        assert await commit(producer, 7) == NONE
        node = await coordinator_of(cluster, raw_client, OFFSETS_TOPIC, "g")
        if node == await producer.coordinator():
            number = transactions_of(cluster.state.brokers[node]).check("a").number
            cluster.move_leader(TRANSACTIONS_TOPIC, number, node % 3 + 1)
        cluster.pause(node)
        assert await producer.end(commit=True) == NONE
        cluster.state.clock.advance(1.0)
        assert await producer.init() == CONCURRENT_TRANSACTIONS
        cluster.resume(node)
        cluster.state.clock.advance(1.0)
        assert await producer.init() == NONE
        assert await fetched(cluster, raw_client) == (7, NONE)

    run(test, brokers=3)


def test_members_of_yesterday_are_refused() -> None:
    """KIP-447: the group's fence, besides the producer's."""

    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a")
        await producer.init()
        await producer.add_group("g")
        assert await producer.commit_offset("g", T0, 1, member=("m", 1)) == ILLEGAL_GENERATION
        assert await producer.commit_offset("g", T0, 1) == NONE  # the group is there now, without members
        assert await producer.commit_offset("g", T0, 1, member=("m", 1)) == UNKNOWN_MEMBER_ID
        assert await producer.commit_offset("g", T0, 1, version=2) == NONE
        assert await producer.commit_offset("", T0, 1) == INVALID_GROUP_ID

    run(test)


def test_a_producer_of_yesterday_is_refused() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        old, new = (RawProducer(cluster, raw_client, "a", v2=v2) for v2 in (False, True))
        await old.init()
        assert await commit(old, 3) == NONE
        assert await new.init_patiently() == NONE
        assert await old.commit_offset("g", T0, 4) == INVALID_PRODUCER_EPOCH
        assert await commit(new, 5) == NONE
        await new.end(commit=True)
        await settled(cluster)
        assert await fetched(cluster, raw_client) == (5, NONE)

    run(test)


@pytest.mark.parametrize(
    ("release", "version", "code"),
    [
        ("4.3", 5, NONE),
        ("4.3", 4, TRANSACTION_ABORTABLE),
        ("4.3", 3, INVALID_TXN_STATE),
        ("3.8", 4, TRANSACTION_ABORTABLE),
        ("3.6", 3, NONE),
        ("2.8", 3, NONE),
    ],
)
def test_a_group_that_was_not_added(release: str, version: int, code: int) -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a")
        await producer.init(version=2)
        assert await producer.commit_offset("g", T0, 1, version=version) == code

    run(test, release=release)


def test_what_else_is_refused() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a")
        await producer.init()
        await producer.add_group("g")
        nowhere = TopicPartition("t", 9)
        assert await producer.commit_offset("g", nowhere, 1) == UNKNOWN_TOPIC_OR_PARTITION
        assert await producer.commit_offset("g", T0, 1, metadata="x" * 4097) == OFFSET_METADATA_TOO_LARGE
        stranger = RawProducer(cluster, raw_client, "b", v2=True)
        stranger.producer_id, stranger.epoch = 5, 0
        assert await stranger.commit_offset("g", T0, 1) == INVALID_PRODUCER_ID_MAPPING
        denied = {
            "Topic:t": TOPIC_AUTHORIZATION_FAILED,
            "Group:g": GROUP_AUTHORIZATION_FAILED,
            "TransactionalId:a": TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        }
        for resource, code in denied.items():
            cluster.deny("*", "ALL", resource)
            assert await producer.commit_offset("g", T0, 1) == code

    run(test)


@pytest.mark.parametrize(
    ("version", "code"), [(1, COORDINATOR_NOT_AVAILABLE), (2, COORDINATOR_LOAD_IN_PROGRESS)]
)
def test_a_group_that_is_being_read(version: int, code: int) -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a")
        await producer.init()
        assert await commit(producer, 1) == NONE
        cluster.state.coordinator_load_seconds = 30.0
        here = await coordinator_of(cluster, raw_client, OFFSETS_TOPIC, "g")
        cluster.move_coordinator("g")
        assert await producer.commit_offset("g", T0, 2, version=version) == code
        assert await coordinator_of(cluster, raw_client, OFFSETS_TOPIC, "g") != here
        cluster.state.clock.advance(30.0)
        assert await producer.commit_offset("g", T0, 2, version=version) == NONE

    run(test, brokers=3)


def test_a_broker_that_does_not_coordinate_the_group() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        producer = RawProducer(cluster, raw_client, "a")
        await producer.init()
        await producer.add_group("g")
        ask = raw_client.ask

        async def elsewhere(request: Any, version: int, node: int | None = None, lane: str = "") -> Any:
            return await ask(request, version, (node or 1) % 3 + 1, lane)

        raw_client.ask = elsewhere  # type: ignore[method-assign]
        assert await producer.commit_offset("g", T0, 1) == NOT_COORDINATOR

    run(test, brokers=3)
