"""LeaveGroup: one member before version 3, several from there on, each with its own response."""

from __future__ import annotations

import pytest

from kclient.generated.leave_group_request import LeaveGroupRequest, MemberIdentity
from kclient.generated.leave_group_response import LeaveGroupResponse, MemberResponse
from kclient.protocol import errors
from tests.conformance.classic import Member, settled_pair
from tests.conformance.target import Target

pytestmark = pytest.mark.api("LeaveGroup", few=True)


def answer_of(version: int, member: Member, code: int) -> LeaveGroupResponse:
    """The whole response to one member."""
    if version < 3:
        return LeaveGroupResponse(error_code=code)
    row = MemberResponse(member_id=member.member_id, group_instance_id=member.instance_id, error_code=code)
    return LeaveGroupResponse(members=[row])


@pytest.mark.spec("S4-42", "B.21")
@pytest.mark.api("LeaveGroup", few=True)
def test_the_last_member_leaves_an_empty_group(target: Target, group: str, version: int) -> None:
    with Member(target, group, versions={"LeaveGroup": version}) as member:
        member.settle()
        assert member.leave() == answer_of(version, member, errors.NONE)
        assert member.heartbeat() == errors.UNKNOWN_MEMBER_ID
        member.member_id = ""
        assert member.join().generation_id == 3  # the empty group had a generation of its own


@pytest.mark.spec("B.21")
def test_unknown_members_are_refused(target: Target, group: str, version: int) -> None:
    with Member(target, group, versions={"LeaveGroup": version}) as member:
        member.settle()
        known, member.member_id = member.member_id, "nobody"
        assert member.leave() == answer_of(version, member, errors.UNKNOWN_MEMBER_ID)
        member.member_id = known
        assert member.heartbeat() == errors.NONE


@pytest.mark.spec("B.21")
def test_a_member_of_an_unknown_group_is_refused(target: Target, group: str, version: int) -> None:
    with Member(target, group, versions={"LeaveGroup": version}) as member:
        member.member_id = "nobody"
        assert member.leave() == answer_of(version, member, errors.UNKNOWN_MEMBER_ID)


@pytest.mark.spec("B.21")
def test_an_empty_group_id_is_refused(target: Target, version: int) -> None:
    target.coordinated("group")
    members = [MemberIdentity(member_id="nobody")] if version >= 3 else []
    request = LeaveGroupRequest(group_id="", member_id="" if members else "nobody", members=members)
    response = target.ask(request, version)
    assert response.error_code == errors.INVALID_GROUP_ID


@pytest.mark.spec("B.21")
def test_a_leave_makes_the_others_rejoin(target: Target, group: str) -> None:
    leader, follower = settled_pair(target, group)
    with leader, follower:
        assert follower.leave().members[0].error_code == errors.NONE
        assert leader.heartbeat() == errors.REBALANCE_IN_PROGRESS
        assert leader.ask_to_join().generation_id == 3


@pytest.mark.spec("B.21")
def test_a_member_id_before_the_join_may_leave(target: Target, group: str) -> None:
    with Member(target, group) as member:
        assert member.ask_to_join().error_code == errors.MEMBER_ID_REQUIRED
        assert member.leave().members[0].error_code == errors.NONE
        assert member.ask_to_join().error_code == errors.UNKNOWN_MEMBER_ID


@pytest.mark.spec("B.21")
@pytest.mark.api("LeaveGroup", 3, few=True)
def test_several_leave_at_once_each_with_its_response(target: Target, group: str, version: int) -> None:
    with Member(target, group, instance_id="a") as first, Member(target, group) as second:
        first.settle()
        second.queue(first)
        first.send_join()
        assert first.joined().generation_id == second.joined().generation_id == 2
        rows = [
            MemberIdentity(member_id="", group_instance_id="a"),
            MemberIdentity(member_id="", group_instance_id="b"),
            MemberIdentity(member_id=second.member_id),
            MemberIdentity(member_id="nobody"),
        ]
        response = target.ask(LeaveGroupRequest(group_id=group, members=rows), version)
        assert response == LeaveGroupResponse(
            members=[
                MemberResponse(member_id="", group_instance_id="a", error_code=errors.NONE),
                MemberResponse(member_id="", group_instance_id="b", error_code=errors.UNKNOWN_MEMBER_ID),
                MemberResponse(member_id=second.member_id, group_instance_id=None, error_code=errors.NONE),
                MemberResponse(
                    member_id="nobody", group_instance_id=None, error_code=errors.UNKNOWN_MEMBER_ID
                ),
            ]
        )


@pytest.mark.spec("B.21")
@pytest.mark.api("LeaveGroup", 3, few=True)
def test_another_members_instance_is_fenced(target: Target, group: str, version: int) -> None:
    with Member(target, group, instance_id="a") as member:
        member.settle()
        rows = [MemberIdentity(member_id="nobody", group_instance_id="a")]
        response = target.ask(LeaveGroupRequest(group_id=group, members=rows), version)
        assert [row.error_code for row in response.members] == [errors.FENCED_INSTANCE_ID]
        assert member.heartbeat() == errors.NONE
