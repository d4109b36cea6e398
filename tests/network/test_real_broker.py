"""The network layer against real brokers: their versions and responses, and what an old one refuses."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kclient.config import Config
from kclient.errors import PortClosedError, VersionError
from kclient.generated.fetch_request import FetchRequest
from kclient.generated.find_coordinator_request import FindCoordinatorRequest
from kclient.generated.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kclient.network.cluster import Cluster
from kclient.runtime import Runtime
from kclient.types import TopicPartition
from localkafka import KafkaCluster
from tests.network.test_cluster import started, until

TOPIC = "network-room"


def latest(topic: str) -> ListOffsetsRequest:
    """Where partition 0 ends."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])])


@pytest.mark.spec("B.4.4", "B.4.5", "B.5.7")
def test_kafka_4_is_found_understood_and_asked_in_its_newest_versions(kafka1: KafkaCluster) -> None:
    kafka1.create_topic(TOPIC, partitions=3)

    async def main() -> None:
        async with started(*kafka1.bootstrap_servers.split(",")) as cluster:
            cluster.set_topics([TOPIC])
            await until(lambda: cluster.metadata.partition_count(TOPIC) == 3)
            leader = cluster.metadata.leader(TopicPartition(TOPIC, 0))
            assert leader.node_id == kafka1.leader_of(TOPIC, 0)
            assert leader.epoch == 0
            assert cluster.metadata.topic_id(TOPIC) is not None
            assert cluster.usable_version(leader.node_id, FetchRequest) == 18
            version, response = await cluster.request_versioned(leader.node_id, latest(TOPIC))
            assert (version, response.topics[0].partitions[0].offset) == (11, 0)  # type: ignore[attr-defined]

    asyncio.run(main())


@pytest.mark.spec("B.4.4", "B.4.5", "D-41")
def test_kafka_2_8_refuses_our_api_versions_and_is_understood_all_the_same(kafka28: KafkaCluster) -> None:
    kafka28.create_topic(TOPIC, partitions=1)

    async def main() -> None:
        async with started(*kafka28.bootstrap_servers.split(",")) as cluster:
            cluster.set_topics([TOPIC])
            await until(lambda: cluster.metadata.partition_count(TOPIC) == 1)
            node_id = cluster.metadata.leader(TopicPartition(TOPIC, 0)).node_id
            assert node_id is not None
            assert cluster.usable_version(node_id, FetchRequest) == 12
            assert (await cluster.request_versioned(node_id, latest(TOPIC)))[0] == 6
            with pytest.raises(VersionError) as caught:
                await cluster.request_any(FindCoordinatorRequest(coordinator_keys=["g"]), min_version=4)
            assert caught.value.api == "FindCoordinator"

    asyncio.run(main())


async def ask_on(cluster: Cluster, node_id: int) -> None:
    """Ask the same broker until it fails."""
    async with asyncio.timeout(5):
        while True:
            await cluster.request(node_id, latest(TOPIC))


@pytest.mark.slow
@pytest.mark.spec("B.4.8", "B.4.9", "B.5.2", "I-22")
def test_a_leader_that_is_killed_is_reported_and_replaced(
    kafka3: KafkaCluster, caplog: pytest.LogCaptureFixture
) -> None:
    kafka3.create_topic(TOPIC, partitions=1)
    tp = TopicPartition(TOPIC, 0)
    caplog.set_level(logging.WARNING, "kclient")

    async def main() -> None:
        cluster = Cluster(Config(bootstrap_servers=tuple(kafka3.bootstrap_servers.split(","))), Runtime())
        cluster.set_topics([TOPIC])
        await cluster.start()
        old = cluster.metadata.leader(tp)
        assert old.node_id is not None
        assert old.epoch is not None
        await cluster.request(old.node_id, latest(TOPIC))
        kafka3.kill(old.node_id)
        with pytest.raises(PortClosedError):
            await ask_on(cluster, old.node_id)
        async with asyncio.timeout(30):
            while cluster.metadata.leader(tp).node_id in (old.node_id, None):
                cluster.request_update("waiting for the new leader", reset_backoff=False)
                await asyncio.sleep(0.2)
        new = cluster.metadata.leader(tp)
        assert new.node_id is not None
        assert new.epoch is not None
        assert new.epoch > old.epoch
        await cluster.request(new.node_id, latest(TOPIC))
        await cluster.close(1)

    asyncio.run(main())
    assert len(caplog.records) <= 10
