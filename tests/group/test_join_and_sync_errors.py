"""JoinGroup and SyncGroup, code by code (B.15.3, B.15.4)."""

from __future__ import annotations

import asyncio
import itertools
import logging

import pytest

from kclient.errors import BrokerError, GroupAuthorizationError, VersionError
from kclient.generated.join_group_response import JoinGroupResponse
from kclient.generated.sync_group_response import SyncGroupResponse
from kclient.group.membership import Identity
from kclient.types import TopicPartition
from tests.group.scripted_group import (
    GROUP,
    F,
    Running,
    join_then_sync,
    joined,
    play,
    scripted,
    synced,
)
from tests.scripted_broker import On

# --- JoinGroup, code by code (B.15.3)


@pytest.mark.spec("B.15.3", "S4-19", "A-05")
@pytest.mark.parametrize(
    ("code", "sought_again", "prepared", "member_id"),
    [
        (14, False, [True], "m-1"),
        (15, True, [True], "m-1"),
        (16, True, [True], "m-1"),
        (25, False, [True, True], ""),
        (27, False, [True], "m-1"),
    ],
)
def test_a_join_that_is_tried_again(
    code: int, sought_again: bool, prepared: list[bool], member_id: str
) -> None:
    async def scene(running: Running) -> None:
        await running.stable()
        assert running.user.prepared == prepared
        assert running.membership.take_error() is None

    peer = play(
        scripted(
            On("JoinGroupRequest", JoinGroupResponse(error_code=79, member_id="m-1")),
            On("JoinGroupRequest", JoinGroupResponse(error_code=code)),
            *join_then_sync(("flights", 1)),
        ),
        scene,
    )
    assert [join.member_id for join in peer.of("JoinGroupRequest")] == ["", "m-1", member_id]
    assert len(peer.of("FindCoordinatorRequest")) == (2 if sought_again else 1)


@pytest.mark.spec("B.15.3", "A-05")
def test_a_join_whose_connection_is_lost_is_tried_again_at_the_coordinator_found_then() -> None:
    async def scene(running: Running) -> None:
        await running.stable()

    peer = play(scripted(On("JoinGroupRequest", close=True), *join_then_sync(("flights", 1))), scene)
    assert len(peer.of("FindCoordinatorRequest")) == 2


@pytest.mark.spec("B.15.3", "S4-54", "D-11")
@pytest.mark.parametrize("code", [23, 24, 26, 30, 35, 81, 42, 69, -1, 999])
def test_a_join_that_is_refused_is_reported_by_the_next_poll_and_tried_again_with_the_one_after(
    code: int,
) -> None:
    async def scene(running: Running) -> None:
        error = await running.polled_error()
        if code == 30:
            assert isinstance(error, GroupAuthorizationError)
            assert error.group == GROUP
        else:
            assert isinstance(error, BrokerError)
            assert error.code == code
        assert running.membership.take_error() is None
        await asyncio.sleep(0.1)
        assert len(peer.of("JoinGroupRequest")) == 1
        running.membership.poll_started()
        await running.stable()

    peer = scripted(
        On("JoinGroupRequest", JoinGroupResponse(error_code=code)), *join_then_sync(("flights", 1))
    )
    play(peer, scene)


@pytest.mark.spec("B.15.3", "B.13.10")
@pytest.mark.parametrize("says", ["its versions", "its answer"])
def test_a_broker_too_old_for_static_members_is_reported_with_the_way_out(says: str) -> None:
    async def scene(running: Running) -> None:
        error = await running.polled_error()
        assert isinstance(error, VersionError)
        assert "unset group_instance_id" in str(error)

    peer = scripted(versions={"JoinGroupRequest": (0, 4)})
    if says == "its answer":
        peer = scripted(On("JoinGroupRequest", JoinGroupResponse(error_code=35)))
    play(peer, scene, group_instance_id="east")


@pytest.mark.spec("B.15.3", "S3-38")
@pytest.mark.parametrize("fields", [{"protocol_type": "connect"}, {"protocol_name": "sticky"}])
def test_a_group_of_another_kind_or_with_an_unknown_assignor_is_reported(fields: dict[str, str]) -> None:
    async def scene(running: Running) -> None:
        error = await running.polled_error()
        assert isinstance(error, BrokerError)
        assert error.code == 23
        assert all(value in str(error) for value in fields.values())
        assert running.user.assignments == []

    response = joined(1)
    for name, value in fields.items():
        setattr(response, name, value)
    play(scripted(On("JoinGroupRequest", response)), scene)


@pytest.mark.spec("D-07", "B.13.4", "S4-20")
def test_a_join_may_take_longer_than_other_requests() -> None:
    async def scene(running: Running) -> None:
        await running.stable()

    peer = scripted(
        On("JoinGroupRequest", joined(1), delay=0.4), On("SyncGroupRequest", synced(("flights", 1)))
    )
    play(peer, scene, request_timeout_ms=150)
    assert len(peer.of("JoinGroupRequest")) == 1


@pytest.mark.spec("D-13", "B.13.3")
def test_a_coordinator_that_always_asks_to_join_at_once_is_not_hammered() -> None:
    async def scene(running: Running) -> None:
        await asyncio.sleep(0.5)
        count = len(peer.of("JoinGroupRequest"))
        assert 5 <= count <= 20

    peer = scripted()
    peer.default_responses["JoinGroupRequest"] = JoinGroupResponse(error_code=27)
    play(peer, scene)


# --- SyncGroup, code by code (B.15.4)


@pytest.mark.spec("B.15.4", "B.13.9", "D-05", "S4-26")
@pytest.mark.parametrize(
    ("code", "sought_again", "member_id", "prepared"),
    [
        (27, False, "m-1", [True]),
        (22, False, "m-1", [True, True]),
        (25, False, "", [True, True]),
        (14, False, "m-1", [True]),
        (15, True, "m-1", [True]),
        (16, True, "m-1", [True]),
    ],
)
def test_a_sync_that_leads_to_another_join(
    code: int, sought_again: bool, member_id: str, prepared: list[bool]
) -> None:
    async def scene(running: Running) -> None:
        await running.stable(2)
        assert running.user.prepared == prepared
        assert running.user.assignments == [(F[1],)]
        assert running.membership.take_error() is None

    peer = play(
        scripted(
            On("JoinGroupRequest", joined(1)),
            On("SyncGroupRequest", SyncGroupResponse(error_code=code)),
            *join_then_sync(("flights", 1), generation=2),
        ),
        scene,
    )
    assert [join.member_id for join in peer.of("JoinGroupRequest")] == ["", member_id]
    assert len(peer.of("FindCoordinatorRequest")) == (2 if sought_again else 1)


@pytest.mark.spec("B.15.4", "B.13.9")
def test_a_sync_that_succeeds_after_the_membership_ended_is_worth_nothing() -> None:
    async def scene(running: Running) -> None:
        await running.until(lambda: peer.of("SyncGroupRequest"))
        running.membership.commit_refused(25, Identity(1, "m-1"))
        await running.stable(2)
        assert running.user.assignments == [(F[2],)]
        assert running.membership.take_error() is None

    peer = scripted(
        On("JoinGroupRequest", joined(1)),
        On("SyncGroupRequest", synced(("flights", 1)), delay=0.05),
        *join_then_sync(("flights", 2), generation=2),
    )
    play(peer, scene)


@pytest.mark.spec("B.15.4", "A-05")
def test_a_sync_whose_connection_is_lost_leads_to_another_join() -> None:
    async def scene(running: Running) -> None:
        await running.stable(2)

    peer = play(
        scripted(
            On("JoinGroupRequest", joined(1)),
            On("SyncGroupRequest", close=True),
            *join_then_sync(("flights", 1), generation=2),
        ),
        scene,
    )
    assert len(peer.of("FindCoordinatorRequest")) == 2


@pytest.mark.spec("B.15.4", "S4-38")
@pytest.mark.parametrize("code", [30, 23, 24, 42, 69, -1, 999])
def test_a_sync_that_is_refused_is_reported_and_the_next_poll_joins_under_the_same_id(code: int) -> None:
    async def scene(running: Running) -> None:
        error = await running.polled_error()
        assert isinstance(error, GroupAuthorizationError if code == 30 else BrokerError)
        assert getattr(error, "code", 30) == code
        running.membership.poll_started()
        await running.stable(2)

    peer = scripted(
        On("JoinGroupRequest", joined(1)),
        On("SyncGroupRequest", SyncGroupResponse(error_code=code)),
        *join_then_sync(("flights", 1), generation=2),
    )
    play(peer, scene)
    assert [join.member_id for join in peer.of("JoinGroupRequest")] == ["", "m-1"]
    assert len(peer.of("FindCoordinatorRequest")) == 1


@pytest.mark.spec("B.15.4")
@pytest.mark.parametrize("fields", [{"protocol_type": "connect"}, {"protocol_name": "roundrobin"}])
def test_a_sync_of_another_protocol_is_reported(fields: dict[str, str]) -> None:
    async def scene(running: Running) -> None:
        error = await running.polled_error()
        assert isinstance(error, BrokerError)
        assert error.code == 23

    response = synced(("flights", 1))
    for name, value in fields.items():
        setattr(response, name, value)
    play(scripted(On("JoinGroupRequest", joined(1)), On("SyncGroupRequest", response)), scene)


@pytest.mark.spec("S3-40")
def test_an_empty_assignment_blob_is_reported() -> None:
    async def scene(running: Running) -> None:
        assert "too short" in str(await running.polled_error())
        assert running.user.assignments == []

    play(scripted(On("JoinGroupRequest", joined(1)), On("SyncGroupRequest", SyncGroupResponse())), scene)


@pytest.mark.spec("S3-42", "B.13.7")
def test_an_assignment_that_does_not_fit_the_subscription_is_not_taken() -> None:
    async def scene(running: Running) -> None:
        await running.stable(2)
        assert running.user.assignments == [(F[1],)]

    peer = play(
        scripted(*join_then_sync(("planes", 0)), *join_then_sync(("flights", 1), generation=2)), scene
    )
    assert "does not match" in peer.of("JoinGroupRequest")[1].reason


@pytest.mark.spec("S3-42", "S3-54", "U-28")
def test_a_leader_that_assigns_unsubscribed_topics_is_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene(running: Running) -> None:
        await running.stable(4)

    unwanted = [("planes", number) for number in range(300)]
    rounds = [join_then_sync(*unwanted, generation=number) for number in (1, 2, 3)]
    play(scripted(*itertools.chain(*rounds), *join_then_sync(("flights", 1), generation=4)), scene)
    (logged,) = [one for one in caplog.records if one.levelno >= logging.WARNING]
    some = "planes-0, planes-1, planes-2, planes-3, planes-4 and 295 more"
    text = f"group {GROUP}: the assignment {some} does not match the subscription flights: joining again"
    assert logged.getMessage() == text


@pytest.mark.spec("S3-45", "B.13.7")
def test_a_topic_that_matches_the_pattern_and_only_the_leader_knew_is_taken_without_another_join() -> None:
    async def scene(running: Running) -> None:
        running.membership.set_subscription(["flights"], matches=lambda topic: topic.startswith("fl"))
        await running.stable()
        await asyncio.sleep(0.1)
        assert running.user.assignments == [(F[1], TopicPartition("fleets", 0))]

    play(scripted(*join_then_sync(("flights", 1), ("fleets", 0))), scene)
