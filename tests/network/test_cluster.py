"""Routing, reconnecting and recovery of a running client, against scripted brokers."""

from __future__ import annotations

import asyncio
import itertools
import logging
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kclient.config import Config
from kclient.errors import (
    ClosedError,
    ConnectError,
    DeadlineError,
    KclientError,
    PortClosedError,
    VersionError,
)
from kclient.generated.fetch_request import FetchRequest
from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.generated.heartbeat_response import HeartbeatResponse
from kclient.network.cluster import Cluster
from kclient.network.connection import FIRST_CORRELATION_ID
from kclient.protocol.registry import write_message
from kclient.runtime import Runtime
from kclient.types import LeaderAndEpoch, TopicPartition
from tests.default_responses import api_versions
from tests.realtime import within
from tests.scripted_broker import On, ScriptedBroker
from tests.waiting import until

OK = HeartbeatResponse()


@asynccontextmanager
async def started(*servers: str, **config: Any) -> AsyncIterator[Cluster]:
    """A client that is started, and closed at the end."""
    cluster = Cluster(Config(bootstrap_servers=servers, **config), Runtime())
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.close(1)


async def beat(cluster: Cluster, node_id: int = 0, **options: Any) -> Any:
    return await cluster.request(node_id, HeartbeatRequest(), **options)


@pytest.mark.spec("B.4.5")
def test_a_request_goes_to_its_node_in_the_newest_common_version() -> None:
    async def main() -> None:
        async with (
            ScriptedBroker(On("HeartbeatRequest", OK), node_id=1, topics={}) as one,
            ScriptedBroker(
                On("HeartbeatRequest", HeartbeatResponse(error_code=27)),
                node_id=2,
                versions={"HeartbeatRequest": (0, 3)},
            ) as two,
        ):
            one.brokers = [one, two]
            async with started(one.address) as cluster:
                assert cluster.usable_version(3, HeartbeatRequest) is None
                assert await cluster.request_versioned(1, HeartbeatRequest()) == (4, OK)
                version, response = await cluster.request_versioned(2, HeartbeatRequest())
                assert (version, response.error_code) == (3, 27)
                assert cluster.usable_version(2, HeartbeatRequest) == 3
                assert cluster.usable_version(2, HeartbeatRequest, max_version=2) == 2

    asyncio.run(main())


@pytest.mark.spec("B.4.5")
def test_a_version_that_the_broker_lacks_fails_that_request_alone() -> None:
    async def main() -> None:
        script = On("HeartbeatRequest", OK)
        async with (
            ScriptedBroker(script, topics={}, versions={"FetchRequest": (4, 11)}) as peer,
            started(peer.address) as cluster,
        ):
            with pytest.raises(VersionError) as caught:
                await cluster.request(0, FetchRequest(), min_version=13)
            assert not caught.value.retriable
            assert await beat(cluster) == OK

    asyncio.run(main())


@pytest.mark.spec("S4-16", "I-34")
def test_the_coordinator_has_a_connection_of_its_own() -> None:
    async def main() -> None:
        slow, quick = On("FetchRequest", delay=30), On("HeartbeatRequest", OK)
        async with ScriptedBroker(slow, quick, quick, topics={}) as peer, started(peer.address) as cluster:
            fetch = asyncio.ensure_future(cluster.request(0, FetchRequest()))
            await until(lambda: peer.of("FetchRequest"))
            await beat(cluster, purpose="coordinator")
            await beat(cluster, purpose="coordinator")
            assert not fetch.done()
            fetch.cancel()
            used = {seen.name: set() for seen in peer.requests}
            for seen in peer.requests:
                used[seen.name].add(seen.connection)
            assert len(used["HeartbeatRequest"]) == 1
            assert used["HeartbeatRequest"].isdisjoint(used["FetchRequest"])
            assert len(peer.connections) == 3  # bootstrap, node, coordinator

    asyncio.run(main())


@pytest.mark.spec("B.4.8", "S0-45")
def test_a_lost_connection_fails_the_request_updates_metadata_and_is_recreated() -> None:
    async def main() -> None:
        script = [On("HeartbeatRequest", close=True), On("HeartbeatRequest", OK)]
        async with ScriptedBroker(*script, topics={}) as peer, started(peer.address) as cluster:
            asked = len(peer.of("MetadataRequest"))
            with pytest.raises(PortClosedError) as caught:
                await beat(cluster)
            assert caught.value.retriable
            await until(lambda: len(peer.of("MetadataRequest")) > asked)
            assert await beat(cluster) == OK

    asyncio.run(main())


def test_a_broker_that_worked_and_is_down_is_not_advertised_wrongly() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={}) as peer:
            async with ScriptedBroker(On("HeartbeatRequest", OK), node_id=1) as goes:
                peer.brokers = [peer, goes]
                cluster = Cluster(Config(bootstrap_servers=(peer.address,)), Runtime())
                await cluster.start()
                await beat(cluster, 1)
            for purpose in ("", "coordinator"):
                with pytest.raises(PortClosedError) as caught:
                    await beat(cluster, 1, purpose=purpose)
                assert caught.value.node_id == 1
            await cluster.close(1)

    asyncio.run(main())


@pytest.mark.spec("B.4.10", "D-13", "I-26")
def test_reconnecting_waits_longer_and_longer() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={}) as peer:
            config = {"reconnect_backoff_ms": 50, "reconnect_backoff_max_ms": 200}
            async with started(peer.address, metadata_recovery_strategy="none", **config) as cluster:
                peer._server.close()
                peer.drop_connections()
                loop = asyncio.get_running_loop()
                times = []
                for _ in range(6):
                    with pytest.raises(ConnectError):
                        await beat(cluster)
                    times.append(loop.time())
                pauses = [after - before for before, after in itertools.pairwise(times)]
                assert pauses[0] < pauses[-1]
                assert 0.15 < pauses[-1] < 0.4  # 200 ms, at least 0.8 of it, and what a loaded machine adds

    asyncio.run(main())


@pytest.mark.spec("B.4.10")
def test_the_reconnect_delay_starts_again_when_a_connection_is_ready() -> None:
    async def main() -> None:
        drop, ok = On("HeartbeatRequest", close=True), On("HeartbeatRequest", OK)
        config = {"reconnect_backoff_ms": 20, "reconnect_backoff_max_ms": 60_000}
        async with (
            ScriptedBroker(*[drop, ok] * 7, topics={}) as peer,
            started(peer.address, **config) as cluster,
        ):
            for _ in range(7):  # without the reset the last delay would be 1.3 s
                with pytest.raises(PortClosedError):
                    await beat(cluster)
                with within(0.9):
                    await beat(cluster)

    asyncio.run(main())


@pytest.mark.spec("B.4.9", "D-04")
def test_a_broker_that_stops_answering_costs_the_connection() -> None:
    async def main() -> None:
        script = [On("HeartbeatRequest"), On("HeartbeatRequest", OK)]
        async with ScriptedBroker(*script, topics={}) as peer, started(peer.address) as cluster:
            with pytest.raises(PortClosedError, match="no response"):
                await beat(cluster, timeout=0.2)
            assert await beat(cluster) == OK
            first, second = (seen.connection for seen in peer.requests if seen.name == "HeartbeatRequest")
            assert first != second

    asyncio.run(main())


def test_a_waiter_that_is_cancelled_leaves_the_connection_to_the_others() -> None:
    async def main() -> None:
        script = [
            On("HeartbeatRequest", OK, delay=0.2),
            On("HeartbeatRequest", HeartbeatResponse(error_code=27)),
        ]
        async with ScriptedBroker(*script, topics={}) as peer, started(peer.address) as cluster:
            first = asyncio.ensure_future(beat(cluster))
            await until(lambda: peer.of("HeartbeatRequest"))
            first.cancel()
            assert (await beat(cluster)).error_code == 27
            assert len({seen.connection for seen in peer.requests if seen.name == "HeartbeatRequest"}) == 1

    asyncio.run(main())


def test_a_node_that_metadata_does_not_name_is_a_retriable_error_and_asks_for_metadata() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={}) as peer, started(peer.address) as cluster:
            asked = len(peer.of("MetadataRequest"))
            with pytest.raises(ConnectError) as caught:
                await beat(cluster, 7)
            assert (caught.value.stage, caught.value.node_id) == ("metadata", 7)
            assert caught.value.retriable
            await until(lambda: len(peer.of("MetadataRequest")) > asked)

    asyncio.run(main())


def test_a_broker_that_another_response_named_can_be_used() -> None:
    async def main() -> None:
        async with (
            ScriptedBroker(topics={}) as peer,
            ScriptedBroker(On("HeartbeatRequest", OK), node_id=5) as new,
            started(peer.address) as cluster,
        ):
            cluster.learn_broker(5, new.host, new.port)
            assert await beat(cluster, 5, purpose="coordinator") == OK

    asyncio.run(main())


@pytest.mark.spec("U-09")
def test_a_broker_that_moved_is_asked_at_its_new_address() -> None:
    async def main() -> None:
        async with (
            ScriptedBroker(On("HeartbeatRequest", OK), topics={}) as old,
            ScriptedBroker(On("HeartbeatRequest", HeartbeatResponse(error_code=16)), topics={}) as new,
            started(old.address) as cluster,
        ):
            await beat(cluster)
            old.brokers = [new]
            await cluster.update_now(2)
            assert (await beat(cluster)).error_code == 16

    asyncio.run(main())


@pytest.mark.spec("B.4.7", "B.5.9", "U-09")
def test_when_all_brokers_are_gone_the_client_begins_again_with_the_bootstrap_servers() -> None:
    async def main() -> None:
        tp = TopicPartition("orders", 0)
        async with ScriptedBroker(topics={"orders": 1}) as stays:
            async with ScriptedBroker(node_id=1) as goes:
                stays.brokers, stays.leaders = [goes], {("orders", 0): 1}
                cluster = Cluster(Config(bootstrap_servers=(stays.address,)), Runtime())
                cluster.set_topics(["orders"])
                await cluster.start()
                assert cluster.metadata.leader(tp) == LeaderAndEpoch(1, 0)
                stays.brokers, stays.leaders, stays.leader_epoch = [stays], {}, 1
            await until(lambda: cluster.metadata.leader(tp) == LeaderAndEpoch(0, 1))
            await cluster.close(1)

    asyncio.run(main())


@pytest.mark.spec("B.5.9")
def test_without_the_rebootstrap_strategy_the_known_brokers_are_tried_on() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={}) as stays:
            async with ScriptedBroker(node_id=1) as goes:
                stays.brokers = [goes]
                config = Config(bootstrap_servers=(stays.address,), metadata_recovery_strategy="none")
                cluster = Cluster(config, Runtime())
                await cluster.start()
                asked = len(stays.of("MetadataRequest"))
            with pytest.raises(DeadlineError):
                await cluster.update_now(0.6)
            assert len(stays.of("MetadataRequest")) == asked
            assert list(cluster.metadata.brokers) == [1]
            await cluster.close(1)

    asyncio.run(main())


@pytest.mark.spec("I-37", "D-13")
def test_one_warning_per_broker_and_backoff_step(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with ScriptedBroker(On("HeartbeatRequest", OK), topics={}) as peer:
            config = {"reconnect_backoff_ms": 20, "reconnect_backoff_max_ms": 80}
            async with started(peer.address, metadata_recovery_strategy="none", **config) as cluster:
                await beat(cluster, purpose="coordinator")
                peer._server.close()
                peer.drop_connections()
                caplog.clear()
                for _ in range(12):
                    await beat_fails(cluster, "")
                    await beat_fails(cluster, "coordinator")

    async def beat_fails(cluster: Cluster, purpose: str) -> None:
        with pytest.raises(ConnectError):
            await beat(cluster, purpose=purpose)

    caplog.set_level(logging.DEBUG, "kclient.connection")
    asyncio.run(main())
    ours = [record for record in caplog.records if record.name == "kclient.connection"]
    warnings = [record for record in ours if record.levelno == logging.WARNING]
    assert 1 <= len(warnings) <= 6
    assert len(ours) > 20  # the rest is logged at DEBUG
    assert {record.node_id for record in warnings} == {0}  # type: ignore[attr-defined]
    assert all(record.host == "127.0.0.1" for record in warnings)  # type: ignore[attr-defined]


@pytest.mark.spec("I-24")
def test_close_ends_what_waits_and_everything_after_it_is_refused() -> None:
    async def main() -> None:
        async with ScriptedBroker(On("HeartbeatRequest"), topics={}) as peer:
            cluster = Cluster(Config(bootstrap_servers=(peer.address,)), Runtime())
            await cluster.start()
            waiting = asyncio.ensure_future(beat(cluster))
            await until(lambda: peer.of("HeartbeatRequest"))
            with within(2):
                await cluster.close(5)
            with pytest.raises(PortClosedError, match="closed by kclient"):
                await waiting
            with pytest.raises(ClosedError):
                await beat(cluster)
            names = {task.get_name() for task in asyncio.all_tasks()}
            assert not any("connect" in name or "metadata" in name for name in names)

    asyncio.run(main())


def test_close_while_a_request_waits_for_its_connection() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={}) as peer:
            cluster = Cluster(Config(bootstrap_servers=(peer.address,), reconnect_backoff_ms=5000), Runtime())
            await cluster.start()
            peer._server.close()
            peer.drop_connections()
            await asyncio.sleep(0.05)
            waiting = asyncio.ensure_future(beat(cluster))
            await asyncio.sleep(0.05)
            await cluster.close(1)
            with pytest.raises(PortClosedError):
                await asyncio.wait_for(waiting, 1)

    asyncio.run(main())


@pytest.mark.spec("B.4.7", "E6")
def test_the_least_loaded_node_is_the_one_with_the_fewest_requests_in_flight() -> None:
    async def main() -> None:
        async with (
            ScriptedBroker(*[On("FetchRequest", delay=1)] * 2, node_id=1, topics={}) as busy,
            ScriptedBroker(*[On("HeartbeatRequest", OK)] * 9, node_id=2) as idle,
        ):
            busy.brokers = [busy, idle]
            async with started(busy.address) as cluster:
                await beat(cluster, 2)
                fetches = [asyncio.ensure_future(cluster.request(1, FetchRequest())) for _ in range(2)]
                await until(lambda: busy.of("FetchRequest"))
                for _ in range(8):
                    await cluster.request_any(HeartbeatRequest())
                for fetch in fetches:
                    fetch.cancel()
                busy.script.clear()

    asyncio.run(main())


def test_a_request_that_finds_no_connection_in_time_says_so() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={}) as peer:
            config = {"reconnect_backoff_ms": 3000, "reconnect_backoff_max_ms": 3000}
            async with started(peer.address, **config) as cluster:
                peer.drop_connections()
                await asyncio.sleep(0.05)
                with pytest.raises(DeadlineError) as caught:
                    await beat(cluster, timeout=0.1)
                assert caught.value.retriable
                assert "connection" in caught.value.waiting_for

    asyncio.run(main())


@pytest.mark.spec("H-07", "B.4.8")
def test_a_connection_that_ends_as_it_becomes_ready_is_not_kept() -> None:
    """The broker answers ApiVersions twice at once: the second response ends the connection before anybody used it."""

    async def main() -> None:
        config = {"reconnect_backoff_ms": 1, "reconnect_backoff_max_ms": 1}
        async with (
            ScriptedBroker(On("HeartbeatRequest", OK), topics={}) as peer,
            started(peer.address, **config) as cluster,
        ):
            body = b"".join(write_message(api_versions({}), 4))
            frame = struct.pack(">ii", 4 + len(body), FIRST_CORRELATION_ID) + body
            peer.script.append(On("ApiVersionsRequest", raw=frame + frame))
            with pytest.raises(ConnectError):
                await beat(cluster, purpose="coordinator")
            assert await beat(cluster, purpose="coordinator") == OK

    asyncio.run(main())


@pytest.mark.spec("I-24", "I-30")
@pytest.mark.parametrize("steps", range(8))
def test_a_start_that_is_overtaken_by_close_leaves_nothing_running(steps: int) -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={}) as peer:
            cluster = Cluster(Config(bootstrap_servers=(peer.address,)), Runtime())
            starting = asyncio.create_task(cluster.start())
            async with asyncio.timeout(5):
                while cluster.usable_version(0, HeartbeatRequest) is None:  # noqa: ASYNC110 – the very moment counts
                    await asyncio.sleep(0)
            for _ in range(steps):
                await asyncio.sleep(0)
            await cluster.close(1)
            await asyncio.wait({starting})
            assert isinstance(starting.exception(), KclientError | None)
            await asyncio.sleep(0)
            assert not [task for task in asyncio.all_tasks() if "kclient" in task.get_name()]

    asyncio.run(main())


def test_a_tiny_idle_limit_leaves_time_to_use_a_connection() -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(2),
            ScriptedBroker(On("HeartbeatRequest", OK), topics={}) as peer,
            started(peer.address, connections_max_idle_ms=0) as cluster,
        ):
            assert await beat(cluster) == OK

    asyncio.run(main())
