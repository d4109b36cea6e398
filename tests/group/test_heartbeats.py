"""Heartbeats: the three timers of B.13.5 and the codes of B.15.5."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence

import pytest

from kclient.errors import CommitFailedError, GroupAuthorizationError
from kclient.generated.heartbeat_response import HeartbeatResponse
from kclient.generated.leave_group_response import LeaveGroupResponse
from kclient.group.assignors import Assignment, Assignor, Member
from kclient.group.classic.state import ClassicMemberState
from tests.group.scripted_group import (
    Running,
    found,
    join_then_sync,
    joined,
    member,
    play,
    refused,
    scripted,
    synced,
    wants,
)
from tests.scripted_broker import On, ScriptedBroker

SOON = {"heartbeat_interval_ms": 40, "session_timeout_ms": 30_000}


def beats(peer: ScriptedBroker) -> list[float]:
    return [seen.at for seen in peer.requests if seen.name == "HeartbeatRequest"]


def lookups(peer: ScriptedBroker) -> int:
    return len(peer.of("FindCoordinatorRequest"))


@pytest.mark.spec("B.13.5", "D-02", "S4-21")
def test_a_member_that_does_nothing_sends_one_heartbeat_each_interval_and_keeps_its_place() -> None:
    async def scene(running: Running) -> None:
        await running.stable()
        await running.until(lambda: len(beats(peer)) == 6)
        assert running.membership.state is ClassicMemberState.STABLE

    peer = scripted(*join_then_sync(("flights", 1)))
    play(peer, scene, **SOON)
    gaps = [after - before for before, after in itertools.pairwise(beats(peer))]
    assert all(0.03 <= gap <= 0.2 for gap in gaps)
    beat = peer.of("HeartbeatRequest")[0]
    assert (beat.generation_id, beat.member_id, beat.group_instance_id) == (1, "m-1", None)
    assert len(peer.of("JoinGroupRequest")) == 1


JOIN_AND_SYNC = ("JoinGroupRequest", "SyncGroupRequest")


@pytest.mark.spec("B.13.1", "S4-20")
def test_heartbeats_continue_while_the_group_syncs_and_not_while_it_joins() -> None:
    async def scene(running: Running) -> None:
        await running.stable(1)
        running.membership.request_rejoin("test")
        await running.stable(2)

    peer = scripted(
        On("JoinGroupRequest", joined(1), delay=0.2),
        On("SyncGroupRequest", synced(("flights", 1)), delay=0.3),
        On("JoinGroupRequest", joined(2), delay=0.3),
        On("SyncGroupRequest", synced(("flights", 1)), delay=0.3),
    )
    play(peer, scene, **SOON)
    joins, syncs = ([seen.at for seen in peer.requests if seen.name == name] for name in JOIN_AND_SYNC)
    for joining, syncing in zip(joins, syncs, strict=True):
        assert not [at for at in beats(peer) if joining < at < syncing]
    assert [at for at in beats(peer) if syncs[0] < at < joins[1]]
    assert [at for at in beats(peer) if at > syncs[1]]


@pytest.mark.spec("B.15.5", "D-04", "S3-27")
def test_a_rebalance_in_progress_leads_to_a_join_under_the_same_name() -> None:
    async def scene(running: Running) -> None:
        await running.stable(2)
        assert running.user.prepared == [True, False]

    peer = scripted(
        *join_then_sync(("flights", 1)),
        On("HeartbeatRequest", HeartbeatResponse(error_code=27)),
        *join_then_sync(("flights", 2), generation=2),
    )
    play(peer, scene, **SOON)
    again = peer.of("JoinGroupRequest")[1]
    assert (again.member_id, again.reason) == ("m-1", "group is already rebalancing")
    assert lookups(peer) == 1


@pytest.mark.spec("B.15.5", "B.13.9", "D-04", "S3-53")
@pytest.mark.parametrize(("code", "member_id"), [(22, "m-1"), (25, "")])
def test_a_membership_that_the_coordinator_does_not_know_is_lost(code: int, member_id: str) -> None:
    async def scene(running: Running) -> None:
        await running.stable(2)
        assert running.user.prepared == [True, True]
        assert running.membership.take_error() is None

    peer = scripted(
        *join_then_sync(("flights", 1)),
        On("HeartbeatRequest", HeartbeatResponse(error_code=code)),
        *join_then_sync(("flights", 2), generation=2),
    )
    play(peer, scene, **SOON)
    assert peer.of("JoinGroupRequest")[1].member_id == member_id
    assert lookups(peer) == 1


@pytest.mark.spec("B.13.9", "S3-53")
def test_a_membership_that_ends_while_the_join_is_prepared_is_prepared_again() -> None:
    async def scene(running: Running) -> None:
        await running.stable()
        running.user.gate = asyncio.Event()
        running.membership.request_rejoin("test")
        peer.script.insert(0, On("HeartbeatRequest", HeartbeatResponse(error_code=25)))
        await running.until(lambda: running.membership.lost)
        running.user.gate.set()
        await running.stable(2)
        assert running.user.prepared == [True, False, True]

    peer = scripted(*join_then_sync(("flights", 1)), *join_then_sync(("flights", 2), generation=2))
    play(peer, scene, **SOON)


@pytest.mark.spec("B.15.5", "B.13.9")
def test_a_response_to_an_earlier_generation_changes_nothing() -> None:
    async def run() -> None:
        old, new = scripted(), scripted(*join_then_sync(("flights", 2), generation=2), node_id=1)
        async with old, new, asyncio.timeout(20), member(old, **SOON) as running:
            old.script += [
                *join_then_sync(("flights", 1)),
                On("HeartbeatRequest", HeartbeatResponse(error_code=25), delay=0.3),
            ]
            await running.stable(1)
            await running.until(
                lambda: beats(old)
            )  # its response is on the way when the group moves to `new`
            old.default_responses["FindCoordinatorRequest"] = lambda request: found(new)
            running.coordinator.mark_unknown("test")
            running.membership.request_rejoin("test")
            await running.stable(2)
            await running.until(lambda: beats(new))
            assert running.membership.generation.generation_id == 2
            assert len(new.of("JoinGroupRequest")) == 1

    asyncio.run(run())


@pytest.mark.spec("B.15.5", "D-04", "A-05")
@pytest.mark.parametrize(
    ("code", "sought_again"),
    [(15, True), (16, True), *((code, False) for code in (14, 24, 30, 42, 69, 110, -1, 999))],
)
def test_a_heartbeat_that_fails_is_repeated_soon_and_nothing_is_raised(code: int, sought_again: bool) -> None:
    async def scene(running: Running) -> None:
        await running.stable()
        await running.until(lambda: len(beats(peer)) == 3)
        assert running.membership.state is ClassicMemberState.STABLE
        assert running.membership.take_error() is None

    peer = scripted(
        *join_then_sync(("flights", 1)), On("HeartbeatRequest", HeartbeatResponse(error_code=code))
    )
    play(peer, scene, heartbeat_interval_ms=300, session_timeout_ms=5_000)
    assert beats(peer)[1] - beats(peer)[0] < 0.2
    assert lookups(peer) == (2 if sought_again else 1)
    assert len(peer.of("JoinGroupRequest")) == 1


@pytest.mark.spec("B.15.5", "D-04", "A-05")
def test_a_heartbeat_whose_connection_is_lost_is_repeated_at_the_coordinator_found_then() -> None:
    async def scene(running: Running) -> None:
        await running.stable()
        await running.until(lambda: len(beats(peer)) >= 2)
        assert running.membership.state is ClassicMemberState.STABLE

    peer = scripted(*join_then_sync(("flights", 1)), On("HeartbeatRequest", close=True))
    play(peer, scene, **SOON)
    assert lookups(peer) == 2


@pytest.mark.spec("B.13.5", "D-04", "D-10", "A-16")
def test_a_session_without_a_response_gives_the_coordinator_up_and_not_the_membership() -> None:
    async def scene(running: Running) -> None:
        await running.stable()
        await running.until(lambda: lookups(peer) == 2)
        await running.until(lambda: len(beats(peer)) >= 2)
        assert running.membership.state is ClassicMemberState.STABLE

    peer = scripted(*join_then_sync(("flights", 1)), On("HeartbeatRequest", delay=60))
    play(peer, scene, heartbeat_interval_ms=40, session_timeout_ms=200)
    assert len(peer.of("JoinGroupRequest")) == 1


@pytest.mark.spec("B.13.5", "D-04", "A-16")
def test_a_heartbeat_without_a_response_marks_the_coordinator_unknown_after_request_timeout() -> None:
    async def scene(running: Running) -> None:
        await running.stable()
        await running.until(lambda: lookups(peer) == 2)

    peer = scripted(*join_then_sync(("flights", 1)), On("HeartbeatRequest", delay=60))
    play(peer, scene, heartbeat_interval_ms=40, session_timeout_ms=30_000, request_timeout_ms=200)


@pytest.mark.spec("B.13.5", "B.13.8", "D-01", "U-12", "S3-27")
def test_an_application_that_does_not_poll_in_time_leaves_and_joins_again_with_its_next_poll() -> None:
    async def scene(running: Running) -> None:
        await running.stable()
        running.user.gate = asyncio.Event()
        await running.until(lambda: peer.of("LeaveGroupRequest"))
        assert running.membership.state is ClassicMemberState.UNJOINED
        with pytest.raises(
            CommitFailedError, match=r"s between two polls.*max_poll_interval_ms.*max_poll_records"
        ) as e:
            running.membership.commit_identity()
        assert e.value.reason == "evicted"
        assert len(peer.of("JoinGroupRequest")) == 1
        running.user.gate.set()  # the next poll
        await running.stable(2)
        assert running.membership.take_error() is None

    peer = scripted(
        *join_then_sync(("flights", 1)),
        On("LeaveGroupRequest", LeaveGroupResponse()),
        *join_then_sync(("flights", 1), generation=2),
    )
    play(peer, scene, max_poll_interval_ms=150, **SOON)
    (left,) = peer.of("LeaveGroupRequest")
    assert left.members[0].reason.startswith("consumer poll timeout has expired")
    assert peer.of("JoinGroupRequest")[1].member_id == ""


@pytest.mark.spec("B.13.5", "D-01", "I-28")
def test_a_heartbeat_in_flight_does_not_extend_max_poll_interval() -> None:
    async def scene(running: Running) -> None:
        await running.stable()
        await running.until(lambda: running.membership.lost, 0.6)

    peer = scripted(*join_then_sync(("flights", 1)), On("HeartbeatRequest", HeartbeatResponse(), delay=1.0))
    peer.default_responses["LeaveGroupRequest"] = LeaveGroupResponse()
    play(peer, scene, max_poll_interval_ms=200, heartbeat_interval_ms=40, session_timeout_ms=5_000)


@pytest.mark.spec("B.13.5", "B.13.10", "A-04")
def test_a_static_member_that_does_not_poll_in_time_loses_its_place_without_a_word() -> None:
    async def scene(running: Running) -> None:
        await running.stable()
        running.user.gate = asyncio.Event()
        await running.until(lambda: running.membership.state is ClassicMemberState.UNJOINED)
        assert running.membership.lost

    peer = scripted(*join_then_sync(("flights", 1)))
    play(peer, scene, max_poll_interval_ms=150, group_instance_id="east", **SOON)
    assert not peer.of("LeaveGroupRequest")


@pytest.mark.spec("B.13.5", "B.3.8", "S1-18")
def test_every_poll_restarts_the_poll_timer() -> None:
    async def scene(running: Running) -> None:
        await running.stable()
        for _ in range(8):
            await asyncio.sleep(0.05)
            running.membership.poll_started()
        assert running.membership.state is ClassicMemberState.STABLE

    peer = scripted(*join_then_sync(("flights", 1)))
    play(peer, scene, max_poll_interval_ms=200, **SOON)
    assert not peer.of("LeaveGroupRequest")


@pytest.mark.spec("B.13.5", "B.15.2")
def test_a_lookup_that_is_refused_ends_the_heartbeats_until_the_next_poll_and_is_raised_once() -> None:
    async def scene(running: Running) -> None:
        await running.stable()
        assert isinstance(await running.polled_error(), GroupAuthorizationError)
        assert running.membership.take_error() is None
        seen = len(beats(peer))
        await asyncio.sleep(0.15)
        assert len(beats(peer)) == seen
        running.membership.poll_started()
        await running.until(lambda: len(beats(peer)) > seen)

    peer = scripted(*join_then_sync(("flights", 1)), On("HeartbeatRequest", HeartbeatResponse(error_code=16)))
    responses = [peer.default_responses["FindCoordinatorRequest"], lambda request: refused(30)]

    def find(request: object) -> object:
        return (responses.pop(0) if responses else peer.default_responses["found"])(request)

    peer.default_responses["found"] = responses[0]
    peer.default_responses["FindCoordinatorRequest"] = find
    play(peer, scene, **SOON)


class Slow(Assignor):
    """Shares nothing out, and takes its time for it."""

    name = "slow"

    def assign(self, topics: object, members: Sequence[Member]) -> dict[str, Assignment]:
        time.sleep(0.3)
        return {member.member_id: Assignment() for member in members}


LEADING = joined(1, "m-0", leader="m-0", members=(wants("m-0", "flights"),), protocol_name="slow")


@pytest.mark.spec("D-03", "B.13.5", "B.3.1")
def test_an_assignor_that_takes_its_time_does_not_hold_heartbeats_up() -> None:
    async def scene(running: Running) -> None:
        await running.until(lambda: peer.of("SyncGroupRequest"))
        assert len(beats(peer)) >= 4

    peer = scripted(On("JoinGroupRequest", LEADING), On("SyncGroupRequest"))
    play(peer, scene, partition_assignment_strategy=(Slow(),), **SOON)


@pytest.mark.spec("B.13.3", "B.15.4", "B.13.9")
def test_a_membership_that_a_heartbeat_ends_while_the_leader_plans_starts_over_without_a_sync() -> None:
    async def scene(running: Running) -> None:
        await running.until(lambda: len(peer.of("JoinGroupRequest")) == 2)

    peer = scripted(
        On("JoinGroupRequest", LEADING),
        On("HeartbeatRequest", HeartbeatResponse(error_code=25)),
        On("JoinGroupRequest"),
    )
    play(peer, scene, partition_assignment_strategy=(Slow(),), **SOON)
    assert not peer.of("SyncGroupRequest")
