"""The cluster as a thing that starts, answers, dies and comes back."""

from __future__ import annotations

import ast
import asyncio
import socket
import threading
from pathlib import Path

import pytest

from kclient import AsyncConsumer, Consumer, embedded
from kclient.embedded import EmbeddedCluster, topic_config
from kclient.embedded.connection import ServerConnection
from kclient.embedded.settings import KEYS
from kclient.errors import ArgumentError, ConfigError, PortClosedError, UsageError
from kclient.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kclient.generated.metadata_request import MetadataRequest
from tests.embedded.raw_client import RawClient
from tests.waiting import until


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


def test_settings_may_be_text_as_in_a_brokers_file() -> None:
    given = {"auto.create.topics.enable": "false", "log.retention.ms": "-1", "group.max.size": " 3 "}
    settings = EmbeddedCluster(config=given).state.settings
    assert (settings.auto_create_topics_enable, settings.log_retention_ms, settings.group_max_size) == (
        False,
        -1,
        3,
    )


def test_a_setting_that_nothing_reads_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'group\.max\.size'"):
        EmbeddedCluster(config={"group.max.sise": 3})
    with pytest.raises(ConfigError, match=r"group\.max\.size must be int"):
        EmbeddedCluster(config={"group.max.size": "many"})
    with pytest.raises(ConfigError, match=r"auto\.create\.topics\.enable must be true or false, not 'no'"):
        EmbeddedCluster(config={"auto.create.topics.enable": "no"})
    with pytest.raises(ConfigError, match=r"offsets\.topic\.num\.partitions must be 1 or more, not 0"):
        EmbeddedCluster(config={"offsets.topic.num.partitions": 0})
    with pytest.raises(ArgumentError, match="Topics come with their partitions"):
        EmbeddedCluster(topics=["orders"])  # type: ignore[arg-type]
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


def test_a_cluster_runs_once_and_its_log_outlives_it() -> None:
    cluster = EmbeddedCluster(topics={"orders": 1})
    with pytest.raises(UsageError, match="not running"):
        cluster.produce("orders", ["early"])
    with cluster, Consumer(bootstrap_servers=cluster.bootstrap_servers) as consumer:
        consumer.list_topics()
    assert "Metadata" in [entry.api for entry in cluster.requests]
    with pytest.raises(UsageError, match="runs once"), cluster:
        pass


def test_a_start_that_fails_leaves_no_resources_open() -> None:
    before = [thread.name for thread in threading.enumerate()]
    with EmbeddedCluster() as cluster:
        taken = ("127.0.0.1", int(cluster.bootstrap_servers.rpartition(":")[2]))
        second = EmbeddedCluster(brokers=2, addresses=[("127.0.0.1", 0), taken])
        with pytest.raises(OSError, match="in use"), second:
            pass
        with (
            pytest.raises(PortClosedError),
            Consumer(bootstrap_servers=second.bootstrap_servers.split(",")[0]) as one,
        ):
            one.list_topics()
    after = [thread.name for thread in threading.enumerate()]
    assert after.count("kclient.embedded") == before.count("kclient.embedded")


def test_clients_of_a_cluster_that_ended_are_notified() -> None:
    with EmbeddedCluster() as cluster:
        servers = cluster.bootstrap_servers
    with pytest.raises(PortClosedError), Consumer(bootstrap_servers=servers) as consumer:
        consumer.list_topics()


def test_a_broker_that_is_killed_forgets_those_that_left_while_they_were_parked() -> None:
    async def main() -> None:
        async with EmbeddedCluster(topics={"orders": 1}) as cluster, RawClient(cluster) as raw_client:
            before = asyncio.all_tasks()
            patient = FetchRequest(
                max_wait_ms=600_000,
                min_bytes=1,
                topics=[FetchTopic(topic="orders", partitions=[FetchPartition(partition_max_bytes=100)])],
            )
            asked = asyncio.create_task(raw_client.ask(patient, 12))
            await until(lambda: any(entry.api == "Fetch" for entry in cluster.requests))
            asked.cancel()  # the client closes its connection
            await until(asked.done)
            await until(lambda: not cluster.state.brokers[1].connections[0].connected)
            assert asyncio.all_tasks() > before  # what was begun stays begun
            cluster.kill(1)
            await until(lambda: asyncio.all_tasks() <= before)
            assert cluster.state.brokers[1].connections == []

    asyncio.run(main())


def test_a_connection_that_a_dying_broker_still_accepted_is_not_served() -> None:
    async def main() -> None:
        async with EmbeddedCluster(brokers=2) as cluster:
            broker = cluster.state.brokers[1]
            late = ServerConnection(broker, broker.listeners[0], broker.connections, broker.handle_request)
            cluster.kill(1)
            mine, theirs = socket.socketpair()
            with mine:
                await asyncio.get_running_loop().connect_accepted_socket(lambda: late, theirs)
                await until(lambda: not late.connected)
            assert broker.connections == []

    asyncio.run(main())


def test_a_control_that_fails_with_a_timeout_fails_with_that_timeout() -> None:
    async def late() -> None:
        raise TimeoutError("its own")

    with EmbeddedCluster() as cluster, pytest.raises(TimeoutError, match="its own"):
        cluster.cluster_loop.call(late)


@pytest.mark.spec("F-17")
def test_a_connection_that_is_unused_is_closed() -> None:
    async def main() -> None:
        config = {"connections.max.idle.ms": 10_000}
        async with (
            EmbeddedCluster(topics={"orders": 1}, config=config) as cluster,
            RawClient(cluster) as raw_client,
            RawClient(cluster, "patient") as patient,
        ):
            broker = cluster.state.brokers[1]
            fetch = FetchRequest(
                max_wait_ms=100_000,
                min_bytes=1,
                topics=[FetchTopic(topic="orders", partitions=[FetchPartition(partition_max_bytes=100)])],
            )
            parked = asyncio.create_task(patient.ask(fetch, 12))
            for _ in range(2):
                await raw_client.ask(MetadataRequest(topics=None), 12)
                cluster.clock.advance("9s")
            await until(lambda: len(broker.connections) == 2)
            cluster.clock.advance("2s")
            await until(lambda: len(broker.connections) == 1)
            cluster.produce("orders", ["one"])
            assert (await parked).responses  # who waits for a response is not idle
            cluster.clock.advance("11s")
            await until(lambda: not broker.connections)

    asyncio.run(main())


def test_every_setting_is_read_somewhere() -> None:
    read, of_topics = set[str](), set[str]()
    for path in Path(embedded.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Attribute(attr=name):
                    read.add(name)
                case ast.Call(func=asked, args=[ast.Constant(value=key), *_]):
                    if ast.unparse(asked) in ("topic_config.value", "topic_config.number"):
                        of_topics.add(topic_config.KEYS[key].synonym)
    unread = [name for name, field in KEYS.items() if field.name not in read and name not in of_topics]
    assert unread == []
