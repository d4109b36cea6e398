"""The cluster as a thing that starts, answers, dies and comes back."""

from __future__ import annotations

import asyncio

import pytest

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.errors import ArgumentError, ConfigError, UsageError


def test_it_lives_on_the_callers_loop() -> None:
    async def main() -> list[int]:
        async with (
            EmbeddedCluster(brokers=3, topics={"orders": 6}) as cluster,
            AsyncConsumer(bootstrap_servers=cluster.bootstrap_servers) as consumer,
        ):
            return sorted(info.partition for info in await consumer.partitions_for("orders"))

    assert asyncio.run(main()) == [0, 1, 2, 3, 4, 5]


def test_it_lives_on_a_thread_of_its_own() -> None:
    async def ask(servers: str) -> list[int]:
        async with AsyncConsumer(bootstrap_servers=servers) as consumer:
            return sorted(info.leader for info in await consumer.partitions_for("orders"))

    with EmbeddedCluster(brokers=2, topics={"orders": 2}) as cluster:
        assert asyncio.run(ask(cluster.bootstrap_servers)) == [1, 2]
        cluster.kill(1)
        assert asyncio.run(ask(cluster.bootstrap_servers)) == [2, 2]
        cluster.restart(1)
        cluster.move_leader("orders", 0, 1)
        assert asyncio.run(ask(cluster.bootstrap_servers)) == [1, 2]
    with pytest.raises(UsageError, match="not running"):
        cluster.kill(1)


def test_a_setting_that_nothing_reads_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'group\.max\.size'"):
        EmbeddedCluster(config={"group.max.sise": 3})
    with pytest.raises(ConfigError, match=r"group\.max\.size must be int"):
        EmbeddedCluster(config={"group.max.size": "3"})
    with pytest.raises(ArgumentError, match="no Kafka release"):
        EmbeddedCluster(release="9.9")


def test_a_follower_that_was_paused_for_a_moment_replicates_again() -> None:
    with EmbeddedCluster(brokers=2, topics={"orders": 1}) as cluster:
        partition = cluster.state.topics["orders"].partitions[0]
        follower = next(node for node in partition.isr if node != partition.leader)
        cluster.pause(follower)
        cluster.produce("orders", ["one"])
        assert partition.high_watermark == 0
        cluster.resume(follower)
        assert partition.high_watermark == 1
