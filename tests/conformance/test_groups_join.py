"""JoinGroup: the first round, its refusals, and what a join does in each state of the group."""

from __future__ import annotations

import time

import pytest

from kclient.generated.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from kclient.protocol import errors
from tests.conformance.classic import OTHER, SUBSCRIPTION, Member, pair, settled_pair, subscription
from tests.conformance.target import Target, eventually

pytestmark = pytest.mark.api("JoinGroup", few=True)

BLOBS = [subscription("flights", user_data=b"%d" % number) for number in range(4)]


def refused(target: Target, version: int, code: int, member_id: str = "") -> JoinGroupResponse:
    """The whole response to a join that fails."""
    return JoinGroupResponse(
        error_code=code,
        generation_id=-1,
        protocol_type=None,
        protocol_name=None if version >= 7 else "",
        member_id=member_id,
    )


@pytest.mark.spec("S4-30", "S4-31", "S4-32", "S4-35", "S4-36", "S4-37", "E11", "B.21")
@pytest.mark.api("JoinGroup")
def test_the_first_member_leads_generation_1(target: Target, group: str, version: int) -> None:
    with Member(target, group, versions={"JoinGroup": version}) as member:
        response = member.join()
        assert response == JoinGroupResponse(
            generation_id=1,
            protocol_type="consumer" if version >= 7 else None,
            protocol_name="range",
            leader=member.member_id,
            member_id=member.member_id,
            members=[JoinGroupResponseMember(member_id=member.member_id, metadata=SUBSCRIPTION)],
        )
        name, _, uuid = member.member_id.partition("-")
        assert name == "asker"
        assert [len(part) for part in uuid.split("-")] == [8, 4, 4, 4, 12]


@pytest.mark.spec("B.21")
@pytest.mark.api("JoinGroup", 4)
def test_a_newcomer_gets_a_member_id_first(target: Target, group: str, version: int) -> None:
    with Member(target, group, versions={"JoinGroup": version}) as member:
        response = member.ask_to_join()
        assert response.member_id.startswith("asker-")
        assert response == refused(target, version, errors.MEMBER_ID_REQUIRED, response.member_id)


@pytest.mark.spec("B.21")
def test_an_empty_group_id_is_refused(target: Target, version: int) -> None:
    with Member(target, "group", versions={"JoinGroup": version}) as member:
        response = member.ask_to_join(group_id="")
        assert response == refused(target, version, errors.INVALID_GROUP_ID)


@pytest.mark.spec("B.21")
@pytest.mark.parametrize("session_timeout_ms", [999, 1_800_001])
def test_a_session_timeout_outside_the_bounds_is_refused(
    target: Target, group: str, version: int, session_timeout_ms: int
) -> None:
    with Member(target, group, versions={"JoinGroup": version}) as member:
        response = member.ask_to_join(session_timeout_ms=session_timeout_ms)
        assert response == refused(target, version, errors.INVALID_SESSION_TIMEOUT)


@pytest.mark.spec("S4-29", "B.21")
def test_an_unknown_member_of_an_unknown_group_is_refused(target: Target, group: str, version: int) -> None:
    with Member(target, group, versions={"JoinGroup": version}) as member:
        response = member.ask_to_join(member_id="nobody")
        assert response == refused(target, version, errors.UNKNOWN_MEMBER_ID, "nobody")


@pytest.mark.spec("B.21")
def test_an_unknown_member_of_a_group_is_refused(target: Target, group: str, version: int) -> None:
    with Member(target, group, versions={"JoinGroup": version}) as member:
        member.settle()
        with Member(target, group, versions={"JoinGroup": version}) as other:
            response = other.ask_to_join(member_id="nobody")
            assert response == refused(target, version, errors.UNKNOWN_MEMBER_ID, "nobody")
        assert member.heartbeat() == errors.NONE


@pytest.mark.spec("B.21")
@pytest.mark.parametrize(
    "changes", [{"protocol_type": ""}, {"protocols": []}, {"protocol_type": "", "protocols": []}]
)
def test_a_first_member_without_protocols_is_refused(
    target: Target, group: str, changes: dict[str, object]
) -> None:
    with Member(target, group, instance_id="instance") as member:
        response = member.ask_to_join(**changes)
        assert response.error_code == errors.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.spec("B.21")
@pytest.mark.parametrize(
    "changes", [{"protocol_type": "connect"}, {"protocols": []}, {"names": "roundrobin"}]
)
def test_a_member_without_a_common_protocol_is_refused(
    target: Target, group: str, changes: dict[str, object]
) -> None:
    with Member(target, group) as member, Member(target, group, instance_id="instance") as other:
        member.settle()
        if "names" in changes:
            other.protocols = (("roundrobin", b""),)
            changes = {}
        response = other.ask_to_join(**changes)
        version = target.newest("JoinGroup")
        assert response == refused(target, version, errors.INCONSISTENT_GROUP_PROTOCOL, response.member_id)
        assert response.member_id == ""
        assert member.heartbeat() == errors.NONE


@pytest.mark.spec("B.21")
def test_a_group_takes_no_more_than_its_maximum(target: Target, group: str) -> None:
    """The targets' group.max.size is 3."""
    members = [Member(target, group, instance_id=f"instance-{number}") for number in range(3)]
    members[0].settle()
    for number in (1, 2):
        members[number].queue(members[0])
        for member in members[:number]:
            member.send_join()
        for member in members[: number + 1]:
            assert member.joined().error_code == errors.NONE
    with Member(target, group, instance_id="instance-3") as last:
        assert last.ask_to_join().error_code == errors.GROUP_MAX_SIZE_REACHED
    with Member(target, group) as last:
        assert last.ask_to_join().error_code == errors.GROUP_MAX_SIZE_REACHED
    for member in members:
        member.raw_client.__exit__()


@pytest.mark.spec("S4-33", "S4-34", "S4-36", "S4-37", "S4-53")
@pytest.mark.api("JoinGroup")
def test_a_second_member_waits_until_the_first_rejoined(target: Target, group: str, version: int) -> None:
    versions = {"JoinGroup": version}
    with (
        Member(target, group, versions=versions) as first,
        Member(target, group, versions=versions) as second,
    ):
        first.settle()
        second.queue(first)
        assert second.raw_client.silent(0.05)
        first.send_join()
        response, other = first.joined(), second.joined()
        assert (response.generation_id, response.leader) == (2, first.member_id)
        assert {member.member_id for member in response.members} == {first.member_id, second.member_id}
        assert other == JoinGroupResponse(
            generation_id=2,
            protocol_type="consumer" if version >= 7 else None,
            protocol_name="range",
            leader=first.member_id,
            member_id=second.member_id,
        )


@pytest.mark.spec("S4-36")
def test_a_member_that_does_not_rejoin_in_time_is_removed(target: Target, group: str) -> None:
    with (
        Member(target, group, rebalance_timeout_ms=2500) as first,
        Member(target, group, rebalance_timeout_ms=2500) as second,
    ):
        first.settle()
        begun = time.monotonic()
        response = second.join()
        assert 2.4 < time.monotonic() - begun < 9
        assert (response.leader, len(response.members)) == (second.member_id, 1)
        assert first.heartbeat() == errors.UNKNOWN_MEMBER_ID


@pytest.mark.spec("B.21")
def test_the_leader_rejoining_in_stable_starts_a_new_round(target: Target, group: str) -> None:
    with Member(target, group) as member:
        member.settle()
        assert member.ask_to_join().generation_id == 2
        assert member.heartbeat() in (errors.NONE, errors.REBALANCE_IN_PROGRESS)


@pytest.mark.spec("B.21")
def test_an_unchanged_follower_rejoining_in_stable_gets_the_current_generation(
    target: Target, group: str
) -> None:
    leader, follower = settled_pair(target, group)
    with leader, follower:
        response = follower.ask_to_join()
        assert (response.error_code, response.generation_id, response.members) == (errors.NONE, 2, [])
        assert response.leader == leader.member_id
        assert leader.heartbeat() == errors.NONE


@pytest.mark.spec("B.21")
def test_a_follower_with_other_metadata_starts_a_new_round(target: Target, group: str) -> None:
    leader, follower = settled_pair(target, group)
    with leader, follower:
        follower.protocols = (("range", OTHER),)
        follower.send_join()
        assert follower.raw_client.silent(0.1)
        assert leader.heartbeat() == errors.REBALANCE_IN_PROGRESS
        response = leader.ask_to_join()
        assert response.generation_id == follower.joined().generation_id == 3
        assert {bytes(member.metadata) for member in response.members} == {OTHER, SUBSCRIPTION}


@pytest.mark.spec("B.21")
def test_joining_again_unchanged_in_completing_rebalance_repeats_the_response(
    target: Target, group: str
) -> None:
    leader, follower = pair(target, group)
    with leader, follower:
        again = leader.ask_to_join()
        assert (again.generation_id, again.leader, len(again.members)) == (2, leader.member_id, 2)
        assert follower.ask_to_join().generation_id == 2


@pytest.mark.spec("S4-42", "B.21")
def test_joining_changed_in_completing_rebalance_starts_over(target: Target, group: str) -> None:
    leader, follower = pair(target, group)
    with leader, follower:
        follower.protocols = (("range", OTHER),)
        follower.send_join()
        assert follower.raw_client.silent(0.1)
        assert leader.ask_to_join().generation_id == 3
        assert follower.joined().generation_id == 3


@pytest.mark.spec("B.21")
def test_the_protocol_is_the_one_with_most_votes_of_those_all_support(target: Target, group: str) -> None:
    first = Member(target, group, protocols=(("a", BLOBS[1]), ("b", BLOBS[1]), ("c", BLOBS[1])))
    second = Member(target, group, protocols=(("c", BLOBS[2]), ("b", BLOBS[2])))
    third = Member(target, group, protocols=(("b", BLOBS[3]), ("c", BLOBS[3]), ("a", BLOBS[3])))
    with first, second, third:
        first.join()
        second.queue(first)
        third.begin()
        assert third.raw_client.silent(0.1)
        first.send_join()
        responses = [first.joined(), second.joined(), third.joined()]
        assert {response.protocol_name for response in responses} == {"b"}
        assert sorted(bytes(member.metadata) for member in responses[0].members) == BLOBS[1:]


@pytest.mark.spec("S4-36", "B.21")
def test_when_the_leader_is_gone_the_next_leads(target: Target, group: str) -> None:
    leader, follower = settled_pair(target, group)
    with leader, follower:
        assert leader.leave().error_code == errors.NONE
        assert follower.heartbeat() == errors.REBALANCE_IN_PROGRESS
        response = follower.ask_to_join()
        assert (response.generation_id, response.leader) == (3, follower.member_id)
        assert [member.member_id for member in response.members] == [follower.member_id]


@pytest.mark.spec("S4-55")
def test_a_parked_member_does_not_expire(target: Target, group: str) -> None:
    first = Member(target, group, session_timeout_ms=10_000, rebalance_timeout_ms=10_000)
    second = Member(target, group, session_timeout_ms=2500, rebalance_timeout_ms=10_000)
    with first, second:
        first.settle()
        second.queue(first)
        for _ in range(4):
            time.sleep(0.7)  # longer than the second member's session in all
            assert first.heartbeat() == errors.REBALANCE_IN_PROGRESS
        first.send_join()
        assert first.joined().error_code == errors.NONE
        assert second.joined().error_code == errors.NONE
        assert second.heartbeat() in (errors.NONE, errors.REBALANCE_IN_PROGRESS)


@pytest.mark.spec("B.21")
def test_a_silent_member_expires_with_its_session(target: Target, group: str) -> None:
    leader, follower = Member(target, group), Member(target, group, session_timeout_ms=3000)
    with leader, follower:
        leader.settle()
        follower.queue(leader)
        leader.send_join()
        leader.joined()
        follower.joined()
        leader.sync({leader.member_id: b"L", follower.member_id: b"F"})
        follower.sync()
        eventually(leader.heartbeat, lambda code: code == errors.REBALANCE_IN_PROGRESS)
        assert follower.heartbeat() == errors.UNKNOWN_MEMBER_ID
