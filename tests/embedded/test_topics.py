"""Topics made, grown, described and deleted by clients, and what those see who are at work on them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient import AsyncConsumer, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.embedded.partition import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kclient.generated.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kclient.generated.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kclient.generated.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kclient.generated.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kclient.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from kclient.protocol.errors import (
    INVALID_CONFIG,
    INVALID_REPLICATION_FACTOR,
    NONE,
    NOT_CONTROLLER,
    REQUEST_TIMED_OUT,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from tests.embedded.raw_client import RawClient

TOPIC = 2


def run(test: Callable[[EmbeddedCluster, RawClient], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with EmbeddedCluster(brokers=3, **options) as cluster, RawClient(cluster) as raw_client:
            await test(cluster, raw_client)

    asyncio.run(main())


async def create(
    raw_client: RawClient, topic: CreatableTopic, *, node: int = 1, version: int = 5, **options: Any
) -> Any:
    request = CreateTopicsRequest(topics=[topic], **{"timeout_ms": 1000, **options})
    return (await raw_client.ask(request, version, node)).topics[0]


def test_replicas_lie_where_they_were_assigned() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        rows = [CreatableReplicaAssignment(partition_index=n, broker_ids=[3 - n, 1]) for n in (0, 1)]
        asked = CreatableTopic(name="orders", num_partitions=-1, replication_factor=-1, assignments=rows)
        assert (await create(raw_client, asked)).error_code == NONE
        response = await raw_client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 9)
        reported = [(row.leader_id, row.replica_nodes) for row in response.topics[0].partitions]
        assert reported == [(3, [3, 1]), (2, [2, 1])]

    run(test)


@pytest.mark.parametrize(("release", "code"), [("2.8", INVALID_REPLICATION_FACTOR), ("4.3", NONE)])
def test_a_broker_that_is_down_holds_replicas_where_there_is_no_zookeeper(release: str, code: int) -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        cluster.kill(3)
        asked = CreatableTopic(name="orders", num_partitions=3, replication_factor=3)
        assert (await create(raw_client, asked)).error_code == code
        asked = CreatableTopic(name="more", num_partitions=3, replication_factor=4)
        assert (await create(raw_client, asked)).error_code == INVALID_REPLICATION_FACTOR
        if code == NONE:
            response = await raw_client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 9)
            reported = [
                (row.leader_id, row.isr_nodes, row.offline_replicas) for row in response.topics[0].partitions
            ]
            assert reported == [(1, [1, 2], [3]), (2, [2, 1], [3]), (1, [1, 2], [3])]
            await cluster.restart(3)
            assert cluster.state.topics["orders"].partitions[0].isr == [1, 2, 3]

    run(test, release=release)


@pytest.mark.parametrize(("release", "code"), [("2.8", NOT_CONTROLLER), ("3.0", NONE), ("4.3", NONE)])
def test_only_the_controller_makes_topics_where_brokers_do_not_forward(release: str, code: int) -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        asked = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
        assert (await create(raw_client, asked, node=2)).error_code == code
        delete = DeleteTopicsRequest(topic_names=["orders"], timeout_ms=1000)
        assert (await raw_client.ask(delete, 4, 2)).responses[0].error_code == code

    run(test, release=release)


@pytest.mark.parametrize(("release", "made"), [("2.8", True), ("4.3", False)])
def test_a_timeout_of_0_makes_the_topic_with_zookeeper_only(release: str, made: bool) -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        asked = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
        assert (await create(raw_client, asked, timeout_ms=0)).error_code == REQUEST_TIMED_OUT
        assert ("orders" in cluster.state.topics) is made

    run(test, release=release)


@pytest.mark.parametrize(
    ("release", "key", "value", "code"),
    [
        ("4.3", "message.format.version", "2.0", INVALID_CONFIG),
        ("2.8", "message.format.version", "2.0", NONE),
        ("2.8", "compression.zstd.level", "3", INVALID_CONFIG),
        ("4.3", "compression.zstd.level", "3", NONE),
        ("2.8", "segment.bytes", "1024", NONE),
        ("4.3", "segment.bytes", "1024", INVALID_CONFIG),
    ],
)
def test_releases_know_different_settings(release: str, key: str, value: str, code: int) -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        row = CreatableTopicConfig(name=key, value=value)
        asked = CreatableTopic(name="orders", num_partitions=1, replication_factor=1, configs=[row])
        assert (await create(raw_client, asked)).error_code == code

    run(test, release=release)


def test_everything_wants_its_right() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        cluster.create_topic("orders", 1)
        cluster.deny("*", "CREATE", "Cluster:*")
        cluster.deny("*", "CREATE", "Topic:new")
        asked = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
        assert (await create(raw_client, asked)).error_code == TOPIC_AUTHORIZATION_FAILED
        cluster.deny("*", "DELETE", "Topic:orders")
        delete = DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=1000)
        assert (await raw_client.ask(delete, 6)).responses[0].error_code == TOPIC_AUTHORIZATION_FAILED
        cluster.deny("*", "ALTER", "Topic:orders")
        grow = CreatePartitionsRequest(
            timeout_ms=1000, topics=[CreatePartitionsTopic(name="orders", count=2, assignments=None)]
        )
        assert (await raw_client.ask(grow, 3)).results[0].error_code == TOPIC_AUTHORIZATION_FAILED
        cluster.deny("*", "DESCRIBE_CONFIGS", "Topic:orders")
        ask = DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=TOPIC, resource_name="orders")]
        )
        assert (await raw_client.ask(ask, 4)).results[0].error_code == TOPIC_AUTHORIZATION_FAILED

    run(test)


@pytest.mark.spec("S1-33")
def test_the_internal_topics_have_their_settings() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        cluster.prepare_groups()
        from kclient.embedded.controller import create_internal_topic

        create_internal_topic(cluster.state, TRANSACTIONS_TOPIC)

        async def given(name: str) -> dict[str, str]:
            resource = DescribeConfigsResource(
                resource_type=TOPIC, resource_name=name, configuration_keys=None
            )
            response = await raw_client.ask(DescribeConfigsRequest(resources=[resource]), 4)
            return {row.name: row.value for row in response.results[0].configs if row.config_source == 1}

        assert await given(OFFSETS_TOPIC) == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        }
        assert await given(TRANSACTIONS_TOPIC) == {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "segment.bytes": "104857600",
            "min.insync.replicas": "2",
            "unclean.leader.election.enable": "false",
        }

    run(test)


@pytest.mark.spec("F-40")
def test_a_consumer_lives_through_a_topic_that_is_deleted_and_made_again() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        cluster.create_topic("orders", 1)
        cluster.produce("orders", ["old"])
        options = {"auto_offset_reset": "earliest", "metadata_max_age_ms": 100}
        async with AsyncConsumer(bootstrap_servers=cluster.bootstrap_servers, **options) as consumer:
            await consumer.assign([TopicPartition("orders", 0)])
            assert [record.value for record in await consumer.poll(timeout=5)] == [b"old"]
            cluster.recreate_topic("orders")
            cluster.produce("orders", ["new", "newer"])
            read: list[Any] = []
            while b"newer" not in read:
                read += [record.value for record in await consumer.poll(timeout=5)]

    run(test, config={"auto.create.topics.enable": False})


@pytest.mark.spec("F-41")
def test_new_partitions_are_seen_with_the_next_metadata() -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        cluster.create_topic("orders", 1)
        grow = CreatePartitionsRequest(
            timeout_ms=1000, topics=[CreatePartitionsTopic(name="orders", count=4, assignments=None)]
        )
        assert (await raw_client.ask(grow, 3)).results[0].error_code == NONE
        response = await raw_client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 12, 2)
        assert [row.leader_id for row in response.topics[0].partitions] == [1, 2, 3, 1]
        assert response.topics[0].topic_id == cluster.state.topics["orders"].topic_id

    run(test)


@pytest.mark.parametrize(("release", "code"), [("2.8", 5), ("4.3", UNKNOWN_TOPIC_OR_PARTITION)])
def test_a_topic_that_metadata_makes_is_there_the_next_time(release: str, code: int) -> None:
    async def test(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        request = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
        codes = [(await raw_client.ask(request, 9)).topics[0].error_code for _ in range(2)]
        assert codes == [code, NONE]

    run(test, release=release)
