"""What leads to another join, and how a member leaves."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kclient.generated.heartbeat_response import HeartbeatResponse
from kclient.generated.join_group_response import JoinGroupResponse
from kclient.generated.leave_group_response import LeaveGroupResponse, MemberResponse
from kclient.group.classic.state import ClassicMemberState
from kclient.group.subscription_codec import decode_assignment, decode_subscription
from tests.group.scripted_group import (
    F,
    Running,
    join_then_sync,
    joined,
    names,
    play,
    refused,
    scripted,
    synced,
    wants,
)
from tests.scripted_broker import On

# --- rejoining


@pytest.mark.spec("B.13.2", "S3-28", "D-09")
def test_a_subscription_that_changes_during_a_join_leads_to_exactly_one_more() -> None:
    async def scene(running: Running) -> None:
        await running.until(lambda: peer.of("JoinGroupRequest"))
        running.membership.set_subscription(["flights", "planes"])
        await running.stable(2)
        await asyncio.sleep(0.1)

    peer = scripted(
        On("JoinGroupRequest", joined(1), delay=0.05),
        On("SyncGroupRequest", synced(("flights", 1))),
        *join_then_sync(("flights", 1), generation=2),
        topics={"flights": 4, "planes": 1},
    )
    play(peer, scene)
    wanted = [decode_subscription(join.protocols[0].metadata).topics for join in peer.of("JoinGroupRequest")]
    assert wanted == [("flights",), ("flights", "planes")]


@pytest.mark.spec("B.13.2", "S3-29", "D-14", "U-13")
def test_the_leader_joins_again_when_a_topic_has_more_partitions() -> None:
    async def scene(running: Running) -> None:
        await running.stable(1)
        peer.topics["flights"] = 6
        running.cluster.request_update("test")
        await running.stable(2)

    members = (wants("m-0", "flights"),)
    peer = scripted(
        On("JoinGroupRequest", joined(1, "m-0", leader="m-0", members=members)),
        On("SyncGroupRequest", synced(*F)),
        On("JoinGroupRequest", joined(2, "m-0", leader="m-0", members=members)),
        On("SyncGroupRequest", synced(*F)),
    )
    play(peer, scene)
    assert "flights from 4 to 6 partitions" in peer.of("JoinGroupRequest")[1].reason
    (part,) = peer.of("SyncGroupRequest")[1].assignments
    assert len(decode_assignment(part.assignment).partitions) == 6


@pytest.mark.spec("S3-37", "B.13.2")
def test_a_follower_does_not_join_again_when_metadata_changes() -> None:
    async def scene(running: Running) -> None:
        await running.stable(1)
        peer.topics["flights"] = 6
        await running.cluster.update_now(2.0)
        await asyncio.sleep(0.1)

    peer = scripted(*join_then_sync(("flights", 1)))
    play(peer, scene)
    assert len(peer.of("JoinGroupRequest")) == 1


@pytest.mark.spec("S3-35")
def test_a_leader_that_becomes_a_follower_keeps_its_own_topics_fresh_and_no_others() -> None:
    def asked() -> list[list[str]]:
        return [[topic.name for topic in request.topics] for request in peer.of("MetadataRequest")]

    async def scene(running: Running) -> None:
        await running.stable(1)
        await running.cluster.update_now(2.0)
        assert asked()[-1] == ["flights", "planes"]
        running.membership.request_rejoin("test")
        await running.stable(2)
        await running.cluster.update_now(2.0)
        assert asked()[-1] == ["flights"]

    peer = scripted(
        On("JoinGroupRequest", joined(1, "m-0", leader="m-0", members=(wants("m-0", "flights", "planes"),))),
        On("SyncGroupRequest", synced(*F)),
        *join_then_sync(("flights", 1), generation=2),
        topics={"flights": 4, "planes": 1},
    )
    play(peer, scene)


@pytest.mark.spec("S3-52", "B.13.9", "B.13.4")
@pytest.mark.parametrize("reason", ["the application asked for it", "because " * 40])
def test_request_rejoin_keeps_the_membership_until_the_join(reason: str) -> None:
    async def scene(running: Running) -> None:
        await running.stable(1)
        running.user.gate = asyncio.Event()
        running.membership.request_rejoin(reason)
        await asyncio.sleep(0.05)
        assert running.membership.state is ClassicMemberState.STABLE
        assert running.membership.generation.generation_id == 1
        assert len(peer.of("JoinGroupRequest")) == 1
        running.user.gate.set()
        await running.stable(2)
        assert running.user.prepared == [True, False]

    peer = scripted(*join_then_sync(("flights", 1)), *join_then_sync(("flights", 2), generation=2))
    play(peer, scene)
    again = peer.of("JoinGroupRequest")[1]
    assert (again.member_id, again.reason) == ("m-1", reason[:255])


@pytest.mark.spec("S3-31", "B.15.5")
def test_lost_partitions_are_given_up_before_a_coordinator_is_found_again() -> None:
    async def scene(running: Running) -> None:
        def evicted_and_moved(request: object) -> HeartbeatResponse:
            peer.default_responses["FindCoordinatorRequest"] = refused(15)
            running.coordinator.mark_unknown("a commit was answered with NOT_COORDINATOR")
            return HeartbeatResponse(error_code=25)

        await running.stable(1)
        peer.default_responses["HeartbeatRequest"] = evicted_and_moved
        await running.until(lambda: running.user.prepared == [True, True])
        assert running.coordinator.node_id is None

    peer = scripted(*join_then_sync(("flights", 1)))
    play(peer, scene, heartbeat_interval_ms=20)


# --- leaving


@pytest.mark.spec("B.15.6", "B.13.8", "B.18")
@pytest.mark.parametrize("version", range(6))
def test_leaving_in_every_version(version: int) -> None:
    async def scene(running: Running) -> None:
        await running.stable()
        await running.membership.leave("the consumer is being closed", 2.0)
        assert running.membership.state is ClassicMemberState.UNJOINED
        assert running.membership.lost

    left = On("LeaveGroupRequest", LeaveGroupResponse())
    peer = scripted(*join_then_sync(("flights", 1)), left, versions={"LeaveGroupRequest": (version, version)})
    play(peer, scene)
    (sent,) = peer.of("LeaveGroupRequest")
    if version < 3:
        assert sent.member_id == "m-1"
    else:
        (one,) = sent.members
        assert (one.member_id, one.group_instance_id) == ("m-1", None)
        assert one.reason == ("the consumer is being closed" if version == 5 else None)


@pytest.mark.spec("B.15.6")
@pytest.mark.parametrize(
    ("step", "message"),
    [
        (On("LeaveGroupRequest", LeaveGroupResponse(error_code=16)), "NOT_COORDINATOR (16)"),
        (On("LeaveGroupRequest", LeaveGroupResponse(error_code=30)), "GROUP_AUTHORIZATION_FAILED (30)"),
        (On("LeaveGroupRequest", LeaveGroupResponse(error_code=-1)), "UNKNOWN_SERVER_ERROR (-1)"),
        (
            On(
                "LeaveGroupRequest",
                LeaveGroupResponse(members=[MemberResponse(member_id="m-1", error_code=25)]),
            ),
            "UNKNOWN_MEMBER_ID (25)",
        ),
        (On("LeaveGroupRequest", close=True), "was not confirmed"),
        (On("LeaveGroupRequest"), "was not confirmed"),
    ],
    ids=["moved", "denied", "broken", "member-refused", "lost", "unanswered"],
)
def test_leaving_is_done_whatever_the_response(
    step: On, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kclient.group")

    async def scene(running: Running) -> None:
        await running.stable()
        await running.membership.leave("closing", 0.2)
        assert running.membership.state is ClassicMemberState.UNJOINED
        assert running.membership.take_error() is None

    play(scripted(*join_then_sync(("flights", 1)), step), scene)
    assert message in caplog.text


@pytest.mark.spec("B.15.6", "B.13.10", "A-04", "S4-22", "S4-51")
def test_a_static_member_leaves_without_a_word() -> None:
    async def scene(running: Running) -> None:
        await running.stable()
        await running.membership.leave("closing", 2.0)

    peer = play(scripted(*join_then_sync(("flights", 1))), scene, group_instance_id="east")
    assert "LeaveGroup" not in names(peer)
    for name in ("JoinGroupRequest", "SyncGroupRequest"):
        assert peer.of(name)[0].group_instance_id == "east"


@pytest.mark.spec("B.15.6")
def test_a_member_that_has_not_joined_leaves_without_a_word() -> None:
    async def scene(running: Running) -> None:
        await running.until(lambda: peer.of("JoinGroupRequest"))
        await running.membership.leave("closing", 2.0)

    peer = scripted(On("JoinGroupRequest"))
    assert "LeaveGroup" not in names(play(peer, scene))


@pytest.mark.spec("B.15.3", "S4-19")
def test_a_member_that_leaves_while_joining_does_not_become_a_member_and_may_subscribe_again() -> None:
    async def scene(running: Running) -> None:
        await running.until(lambda: len(peer.of("JoinGroupRequest")) == 2)
        await running.membership.leave("unsubscribed", 2.0)
        await asyncio.sleep(0.15)
        assert running.membership.state is ClassicMemberState.UNJOINED
        assert running.user.assignments == []
        running.membership.set_subscription(["flights"])
        await running.stable(2)

    peer = scripted(
        On("JoinGroupRequest", JoinGroupResponse(error_code=79, member_id="m-1")),
        On("JoinGroupRequest", joined(1), delay=0.1),
        On("LeaveGroupRequest", LeaveGroupResponse()),
        *join_then_sync(("flights", 1), generation=2, member="m-2"),
    )
    play(peer, scene)
    assert names(peer)[-3:] == ["LeaveGroup", "JoinGroup", "SyncGroup"]
    assert peer.of("JoinGroupRequest")[2].member_id == ""
    by_name = {seen.name: seen.connection for seen in peer.requests[::-1]}
    assert by_name["LeaveGroupRequest"] != by_name["JoinGroupRequest"]
