"""Scenario A-16: throttled clients, brokers that fall silent, peers that vanish, connections that never come about."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import Any

import pytest

from kclient import AsyncConsumer, OffsetAndMetadata
from kclient.errors import ConnectError
from tests.scenarios.simulated import Dial, Place, simulate
from tests.scenarios.support import T0, T1

GROUP: dict[str, Any] = {"group_id": "g", "heartbeat_interval_ms": 100, "session_timeout_ms": 10_000}
THROTTLE_MS = 500


def throttled(request: Any, response: Any) -> Any:
    """The throttle time alone: this broker goes on reading, so only the client can keep the silence."""
    response.throttle_time_ms = THROTTLE_MS
    return response


# --- throttling


@pytest.mark.spec("A-16", "B.4.6", "S4-16")
@pytest.mark.parametrize(("release", "silent"), [("4.3", True), ("2.0", True), ("1.1", False)])
def test_a16_nothing_goes_to_a_coordinator_that_throttles(release: str, silent: bool) -> None:
    """Neither heartbeats nor commits, from the versions on in which the client has to keep the silence."""

    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["0", "1"])
        consumer = place.consumer("t", **GROUP)
        await place.read(consumer, 2)
        place.cluster.on("Heartbeat", throttled, times=1)
        before = len(place.asked("Heartbeat"))
        await place.poll_until(consumer, lambda: len(place.asked("Heartbeat")) > before)
        (first,) = place.asked("Heartbeat")[before:]
        await asyncio.sleep(0.05)
        await place.on_member(consumer.commit())
        await place.poll_until(consumer, lambda: len(place.asked("Heartbeat", first.at)) > 1)
        next_ones = [place.asked("Heartbeat", first.at)[1], place.asked("OffsetCommit", first.at)[0]]
        for one in next_ones:
            assert one.connection == first.connection
            assert (one.at - first.at >= THROTTLE_MS / 1000) is silent

    simulate(scenario, release=release, topics={"t": 1})


@pytest.mark.spec("A-16", "B.4.6")
def test_a16_only_the_node_that_throttles_is_left_in_peace() -> None:
    async def scenario(place: Place) -> None:
        cluster = place.cluster
        cluster.move_leader("t", 0, 1)
        cluster.move_leader("t", 1, 2)
        consumer = place.consumer()
        await place.on_member(consumer.assign([T0, T1]))
        await place.poll_until(consumer, lambda: len(place.asked("Fetch", node=1)) > 3)
        seen = place.now
        cluster.on("Fetch", throttled, times=1, broker=1)
        await place.poll_until(consumer, lambda: len(place.asked("Fetch", seen, node=1)) > 1)
        first, following = [one.at for one in place.asked("Fetch", seen, node=1)][:2]
        assert following - first >= THROTTLE_MS / 1000
        meanwhile = [one for one in place.asked("Fetch", first, node=2) if one.at < following]
        assert len(meanwhile) >= 5
        assert not [
            one for one in cluster.requests if one.node == 1 and first < one.at < first + THROTTLE_MS / 1000
        ]

    simulate(scenario, brokers=2, topics={"t": 2})


@pytest.mark.spec("A-16", "B.10.14", "B.4.6")
def test_a16_an_empty_full_fetch_that_was_throttled_begins_a_session_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def emptied(request: Any, response: Any) -> Any:
        response.responses = []
        return throttled(request, response)

    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["0", "1"])
        place.cluster.on("Fetch", emptied, times=1)
        consumer = place.consumer()
        await place.on_member(consumer.assign([T0]))
        await place.read(consumer, 2)
        first, second = place.asked("Fetch")[:2]
        assert [(one.request.session_id, one.request.session_epoch) for one in (first, second)] == [
            (0, 0)
        ] * 2
        assert [partition.partition for partition in second.request.topics[0].partitions] == [0]
        assert second.at - first.at >= THROTTLE_MS / 1000

    with caplog.at_level(logging.WARNING):
        simulate(scenario, topics={"t": 1})
    assert caplog.records == []


# --- silence


@pytest.mark.spec("A-16", "B.4.9", "B.4.8", "D-04", "D-10")
@pytest.mark.parametrize("how", ["stands still", "vanishes"])
def test_a16_a_leader_that_falls_silent_costs_its_connection_and_nothing_else(how: str) -> None:
    """Whether its process stands still or its host is gone without a FIN."""

    async def scenario(place: Place) -> None:
        cluster, network = place.cluster, place.network
        cluster.move_leader("t", 0, 1)
        cluster.produce("t", ["0"])
        consumer = place.consumer(request_timeout_ms=5_000)
        await place.on_member(consumer.assign([T0]))
        await place.read(consumer, 1)
        began = place.now
        if how == "stands still":
            cluster.pause(1)
        else:
            network.cut_both("member", "broker-1")
        cluster.move_leader("t", 0, 2)
        cluster.produce("t", ["1"], partition=0)
        held = place.links("broker-1")
        assert held
        found = await place.poll_until(consumer, lambda: place.asked("Metadata", began, node=2))
        assert 4.9 <= place.asked("Metadata", began, node=2)[0].at - began <= 5.5
        assert not held & place.links("broker-1")
        found += await place.read(consumer, 1 - len(found))
        assert [record.offset for record in found] == [1]
        assert place.now - began < 8

    simulate(scenario, brokers=2, topics={"t": 1})


@pytest.mark.spec("A-16", "B.13.5", "D-04", "D-10")
@pytest.mark.parametrize("how", ["stands still", "vanishes"])
def test_a16_heartbeats_notice_a_coordinator_that_vanished_after_the_session_timeout(how: str) -> None:
    """Long before the request's own time-out would."""

    async def scenario(place: Place) -> None:
        cluster = place.cluster
        cluster.prepare_groups()
        cluster.move_coordinator("g", 1)
        cluster.move_leader("t", 0, 2)
        cluster.produce("t", ["0"])
        consumer = place.consumer("t", **{**GROUP, "heartbeat_interval_ms": 3_000}, request_timeout_ms=60_000)
        await place.read(consumer, 1)
        await place.poll_until(consumer, lambda: len(place.asked("Heartbeat")) > 2)
        began = place.now
        if how == "stands still":
            cluster.pause(1)
        else:
            place.network.cut_both("member", "broker-1")
        cluster.move_coordinator("g", 2)
        await place.poll_until(consumer, lambda: place.asked("FindCoordinator", began))
        assert 6.5 < place.asked("FindCoordinator", began)[0].at - began <= 10.2
        await place.poll_until(consumer, lambda: place.asked("OffsetFetch", began, node=2))
        await place.on_member(consumer.commit({T0: OffsetAndMetadata(1)}))
        assert cluster.committed("g") == {T0: 1}

    simulate(scenario, brokers=2, topics={"t": 1})


@pytest.mark.spec("A-16", "B.13.4", "D-07")
def test_a16_a_join_may_take_longer_than_a_request() -> None:
    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["0"])
        place.cluster.delay("JoinGroup", 40_000, times=1, only_if=lambda request: request.member_id != "")
        consumer = place.consumer("t", group_id="g", request_timeout_ms=30_000)
        await place.read(consumer, 1)
        assert [bool(one.request.member_id) for one in place.asked("JoinGroup")] == [False, True]
        (generation,) = {one.response.generation_id for one in place.asked("JoinGroup")[1:]}
        assert generation == 1

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("A-16", "B.13.4", "D-07")
@pytest.mark.parametrize(("poll_ms", "request_ms", "seconds"), [(60_000, 30_000, 65), (10_000, 30_000, 30)])
def test_a16_a_join_that_is_never_answered_is_given_up_in_the_end(
    poll_ms: int, request_ms: int, seconds: float
) -> None:
    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["0"])
        rule = place.cluster.drop("JoinGroup", times=1, only_if=lambda request: request.member_id != "")
        settings = {
            "max_poll_interval_ms": poll_ms,
            "request_timeout_ms": request_ms,
            "session_timeout_ms": 6_000,
        }
        consumer = place.consumer("t", group_id="g", **settings)
        await place.read(consumer, 1)
        assert rule.times == 0
        lost = next(one for one in place.asked("JoinGroup") if one.request.member_id)
        following = place.asked("JoinGroup", lost.at)[1]
        assert seconds <= following.at - lost.at <= seconds + 2

    simulate(scenario, topics={"t": 1})


# --- connections that never come about


def spans(dials: list[Dial]) -> tuple[list[float], list[float]]:
    """How long each attempt took, and how long the next one was waited for."""
    lasting = [dial.ended - dial.began for dial in dials]
    waiting = [after.began - before.ended for before, after in itertools.pairwise(dials)]
    return lasting, waiting


def grows(values: list[float], base: float, top: float) -> None:
    """Each is about twice the one before, with a jitter of a fifth, and none is above the top."""
    for step, value in enumerate(values):
        middle = min(base * 2**step, top)
        assert 0.8 * middle - 0.02 <= value <= min(1.2 * middle, top) + 0.02, (step, values)


@pytest.mark.spec("A-16", "B.4.10", "D-13", "I-26")
def test_a16_a_connection_that_is_never_made_is_tried_longer_and_less_often() -> None:
    """The set-up time and the pause double up to their maxima, and start again after success."""
    settings: dict[str, Any] = {
        "socket_connection_setup_timeout_ms": 1_000,
        "socket_connection_setup_timeout_max_ms": 8_000,
        "reconnect_backoff_ms": 100,
        "reconnect_backoff_max_ms": 1_600,
        "metadata_recovery_strategy": "none",
    }

    async def outage(place: Place, consumer: AsyncConsumer) -> list[Dial]:
        place.network.swallowing.add("broker-1")
        before = len(place.runtime.dials)
        for way in place.network.between("member", "broker-1"):
            way.reset()
        await place.poll_until(consumer, lambda: len(place.runtime.dials) - before >= 8)
        place.network.swallowing.clear()
        return place.runtime.dials[before : before + 8]

    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["0"])
        consumer = place.consumer(**settings)
        await place.on_member(consumer.assign([T0]))
        await place.read(consumer, 1)
        for _ in range(2):
            lasting, waiting = spans(await outage(place, consumer))
            grows(lasting, 1.0, 8.0)
            grows(waiting, 0.2, 1.6)  # the loss itself was the first step
            place.cluster.produce("t", ["more"])
            await place.read(consumer, 1)

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("A-16")
def test_a16_polls_shorter_than_an_attempt_report_each_one_that_failed() -> None:
    async def poll_now_and_then(place: Place, consumer: AsyncConsumer) -> None:
        async with asyncio.timeout(60):
            while True:
                assert len(await place.on_member(consumer.poll(0.1))) == 0
                await asyncio.sleep(1)

    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["0"])
        place.network.swallowing.add("broker-1")
        consumer = place.consumer(socket_connection_setup_timeout_ms=3_000)
        await place.on_member(consumer.assign([T0]))
        for _ in range(2):
            with pytest.raises(ConnectError):
                await poll_now_and_then(place, consumer)
        place.network.swallowing.clear()
        await place.read(consumer, 1)

    simulate(scenario, topics={"t": 1})
