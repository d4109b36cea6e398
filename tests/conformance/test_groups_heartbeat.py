"""Heartbeat: what it says in each state of the group."""

from __future__ import annotations

import time

import pytest

from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.generated.heartbeat_response import HeartbeatResponse
from kclient.protocol import errors
from tests.conformance.classic import Member, pair
from tests.conformance.target import Target

pytestmark = pytest.mark.api("Heartbeat", few=True)


@pytest.mark.spec("B.21")
@pytest.mark.api("Heartbeat")
def test_in_stable_all_is_well(target: Target, group: str, version: int) -> None:
    with Member(target, group) as member:
        member.settle()
        request = HeartbeatRequest(group_id=group, generation_id=1, member_id=member.member_id)
        assert target.ask(request, version) == HeartbeatResponse()


@pytest.mark.spec("B.21")
def test_unknown_groups_and_members_are_refused(target: Target, group: str, version: int) -> None:
    with Member(target, group, versions={"Heartbeat": version}) as member:
        assert member.heartbeat(member_id="nobody", generation_id=1) == errors.UNKNOWN_MEMBER_ID
        member.settle()
        assert member.heartbeat(member_id="nobody") == errors.UNKNOWN_MEMBER_ID
        assert member.heartbeat(member_id="") == errors.UNKNOWN_MEMBER_ID
        assert member.leave().error_code == errors.NONE
        assert member.heartbeat() == errors.UNKNOWN_MEMBER_ID


@pytest.mark.spec("B.21")
def test_an_empty_group_id_is_refused(target: Target, version: int) -> None:
    with Member(target, "group", versions={"Heartbeat": version}) as member:
        code = member.heartbeat(group_id="", member_id="nobody", generation_id=1)
        assert code == errors.INVALID_GROUP_ID


@pytest.mark.spec("B.21")
@pytest.mark.parametrize("generation", [-1, 0, 2])
def test_another_generation_is_refused(target: Target, group: str, version: int, generation: int) -> None:
    with Member(target, group, versions={"Heartbeat": version}) as member:
        member.settle()
        assert member.heartbeat(generation_id=generation) == errors.ILLEGAL_GENERATION


@pytest.mark.spec("B.21")
def test_in_preparing_rebalance_the_member_is_asked_to_rejoin(
    target: Target, group: str, version: int
) -> None:
    versions = {"Heartbeat": version}
    with Member(target, group, versions=versions) as member, Member(target, group) as other:
        member.settle()
        other.queue(member)
        assert member.heartbeat() == errors.REBALANCE_IN_PROGRESS
        assert member.heartbeat(generation_id=5) == errors.ILLEGAL_GENERATION


@pytest.mark.spec("B.21")
def test_in_completing_rebalance_all_is_well(target: Target, group: str, version: int) -> None:
    leader, follower = pair(target, group, versions={"Heartbeat": version})
    with leader, follower:
        assert leader.heartbeat() == errors.NONE
        assert follower.heartbeat() == errors.NONE
        assert follower.heartbeat(generation_id=1) == errors.ILLEGAL_GENERATION


@pytest.mark.spec("B.21")
def test_a_member_id_before_the_join_has_no_generation(target: Target, group: str) -> None:
    with Member(target, group) as member:
        assert member.ask_to_join().error_code == errors.MEMBER_ID_REQUIRED
        assert member.heartbeat(generation_id=-1) == errors.UNKNOWN_MEMBER_ID
        assert member.heartbeat(generation_id=0) == errors.UNKNOWN_MEMBER_ID


@pytest.mark.spec("B.21")
def test_heartbeats_keep_a_member_alive_in_stable_and_in_preparing_rebalance(
    target: Target, group: str
) -> None:
    with Member(target, group, session_timeout_ms=4000) as member, Member(target, group) as other:
        member.settle()
        for _ in range(3):  # longer than the session in all
            time.sleep(1.4)
            assert member.heartbeat() == errors.NONE
        other.queue(member)
        for _ in range(3):  # longer than the session in all
            time.sleep(1.4)
            assert member.heartbeat() == errors.REBALANCE_IN_PROGRESS
