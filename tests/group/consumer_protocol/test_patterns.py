"""A SubscriptionPattern, which the broker resolves."""

from __future__ import annotations

import asyncio

import pytest

from kclient import SubscriptionPattern
from kclient.embedded import EmbeddedCluster
from kclient.errors import (
    BrokerError,
    UsageError,
)
from tests.group.consumer_protocol.embedded_members import (
    heartbeats,
    member,
    numbers,
    on_a_cluster,
    polled_until,
    quiet,
    raised_by_poll,
)

# --- patterns, and brokers that are too old


@pytest.mark.spec("A-14", "B.17.2", "B.17.3")
def test_a_pattern_goes_to_the_broker_as_text_and_topics_that_appear_come_automatically() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        async with member(cluster) as consumer:
            await consumer.subscribe(pattern=SubscriptionPattern("[tu].*"))
            await quiet(consumer)
            assert heartbeats(cluster)[0].subscribed_topic_regex == "[tu].*"
            assert heartbeats(cluster)[0].subscribed_topic_names == []
            assert "'[tu].*'" in (await consumer.explain(ask=False)).consumer
            cluster.create_topic("u1", partitions=1)
            cluster.create_topic("v1", partitions=1)
            cluster.clock.advance(11)
            await polled_until(lambda: len(consumer.assignment()) == 5, consumer)
            assert {tp.topic for tp in consumer.assignment()} == {"t", "u1"}

    on_a_cluster(scene)


@pytest.mark.spec("B.5.1", "A-14")
def test_with_a_pattern_of_the_brokers_metadata_is_asked_by_the_ids_of_what_is_assigned() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        cluster.create_topic("other", partitions=1)
        async with member(cluster) as consumer:
            await consumer.subscribe(pattern=SubscriptionPattern("t"))
            await quiet(consumer)
            asked = [seen.request.topics for seen in cluster.requests if seen.api == "Metadata"]
            by_id = [[(one.topic_id, one.name) for one in topics] for topics in asked]
            assert by_id[0] == []
            assert by_id[-1] == [(cluster.state.topics["t"].topic_id, None)]
            assert list(consumer._core.cluster.metadata.topics) == ["t"]
            cluster.produce("t", [b"x"], partition=3)
            async with asyncio.timeout(10):
                while not await consumer.poll(0.1):
                    pass
            await consumer.unsubscribe()
            await consumer.subscribe(["other"])
            await polled_until(lambda: numbers(consumer) == {0}, consumer)

    on_a_cluster(scene)


@pytest.mark.spec("A-14", "B.17.4")
def test_a_pattern_that_the_broker_cannot_read_is_fatal() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        async with member(cluster) as consumer:
            await consumer.subscribe(pattern=SubscriptionPattern("(?=t"))
            error = await raised_by_poll(consumer)
            assert isinstance(error, BrokerError)
            assert error.name == "INVALID_REGULAR_EXPRESSION"

    on_a_cluster(scene)


@pytest.mark.spec("B.2")
def test_a_pattern_for_brokers_needs_the_consumer_protocol() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        async with member(cluster, group_protocol="classic") as consumer:
            with pytest.raises(UsageError, match="SubscriptionPattern"):
                await consumer.subscribe(pattern=SubscriptionPattern("t"))
        async with member(cluster, group_protocol="auto") as consumer:
            await consumer.subscribe(pattern=SubscriptionPattern("t"))
            assert isinstance(await raised_by_poll(consumer), UsageError)

    on_a_cluster(scene, release="3.9")
