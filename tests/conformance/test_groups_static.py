"""Static membership (KIP-345): an instance id outlives its member id, and fences its former member."""

from __future__ import annotations

import pytest

from kclient.protocol import errors
from tests.conformance.classic import OTHER, SUBSCRIPTION, Member, settled_pair
from tests.conformance.target import Target, eventually

pytestmark = pytest.mark.api("JoinGroup", 5, few=True)


@pytest.mark.spec("S4-31", "B.21")
def test_a_static_member_needs_no_second_join(target: Target, group: str, version: int) -> None:
    with Member(target, group, instance_id="a", versions={"JoinGroup": version}) as member:
        response = member.join()
        assert response.member_id.startswith("a-")
        assert [row.group_instance_id for row in response.members] == ["a"]


@pytest.mark.spec("B.21")
@pytest.mark.api("JoinGroup", 5)
def test_coming_back_unchanged_keeps_the_generation_and_fences_the_predecessor(
    target: Target, group: str, version: int
) -> None:
    versions = {"JoinGroup": version}
    with (
        Member(target, group, instance_id="a", versions=versions) as before,
        Member(target, group, instance_id="a", versions=versions) as after,
    ):
        before.settle()
        response = after.ask_to_join()
        assert (response.error_code, response.generation_id) == (errors.NONE, 1)
        assert response.member_id != before.member_id
        assert response.skip_assignment is (version >= 9)
        if version >= 9:
            assert response.leader == after.member_id
            assert [row.member_id for row in response.members] == [after.member_id]
        else:
            assert (response.leader, response.members) == (before.member_id, [])
        assert after.sync().assignment == b"plan"
        assert after.heartbeat() == errors.NONE
        assert before.heartbeat() == errors.FENCED_INSTANCE_ID
        assert before.sync().error_code == errors.FENCED_INSTANCE_ID
        assert before.ask_to_join().error_code == errors.FENCED_INSTANCE_ID
        assert before.leave().members[0].error_code == errors.FENCED_INSTANCE_ID


@pytest.mark.spec("B.21")
def test_coming_back_as_the_follower_disturbs_no_other(target: Target, group: str) -> None:
    with (
        Member(target, group, instance_id="a") as leader,
        Member(target, group, instance_id="b") as before,
        Member(target, group, instance_id="b") as after,
    ):
        leader.settle()
        before.queue(leader)
        leader.send_join()
        leader.joined()
        before.joined()
        assert leader.sync({leader.member_id: b"L", before.member_id: b"F"}).error_code == errors.NONE
        response = after.ask_to_join()
        assert (response.generation_id, response.leader, response.members) == (2, leader.member_id, [])
        assert after.sync().assignment == b"F"
        assert leader.heartbeat() == errors.NONE


@pytest.mark.spec("B.21")
def test_coming_back_with_other_topics_keeps_the_generation(target: Target, group: str) -> None:
    with (
        Member(target, group, instance_id="a") as before,
        Member(target, group, instance_id="a", protocols=(("range", OTHER),)) as after,
    ):
        before.settle()
        response = after.ask_to_join()
        assert (response.error_code, response.generation_id) == (errors.NONE, 1)
        assert response.skip_assignment is target.since("3.2")


@pytest.mark.spec("B.21")
def test_coming_back_with_another_first_choice_starts_a_new_round(target: Target, group: str) -> None:
    both = (("range", SUBSCRIPTION), ("roundrobin", SUBSCRIPTION))
    with (
        Member(target, group, instance_id="a", protocols=both) as before,
        Member(target, group, instance_id="a", protocols=both[::-1]) as after,
    ):
        before.settle()
        response = after.ask_to_join()
        assert (response.error_code, response.generation_id) == (errors.NONE, 2)
        assert (response.protocol_name, response.leader) == ("roundrobin", after.member_id)


@pytest.mark.spec("B.21")
def test_coming_back_with_only_another_protocol_is_refused(target: Target, group: str) -> None:
    with (
        Member(target, group, instance_id="a") as before,
        Member(target, group, instance_id="a", protocols=(("roundrobin", SUBSCRIPTION),)) as after,
    ):
        before.settle()
        assert after.ask_to_join().error_code == errors.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.spec("B.21")
def test_an_unknown_instance_with_a_member_id_is_refused(target: Target, group: str, version: int) -> None:
    with (
        Member(target, group) as member,
        Member(target, group, instance_id="a", versions={"JoinGroup": version}) as other,
    ):
        member.settle()
        assert other.ask_to_join(member_id="nobody").error_code == errors.UNKNOWN_MEMBER_ID
        assert other.ask_to_join(member_id=member.member_id).error_code == errors.UNKNOWN_MEMBER_ID


@pytest.mark.spec("B.21")
def test_a_static_member_that_is_away_keeps_its_place_in_a_rebalance(target: Target, group: str) -> None:
    with (
        Member(target, group, rebalance_timeout_ms=2500) as leader,
        Member(target, group, instance_id="b", rebalance_timeout_ms=2500) as away,
    ):
        leader.settle()
        away.queue(leader)
        leader.send_join()
        leader.joined()
        away.joined()
        leader.sync({leader.member_id: b"L"})
        away.sync()
        response = leader.ask_to_join()  # waits for the other as long as the rebalance may last
        assert (response.generation_id, len(response.members)) == (3, 2)


@pytest.mark.spec("B.21")
def test_a_static_member_that_is_silent_expires_with_its_session(target: Target, group: str) -> None:
    with (
        Member(target, group) as leader,
        Member(target, group, instance_id="b", session_timeout_ms=3000) as away,
    ):
        leader.settle()
        away.queue(leader)
        leader.send_join()
        leader.joined()
        away.joined()
        leader.sync({leader.member_id: b"L"})
        away.sync()
        eventually(leader.heartbeat, lambda code: code == errors.REBALANCE_IN_PROGRESS)
        assert len(leader.ask_to_join().members) == 1


@pytest.mark.spec("B.21")
def test_an_instance_that_the_member_never_had_is_unknown(target: Target, group: str) -> None:
    leader, follower = settled_pair(target, group)
    with leader, follower:
        strange = errors.UNKNOWN_MEMBER_ID if target.since("4.0") else errors.NONE  # 2.8 does not look
        assert leader.heartbeat(group_instance_id="a") == strange
        assert leader.sync(group_instance_id="a").error_code == strange
