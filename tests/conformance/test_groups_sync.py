"""SyncGroup: the leader's plan, the assignment of each member, and the refused members."""

from __future__ import annotations

import pytest

from kclient.generated.sync_group_response import SyncGroupResponse
from kclient.protocol import errors
from tests.conformance.classic import OTHER, Member, pair, settled_pair
from tests.conformance.target import Target, eventually

pytestmark = pytest.mark.api("SyncGroup", few=True)


def refused(code: int) -> SyncGroupResponse:
    """The whole response to a sync that fails."""
    return SyncGroupResponse(error_code=code, protocol_type=None, protocol_name=None, assignment=b"")


@pytest.mark.spec("S4-40", "S4-42", "B.21")
@pytest.mark.api("SyncGroup", few=True)
def test_the_leaders_plan_reaches_the_parked_follower(target: Target, group: str, version: int) -> None:
    leader, follower = pair(target, group, versions={"SyncGroup": version})
    with leader, follower:
        follower.send_sync()
        assert follower.raw_client.silent(0.05)
        mine = leader.sync({leader.member_id: b"L", follower.member_id: b"F"})
        named = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
        empty = {"protocol_type": None, "protocol_name": None}
        assert mine == SyncGroupResponse(assignment=b"L", **(empty | named))
        assert follower.synced() == SyncGroupResponse(assignment=b"F", **(empty | named))


@pytest.mark.spec("S4-41")
def test_a_late_follower_gets_the_stored_part_at_once(target: Target, group: str, version: int) -> None:
    leader, follower = settled_pair(target, group, versions={"SyncGroup": version})
    with leader, follower:
        assert follower.sync().assignment == b"F"
        assert leader.sync().assignment == b"L"  # the plan is not taken again


@pytest.mark.spec("S4-40")
def test_whom_the_leader_forgot_gets_no_bytes(target: Target, group: str) -> None:
    leader, follower = pair(target, group)
    with leader, follower:
        assert leader.sync({leader.member_id: b"L", "nobody": b"N"}).assignment == b"L"
        assert follower.sync().assignment == b""


@pytest.mark.spec("S4-39", "B.21")
def test_an_unknown_group_is_refused(target: Target, group: str, version: int) -> None:
    with Member(target, group, versions={"SyncGroup": version}) as member:
        assert member.sync(member_id="nobody", generation_id=1) == refused(errors.UNKNOWN_MEMBER_ID)


@pytest.mark.spec("B.21")
def test_an_empty_group_id_is_refused(target: Target, version: int) -> None:
    with Member(target, "group", versions={"SyncGroup": version}) as member:
        response = member.sync(group_id="", member_id="nobody", generation_id=1)
        assert response == refused(errors.INVALID_GROUP_ID)


@pytest.mark.spec("B.21")
def test_an_unknown_member_is_refused(target: Target, group: str, version: int) -> None:
    with Member(target, group, versions={"SyncGroup": version}) as member:
        member.settle()
        assert member.sync(member_id="nobody") == refused(errors.UNKNOWN_MEMBER_ID)


@pytest.mark.spec("B.21")
@pytest.mark.parametrize("generation", [0, 2, -1])
def test_another_generation_is_refused(target: Target, group: str, version: int, generation: int) -> None:
    with Member(target, group, versions={"SyncGroup": version}) as member:
        member.join()
        assert member.sync(generation_id=generation) == refused(errors.ILLEGAL_GENERATION)
        assert member.sync({member.member_id: b"plan"}).assignment == b"plan"


@pytest.mark.spec("B.21")
@pytest.mark.api("SyncGroup", 5, few=True)
@pytest.mark.parametrize("changes", [{"protocol_type": "connect"}, {"protocol_name": "roundrobin"}])
def test_another_protocol_is_refused(
    target: Target, group: str, version: int, changes: dict[str, str]
) -> None:
    with Member(target, group, versions={"SyncGroup": version}) as member:
        member.join()
        assert member.sync(**changes) == refused(errors.INCONSISTENT_GROUP_PROTOCOL)


@pytest.mark.spec("B.21")
@pytest.mark.api("SyncGroup", 5, few=True)
@pytest.mark.parametrize("changes", [{"protocol_type": None}, {"protocol_name": None}])
def test_protocol_type_and_name_are_mandatory(
    target: Target, group: str, version: int, changes: dict[str, None]
) -> None:
    with Member(target, group, versions={"SyncGroup": version}) as member:
        member.join()
        assert member.sync(**changes) == refused(errors.INCONSISTENT_GROUP_PROTOCOL)


@pytest.mark.spec("S4-56", "B.21")
def test_a_join_before_the_plan_fails_the_parked_syncs(target: Target, group: str, version: int) -> None:
    versions = {"SyncGroup": version}
    leader, follower = pair(target, group, versions=versions)
    with leader, follower, Member(target, group, versions=versions) as third:
        follower.send_sync()
        assert follower.raw_client.silent(0.05)
        third.begin()
        assert follower.synced() == refused(errors.REBALANCE_IN_PROGRESS)
        assert leader.sync({leader.member_id: b"L"}) == refused(errors.REBALANCE_IN_PROGRESS)


@pytest.mark.spec("S4-56")
def test_a_leave_before_the_plan_fails_the_parked_syncs(target: Target, group: str) -> None:
    leader, follower = pair(target, group)
    with leader, follower:
        follower.send_sync()
        assert follower.raw_client.silent(0.05)
        assert leader.leave().error_code == errors.NONE
        assert follower.synced() == refused(errors.REBALANCE_IN_PROGRESS)


@pytest.mark.spec("S4-56")
def test_changed_metadata_before_the_plan_fails_the_parked_syncs(target: Target, group: str) -> None:
    leader, follower = pair(target, group)
    with leader, follower:
        follower.send_sync()
        assert follower.raw_client.silent(0.05)
        leader.protocols = (("range", OTHER),)
        leader.send_join()
        assert follower.synced() == refused(errors.REBALANCE_IN_PROGRESS)
        assert follower.ask_to_join().generation_id == leader.joined().generation_id == 3


@pytest.mark.spec("B.21")
def test_a_member_that_does_not_sync_within_the_rebalance_timeout_is_removed(
    target: Target, group: str
) -> None:
    leader, follower = pair(target, group, rebalance_timeout_ms=3000)
    with leader, follower:
        leader.send_sync({leader.member_id: b"L", follower.member_id: b"F"})
        assert leader.synced().assignment == b"L"
        eventually(leader.heartbeat, lambda code: code == errors.REBALANCE_IN_PROGRESS)
        assert follower.sync() == refused(errors.UNKNOWN_MEMBER_ID)
