"""A group changes its protocol while it runs: classic members in a consumer group, and both ways of conversion."""

from __future__ import annotations

from typing import Any, Self

import pytest

from kclient.generated.describe_groups_request import DescribeGroupsRequest
from kclient.generated.leave_group_request import LeaveGroupRequest, MemberIdentity
from kclient.generated.list_groups_request import ListGroupsRequest
from kclient.group.assignors.base import Assignment, Subscription
from kclient.group.subscription_codec import decode_assignment, encode_assignment, encode_subscription
from kclient.protocol import errors
from kclient.types import TopicPartition
from tests.conformance.classic import Member as ClassicMember
from tests.conformance.consumer import Member, described, progress, refused
from tests.conformance.target import Target, eventually
from tests.conformance.test_consumer_offsets import Offsets

pytestmark = [pytest.mark.since("4.0"), pytest.mark.spec("B.17.6")]


class Classic(ClassicMember):
    """A classic member that subscribes to one topic and says, when it joins, which partitions of it it owns."""

    def __init__(self, target: Target, group: str, topic: str, instance_id: str | None = None) -> None:
        super().__init__(target, group, instance_id=instance_id)
        self.topic = topic
        self.owns()

    def owns(self, *numbers: int) -> Self:
        """From now on it says so."""
        owned = tuple(TopicPartition(self.topic, number) for number in numbers)
        subscription = Subscription((self.topic,), owned_partitions=owned)
        self.protocols = (("range", encode_subscription(subscription)),)
        return self

    def got(self) -> list[int]:
        """What SyncGroup gives it now."""
        response = self.sync()
        assert response.error_code == errors.NONE, response
        return [tp.partition for tp in decode_assignment(response.assignment).partitions]

    def settled(self, *numbers: int) -> Self:
        """It alone is a classic group that is Stable, and owns these."""
        self.join()
        plan = Assignment(tuple(TopicPartition(self.topic, number) for number in numbers))
        assert self.sync({self.member_id: encode_assignment(plan)}).error_code == errors.NONE
        return self


def listed(target: Target, group: str) -> tuple[str, str]:
    """State and type of a group in ListGroups."""
    [row] = [row for row in target.ask(ListGroupsRequest(), 5).groups if row.group_id == group]
    return row.group_state, row.group_type


def classic_state(target: Target, group: str) -> tuple[str, list[str]]:
    """State and members of a group in DescribeGroups."""
    [row] = target.ask(DescribeGroupsRequest(groups=[group]), 5).groups
    return row.group_state, [member.member_id for member in row.members]


def joined_as(response: Any) -> tuple[Any, ...]:
    """What a JoinGroup response says of the group."""
    return (
        response.generation_id,
        response.protocol_type,
        response.protocol_name,
        response.leader,
        response.members,
    )


IN_A_CONSUMER_GROUP = ("consumer", "range", "", [])


def test_a_classic_group_is_taken_over_member_by_member(target: Target, group: str) -> None:
    topic = target.topic(4)
    topic_id = target.topic_id(topic)
    with Classic(target, group, topic).settled(0, 1, 2, 3) as old:
        new = Member(target, group, "m1")
        assert new.join(topic) == new.answer(2, {})
        assert listed(target, group) == ("Reconciling", "consumer")
        assert progress(target, group) == ("Reconciling", 2, 2, {old.member_id: 1, "m1": 2})
        types = {member.member_id: member.member_type for member in described(target, group).members}
        assert types == {old.member_id: 0, "m1": 1}

        assert old.heartbeat() == errors.REBALANCE_IN_PROGRESS
        assert old.sync().error_code == errors.REBALANCE_IN_PROGRESS
        assert joined_as(old.owns(0, 1, 2, 3).join()) == (1, *IN_A_CONSUMER_GROUP)
        assert old.got() == [0, 1]
        # It has not said yet that it gave up the others.
        assert old.heartbeat() == errors.REBALANCE_IN_PROGRESS
        assert new.beat() == new.answer(2)
        assert joined_as(old.owns(0, 1).join()) == (2, *IN_A_CONSUMER_GROUP)
        assert old.got() == [0, 1]
        assert old.heartbeat() == errors.NONE
        assert new.beat() == new.answer(2, {topic_id: [2, 3]})
        assert progress(target, group) == ("Stable", 2, 2, {old.member_id: 2, "m1": 2})


def test_classic_members_are_checked_as_ever(target: Target, group: str, topic: str) -> None:
    new = Member(target, group, "m1")
    new.join(topic)
    with Classic(target, group, topic) as old, Classic(target, group, topic) as other:
        first = old.ask_to_join()
        assert (first.error_code, len(first.member_id)) == (errors.MEMBER_ID_REQUIRED, 22)
        assert joined_as(old.join()) == (3, *IN_A_CONSUMER_GROUP)
        assert old.got() == []
        assert old.heartbeat(generation_id=9) == errors.ILLEGAL_GENERATION
        assert old.heartbeat(member_id="stranger") == errors.UNKNOWN_MEMBER_ID
        assert old.heartbeat(member_id="m1", generation_id=3) == errors.UNKNOWN_MEMBER_ID
        assert old.sync(protocol_name="other").error_code == errors.INCONSISTENT_GROUP_PROTOCOL
        blob = other.protocols[0][1]
        other.protocols = (("other", blob),)
        assert other.ask_to_join().error_code == errors.INCONSISTENT_GROUP_PROTOCOL
        assert new.beat(3, member_id=old.member_id).error_code == errors.NONE  # and so it speaks the new one


def test_classic_members_commit_in_their_generation(target: Target, group: str, topic: str) -> None:
    with Classic(target, group, topic).settled(0) as old:
        new = Member(target, group, "m1")
        new.join(topic)
        offsets = Offsets(target, group, topic)
        assert offsets.commit(old.member_id, 1, version=8) == {errors.NONE}
        assert offsets.commit(old.member_id, 2, version=8) == {errors.ILLEGAL_GENERATION}
        old.owns(0).join()
        assert old.generation == 2
        assert offsets.commit(old.member_id, 1) == {errors.NONE}  # it has had it since
        assert offsets.commit(old.member_id, 0) == {errors.ILLEGAL_GENERATION}
        assert offsets.fetch(old.member_id, 1) == errors.ILLEGAL_GENERATION


def test_classic_members_leave(target: Target, group: str, topic: str) -> None:
    new = Member(target, group, "m1")
    new.join(topic)
    with Classic(target, group, topic) as old:
        old.join()
        names = [old.member_id, "stranger"]
        request = LeaveGroupRequest(
            group_id=group, members=[MemberIdentity(member_id=name) for name in names]
        )
        codes = [row.error_code for row in target.ask(request).members]
        assert codes == [errors.NONE, errors.UNKNOWN_MEMBER_ID]
        assert progress(target, group) == ("Assigning", 4, 3, {"m1": 2})
        assert old.heartbeat() == errors.UNKNOWN_MEMBER_ID
    request = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id="m1")])
    assert target.ask(request).members[0].error_code == errors.NONE  # this API sends anybody away
    assert progress(target, group)[0] == "Empty"


def test_when_the_last_new_member_leaves_the_group_is_classic_again(target: Target, group: str) -> None:
    topic = target.topic(2)
    with Classic(target, group, topic).settled(0, 1) as old:
        new = Member(target, group, "m1")
        new.join(topic)
        old.owns(0).join()
        assert old.got() == [0]
        assert new.beat(-1) == new.answer(-1)
        assert listed(target, group) == ("PreparingRebalance", "classic")
        assert classic_state(target, group) == ("PreparingRebalance", [old.member_id])
        assert old.heartbeat(generation_id=2) == errors.REBALANCE_IN_PROGRESS
        assert joined_as(old.join())[:4] == (3, "consumer", "range", old.member_id)
        gone = refused(errors.GROUP_ID_NOT_FOUND, f"Group {group} is not a consumer group.")
        assert new.beat(2) == gone


def test_a_static_member_changes_its_protocol(target: Target, group: str) -> None:
    topic = target.topic(2)
    topic_id = target.topic_id(topic)
    with Classic(target, group, topic, instance_id="i") as old:
        old.settled(0, 1)
        new = Member(target, group, "m1", instance_id="i")
        assert new.join(topic) == new.answer(1, {topic_id: [0, 1]})
        assert progress(target, group) == ("Stable", 1, 1, {"m1": 1})
        assert old.heartbeat() == errors.FENCED_INSTANCE_ID
        other = Classic(target, group, topic, instance_id="i")
        response = other.join()
        assert other.member_id != "m1"
        assert (response.generation_id, response.leader) == (1, "")
        assert listed(target, group)[1] == "classic"
        assert other.got() == [0, 1]
        other.__exit__(None, None, None)


def test_an_empty_group_takes_either_protocol(target: Target, group: str, topic: str) -> None:
    topic_id = target.topic_id(topic)
    offsets = Offsets(target, group, topic)
    new = Member(target, group, "m1")
    with Classic(target, group, topic).settled(0) as old:
        assert offsets.commit(old.member_id, 1) == {errors.NONE}
        old.leave()
        assert new.join(topic) == new.answer(2, {topic_id: [0]})
        assert listed(target, group) == ("Stable", "consumer")
        assert offsets.fetch("m1", 2) == 5
        new.beat(-1)
    with Classic(target, group, topic) as old:
        assert joined_as(old.join())[:4] == (1, "consumer", "range", old.member_id)
        assert listed(target, group) == ("CompletingRebalance", "classic")
        assert offsets.fetch(None, -1) == 5


def test_only_consumers_are_taken_over(target: Target, group: str, topic: str) -> None:
    with ClassicMember(target, group, protocol_type="connect", protocols=(("x", b"1"),)) as worker:
        worker.join()
        response = Member(target, group, "m1").join(topic)
        why = "because the group does not use the consumer embedded protocol."
        text = f"Cannot upgrade classic group {group} to consumer group {why}"
        assert response == refused(errors.GROUP_ID_NOT_FOUND, text)
        assert classic_state(target, group)[0] == "CompletingRebalance"


def test_user_data_in_assignments_prevents_the_upgrade_and_in_subscriptions_does_not(
    target: Target, group: str, topic: str
) -> None:
    why = (
        "because an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
        "assignor before re-attempting the upgrade."
    )
    with Classic(target, group, topic) as old:
        old.protocols = (("range", encode_subscription(Subscription((topic,), b"mine"))),)
        old.join()
        plan = encode_assignment(Assignment((TopicPartition(topic, 0),), b"mine"))
        assert old.sync({old.member_id: plan}).error_code == errors.NONE
        response = Member(target, group, "m1").join(topic)
        assert response == refused(
            errors.GROUP_ID_NOT_FOUND, f"Cannot upgrade classic group {group} to consumer group {why}"
        )
        assert classic_state(target, group)[0] == "Stable"
        old.join()
        plan = encode_assignment(Assignment((TopicPartition(topic, 0),), b""))
        assert old.sync({old.member_id: plan}).error_code == errors.NONE
        assert Member(target, group, "m1").join(topic).error_code == errors.NONE


def test_a_member_that_waits_for_the_classic_group_is_sent_back(
    target: Target, group: str, topic: str
) -> None:
    with Classic(target, group, topic).settled(0) as old, Classic(target, group, topic) as waiting:
        waiting.begin()
        # It waits on its own connection.
        eventually(old.heartbeat, lambda code: code == errors.REBALANCE_IN_PROGRESS)
        new = Member(target, group, "m1")
        assert new.join(topic).error_code == errors.NONE
        assert waiting.joined().error_code == errors.REBALANCE_IN_PROGRESS
        assert old.heartbeat() == errors.REBALANCE_IN_PROGRESS
