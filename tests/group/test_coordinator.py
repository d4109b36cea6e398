"""FindCoordinator, row by row (B.15.2), and what makes a coordinator unknown."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.errors import BrokerError, ClosedError, ConnectError, GroupAuthorizationError
from kclient.generated.find_coordinator_response import Coordinator as Found
from kclient.generated.find_coordinator_response import FindCoordinatorResponse
from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.generated.heartbeat_response import HeartbeatResponse
from kclient.group.coordinator import COORDINATOR_PURPOSE, VersionedRequest
from tests.group.scripted_group import GROUP, coordinating, found, refused, scripted
from tests.scripted_broker import On, ScriptedBroker
from tests.waiting import until

ASK = VersionedRequest(HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="m-1"))


@pytest.mark.spec("S1-03", "S1-23", "S4-09", "S4-18", "B.15.2")
@pytest.mark.parametrize("code", [14, 15, 16])
def test_a_coordinator_that_is_not_there_yet_is_asked_for_again_after_a_pause(code: int) -> None:
    async def run() -> None:
        async with (
            scripted(*[On("FindCoordinatorRequest", refused(code))] * 2) as peer,
            coordinating(peer, retry_backoff_ms=40, retry_backoff_max_ms=40) as (_, coordinator, *_rest),
        ):
            assert await coordinator.ensure() == peer.node_id
            asked = [seen.at for seen in peer.requests if seen.name == "FindCoordinatorRequest"]
            assert len(asked) == 3
            assert all(after - before >= 0.03 for before, after in itertools.pairwise(asked))

    asyncio.run(run())


@pytest.mark.spec("S1-23", "B.15.2", "D-10")
def test_while_no_coordinator_is_found_metadata_is_updated() -> None:
    async def run() -> None:
        async with (
            scripted(*[On("FindCoordinatorRequest", refused(15))] * 3) as peer,
            coordinating(peer) as (cluster, coordinator, *_),
        ):
            seen = cluster.metadata.changed.count
            await coordinator.ensure()
            async with asyncio.timeout(2):
                await cluster.metadata.changed.wait(seen)

    asyncio.run(run())


@pytest.mark.spec("S4-17")
def test_a_coordinator_that_was_found_is_connected_to_before_anything_is_asked_of_it() -> None:
    async def run() -> None:
        async with (
            scripted() as peer,
            coordinating(peer) as (cluster, coordinator, *_),
        ):
            node_id = await coordinator.ensure()
            await until(lambda: cluster.is_connected(node_id, COORDINATOR_PURPOSE))
            assert {seen.name for seen in peer.requests} <= {"MetadataRequest", "FindCoordinatorRequest"}

    asyncio.run(run())


@pytest.mark.spec("S1-06", "B.15.2")
def test_a_group_that_we_may_not_describe_is_reported_at_once() -> None:
    async def run() -> None:
        async with (
            scripted(On("FindCoordinatorRequest", refused(30))) as peer,
            coordinating(peer) as (_, coordinator, *_rest),
        ):
            with pytest.raises(GroupAuthorizationError) as caught:
                await coordinator.ensure()
            assert caught.value.group == GROUP

    asyncio.run(run())


@pytest.mark.spec("B.15.2")
@pytest.mark.parametrize("code", [24, 42, -1, 999])
def test_any_other_code_is_reported_at_once(code: int) -> None:
    async def run() -> None:
        async with (
            scripted(On("FindCoordinatorRequest", refused(code))) as peer,
            coordinating(peer) as (_, coordinator, *_rest),
        ):
            with pytest.raises(BrokerError) as caught:
                await coordinator.ensure()
            assert caught.value.code == code

    asyncio.run(run())


@pytest.mark.spec("B.15.2")
def test_a_response_without_our_group_is_an_error() -> None:
    async def run() -> None:
        async with (
            scripted(On("FindCoordinatorRequest", FindCoordinatorResponse())) as peer,
            coordinating(peer) as (_, coordinator, *_rest),
        ):
            with pytest.raises(BrokerError, match="names no coordinator"):
                await coordinator.ensure()

    asyncio.run(run())


@pytest.mark.spec("H-09", "B.15.2")
@pytest.mark.parametrize(("node_id", "host", "port"), [(-1, "", -1), (0, "", 9092), (0, "127.0.0.1", 70_000)])
def test_an_address_that_cannot_be_counts_as_no_coordinator(node_id: int, host: str, port: int) -> None:
    nowhere = FindCoordinatorResponse(coordinators=[Found(key=GROUP, node_id=node_id, host=host, port=port)])

    async def run() -> None:
        async with (
            scripted(On("FindCoordinatorRequest", nowhere)) as peer,
            coordinating(peer) as (_, coordinator, *_rest),
        ):
            with pytest.raises(BrokerError) as caught:
                await coordinator.lookup()
            assert (caught.value.code, caught.value.retriable) == (15, True)
            assert await coordinator.ensure() == peer.node_id

    asyncio.run(run())


@pytest.mark.spec("S4-11", "B.15.2", "B.4.5")
@pytest.mark.parametrize("version", range(7))
def test_every_version_of_the_request(version: int) -> None:
    async def run() -> None:
        peer = ScriptedBroker(topics={}, versions={"FindCoordinatorRequest": (version, version)})
        async with peer, coordinating(peer) as (_, coordinator, *_rest):
            old = FindCoordinatorResponse(node_id=peer.node_id, host=peer.host, port=peer.port)
            peer.script.append(On("FindCoordinatorRequest", old if version < 4 else found(peer)))
            assert await coordinator.ensure() == peer.node_id
            (asked,) = peer.of("FindCoordinatorRequest")
            assert (asked.key, asked.coordinator_keys) == ((GROUP, []) if version < 4 else ("", [GROUP]))
            assert asked.key_type == 0

    asyncio.run(run())


@pytest.mark.spec("S1-24", "S4-18")
def test_flows_that_wait_share_one_lookup_and_one_that_gives_up_does_not_end_it() -> None:
    async def run() -> None:
        peer = scripted()
        async with peer, coordinating(peer) as (_, coordinator, *_rest):
            peer.script.append(On("FindCoordinatorRequest", found(peer), delay=0.05))
            impatient, patient = (asyncio.create_task(coordinator.ensure()) for _ in range(2))
            await asyncio.sleep(0.01)
            impatient.cancel()
            assert await patient == peer.node_id
            assert len(peer.of("FindCoordinatorRequest")) == 1

    asyncio.run(run())


@pytest.mark.spec("I-24")
def test_closing_ends_a_waiting_lookup_with_closed_error() -> None:
    async def run() -> None:
        async with (
            scripted(On("FindCoordinatorRequest")) as peer,
            coordinating(peer) as (_, coordinator, *_r),
        ):
            waiting = asyncio.create_task(coordinator.ensure())
            while not peer.of("FindCoordinatorRequest"):  # noqa: ASYNC110 – the peer has no event
                await asyncio.sleep(0.001)
            await coordinator.close()
            with pytest.raises(ClosedError):
                await waiting

    asyncio.run(run())


@pytest.mark.spec("S4-16")
def test_requests_to_the_coordinator_have_a_connection_of_their_own() -> None:
    async def run() -> None:
        async with scripted() as peer, coordinating(peer) as (cluster, coordinator, *_):
            await coordinator.ensure()
            await coordinator.request(HeartbeatResponse, ASK)
            await cluster.request_any(HeartbeatRequest(group_id=GROUP))
            ours, others = [seen.connection for seen in peer.requests if seen.name == "HeartbeatRequest"]
            assert ours != others

    asyncio.run(run())


@pytest.mark.spec("D-04", "D-10", "B.15.5")
def test_a_lost_connection_makes_the_coordinator_unknown() -> None:
    async def run() -> None:
        async with (
            scripted(On("HeartbeatRequest", close=True)) as peer,
            coordinating(peer) as (_, coordinator, *_rest),
        ):
            await coordinator.ensure()
            with pytest.raises(ConnectError) as caught:
                await coordinator.request(HeartbeatResponse, ASK)
            assert caught.value.retriable
            assert coordinator.node_id is None

    asyncio.run(run())


@pytest.mark.spec("D-04", "B.13.9")
def test_a_connection_to_an_earlier_coordinator_that_is_lost_says_nothing_of_the_present_one() -> None:
    async def run() -> None:
        async with (
            scripted(On("HeartbeatRequest")) as old,
            scripted(node_id=7) as new,
            coordinating(old) as (_, coordinator, *_r),
        ):
            await coordinator.ensure()
            asking = asyncio.create_task(coordinator.request(HeartbeatResponse, ASK))
            while not old.of("HeartbeatRequest"):  # noqa: ASYNC110 – the peer has no event
                await asyncio.sleep(0.001)
            coordinator.mark_unknown("test")
            old.script.append(On("FindCoordinatorRequest", found(new)))
            await coordinator.ensure()
            old.drop_connections()
            with pytest.raises(ConnectError):
                await asking
            assert coordinator.node_id == 7

    asyncio.run(run())


@pytest.mark.spec("S0-21", "S4-26")
def test_without_a_coordinator_a_request_fails_retriably_and_nothing_is_sent() -> None:
    async def run() -> None:
        async with scripted() as peer, coordinating(peer) as (_, coordinator, *_rest):
            with pytest.raises(BrokerError) as caught:
                await coordinator.request(HeartbeatResponse, ASK)
            assert (caught.value.code, caught.value.retriable) == (15, True)
            assert not peer.of("HeartbeatRequest")

    asyncio.run(run())


@pytest.mark.spec("S1-36")
def test_the_address_in_the_response_is_used_even_if_metadata_does_not_know_the_broker() -> None:
    async def run() -> None:
        async with (
            scripted() as peer,
            scripted(node_id=7) as other,
            coordinating(peer) as (_, coordinator, *_r),
        ):
            peer.script.append(On("FindCoordinatorRequest", found(other)))
            assert await coordinator.ensure() == 7
            await coordinator.request(HeartbeatResponse, ASK)
            assert other.of("HeartbeatRequest")

    asyncio.run(run())


@pytest.mark.spec("I-34")
def test_a_coordinator_of_the_past_is_left_when_the_new_one_is_found() -> None:
    async def run() -> None:
        async with (
            EmbeddedCluster(2, topics={"t": 1}) as cluster,
            AsyncConsumer("t", bootstrap_servers=cluster.bootstrap_servers, group_id=GROUP) as consumer,
        ):
            while not any(request.api == "Fetch" for request in cluster.requests):
                await consumer.poll(
                    0.1
                )  # every connection is open then, and only the coordinator's will close
            coordinator = consumer._core.group.coordinator
            old = coordinator.node_id
            assert old is not None
            before = len(cluster.state.brokers[old].connections)
            cluster.move_coordinator(GROUP, 3 - old)
            async with asyncio.timeout(10):
                while len(cluster.state.brokers[old].connections) == before:
                    await consumer.commit()
                    await consumer.poll(0.05)
            assert coordinator.node_id == 3 - old
            assert len(cluster.state.brokers[old].connections) == before - 1

    asyncio.run(run())
