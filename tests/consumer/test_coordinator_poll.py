"""The coordinator's step of a poll: its parts, their order, and that none of them delays the poll."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from tests.scenarios.simulated import Place, simulate

IN_A_GROUP: dict[str, Any] = {"group_id": "g", "session_timeout_ms": 60_000}


@pytest.mark.spec("S1-19", "S1-23", "S3-16")
@pytest.mark.parametrize("timeout", [0.0, 0.7, 3.0])
def test_without_a_coordinator_a_poll_takes_its_time_and_no_more(timeout: float) -> None:
    """Nothing of the group is asked meanwhile; when one is found the same consumer goes on."""

    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["x"])
        lost = place.cluster.fail("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", times=None)
        consumer = place.consumer("t", **IN_A_GROUP)
        await place.on_member(consumer.poll(1.0))  # connected now
        began = place.now
        assert len(await place.on_member(consumer.poll(timeout))) == 0
        assert timeout <= place.now - began < timeout + 0.1
        assert place.asked("JoinGroup") == place.asked("OffsetFetch") == place.asked("Fetch") == []
        place.cluster.lift(lost)
        await place.read(consumer, 1, seconds=10)
        assert not [
            one for one in place.asked("JoinGroup") if "failed" in (one.request.reason or "")
        ]  # none had begun

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("S1-19")
def test_a_coordinator_that_is_one_no_more_is_looked_up_before_the_group_asks_for_anything() -> None:
    async def scenario(place: Place) -> None:
        consumer = place.consumer("t", **IN_A_GROUP, heartbeat_interval_ms=1_000)
        await place.poll_until(consumer, consumer.assignment)
        place.cluster.fail("Heartbeat", "NOT_COORDINATOR", times=1)
        beats = len(place.asked("Heartbeat"))
        await place.poll_until(consumer, lambda: len(place.asked("Heartbeat")) > beats + 1)
        refused, following = place.asked("Heartbeat")[beats : beats + 2]
        assert any(refused.at <= one.at <= following.at for one in place.asked("FindCoordinator"))

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("S0-29", "D-21")
def test_a_commit_that_is_not_stable_is_requested_again_after_a_growing_backoff() -> None:
    def unstable(request: Any, response: Any) -> Any:
        for topic in response.groups[0].topics:
            for partition in topic.partitions:
                partition.error_code, partition.committed_offset = 88, -1
        return response

    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["x"])
        place.cluster.on("OffsetFetch", unstable, times=4)
        await place.read(place.consumer("t", **IN_A_GROUP), 1, seconds=10)
        sent = [one.at for one in place.asked("OffsetFetch")]
        gaps = [later - earlier for earlier, later in pairwise(sent)]
        assert gaps == [pytest.approx(seconds, rel=0.25) for seconds in (0.1, 0.2, 0.4, 0.8)]

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("S1-13", "S1-14")
@pytest.mark.parametrize("api", ["Metadata", "FindCoordinator", "JoinGroup", "SyncGroup"])
def test_a_poll_waits_no_longer_than_its_timeout_whatever_is_not_answered(api: str) -> None:
    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["x"])
        silent = place.cluster.delay(api, ms=600_000, times=None)
        consumer = place.consumer("t", **IN_A_GROUP)
        for timeout in (0.0, 0.7, 3.0, 0.0):
            began = place.now
            assert len(await place.on_member(consumer.poll(timeout))) == 0
            assert timeout <= place.now - began < timeout + 0.1
        assert place.asked(api)
        place.cluster.lift(silent)

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("S3-51", "S3-26")
def test_a_member_that_sets_nothing_joins_and_beats_with_the_defaults() -> None:
    async def scenario(place: Place) -> None:
        consumer = place.consumer("t", group_id="g")
        await place.poll_until(consumer, lambda: len(place.asked("Heartbeat")) > 3, seconds=20)
        join = place.asked("JoinGroup")[0].request
        assert (join.session_timeout_ms, join.rebalance_timeout_ms) == (45_000, 300_000)
        assert (join.group_id, join.group_instance_id) == ("g", None)
        beats = [one.at for one in place.asked("Heartbeat")]
        assert [later - earlier for earlier, later in pairwise(beats)] == [pytest.approx(3, abs=0.1)] * 3

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("S1-18")
def test_polls_count_as_polls_while_no_coordinator_can_be_found() -> None:
    """A member that polls is not taken for one that hangs, however long the coordinator is away."""

    async def scenario(place: Place) -> None:
        consumer = place.consumer("t", **IN_A_GROUP, max_poll_interval_ms=6_000)
        await place.poll_until(consumer, consumer.assignment)
        generation = consumer.group_metadata()
        place.cluster.fail("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", times=None)
        place.cluster.fail("Heartbeat", "NOT_COORDINATOR", times=None)
        until = place.now + 20
        await place.poll_until(consumer, lambda: place.now > until)
        place.cluster.lift()
        beats = len(place.asked("Heartbeat"))
        await place.poll_until(consumer, lambda: len(place.asked("Heartbeat")) > beats + 1)
        assert place.asked("LeaveGroup") == []
        assert consumer.group_metadata() == generation

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("S0-03", "S1-22", "S3-18")
def test_an_automatic_commit_goes_out_in_a_poll_and_nothing_waits_for_its_response() -> None:
    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["1", "2"])
        consumer = place.consumer("t", **IN_A_GROUP, enable_auto_commit=True, auto_commit_interval_ms=1_000)
        await place.read(consumer, 2)
        place.cluster.delay("OffsetCommit", ms=5_000, times=1)
        await asyncio.sleep(3)
        assert place.asked("OffsetCommit") == []  # without a poll there is none
        place.cluster.produce("t", ["3"])
        await asyncio.sleep(1)
        began = place.now
        assert len(await place.on_member(consumer.poll(2.0))) == 1
        assert place.now - began < 0.5
        assert place.cluster.committed("g") == {}
        await place.poll_until(consumer, lambda: place.cluster.committed("g"))
        (topic,) = place.asked("OffsetCommit")[0].request.topics
        assert topic.partitions[0].committed_offset == 2  # what the polls before it had returned

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("S1-20")
def test_a_pattern_that_matches_nothing_yet_is_a_member_all_the_same() -> None:
    async def scenario(place: Place) -> None:
        consumer = place.consumer(**IN_A_GROUP, metadata_max_age_ms=5_000)
        await place.on_member(consumer.subscribe(pattern="orders-.*"))
        await place.poll_until(consumer, lambda: place.asked("SyncGroup"), seconds=10)
        assert consumer.assignment() == ()
        place.cluster.produce("orders-1", ["x"])
        await place.read(consumer, 1, seconds=20)

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("S3-12")
def test_a_poll_returns_what_is_buffered_at_once_and_otherwise_waits_for_a_fetch() -> None:
    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["1", "2", "3"])
        consumer = place.consumer("t", **IN_A_GROUP, max_poll_records=2)
        await place.read(consumer, 2)
        began = place.now
        assert [record.value for record in await place.on_member(consumer.poll(30.0))] == [b"3"]
        assert place.now - began < 0.01
        waiting = asyncio.ensure_future(place.on_member(consumer.poll(30.0)))
        await asyncio.sleep(5)
        place.cluster.produce("t", ["4"])
        assert [record.value for record in await waiting] == [b"4"]
        assert place.now - began == pytest.approx(5, abs=0.3)

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("S1-15")
def test_one_poll_waits_through_news_of_all_kinds_until_records_come_or_its_time_is_over() -> None:
    """Metadata, heartbeats, an assignment and responses without records come meanwhile."""

    async def scenario(place: Place) -> None:
        often = {"metadata_max_age_ms": 300, "heartbeat_interval_ms": 200, "fetch_max_wait_ms": 100}
        consumer = place.consumer("t", **IN_A_GROUP, **often)
        began = place.now
        assert len(await place.on_member(consumer.poll(3.0))) == 0
        assert place.now - began == pytest.approx(3, abs=0.1)
        assert consumer.assignment()
        waiting = asyncio.ensure_future(place.on_member(consumer.poll(30.0)))
        await asyncio.sleep(5)
        assert not waiting.done()
        place.cluster.produce("t", ["x"])
        assert [record.value for record in await waiting] == [b"x"]
        assert place.now - began == pytest.approx(8, abs=0.3)

    simulate(scenario, topics={"t": 1})
