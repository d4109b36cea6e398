"""ConsumerGroupDescribe, and how ListGroups and DescribeGroups show a group of the consumer protocol."""

from __future__ import annotations

import pytest

from kclient.generated.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kclient.generated.consumer_group_describe_response import Assignment, DescribedGroup, TopicPartitions
from kclient.generated.consumer_group_describe_response import Member as DescribedMember
from kclient.generated.describe_groups_request import DescribeGroupsRequest
from kclient.generated.describe_groups_response import DescribedGroup as DescribedClassic
from kclient.generated.list_groups_request import ListGroupsRequest
from kclient.protocol import errors
from tests.conformance.classic import Member as ClassicMember
from tests.conformance.consumer import Member, described
from tests.conformance.target import Target

pytestmark = [pytest.mark.since("4.0"), pytest.mark.spec("B.17.6")]

NOT_ASKED = -2_147_483_648  # for authorized operations


@pytest.mark.api("ConsumerGroupDescribe")
def test_a_group_is_described_with_what_members_own_and_should_own(
    target: Target, group: str, version: int
) -> None:
    topic = target.topic(2)
    topic_id = target.topic_id(topic)
    one, two = Member(target, group, "m1", instance_id="i"), Member(target, group, "m2")
    one.join(topic, rack_id="r", server_assignor="range")
    two.join(topic)
    one.beat()

    def rows(*numbers: int) -> Assignment:
        whole = TopicPartitions(topic_id=topic_id, topic_name=topic, partitions=list(numbers))
        return Assignment(topic_partitions=[whole] if numbers else [])

    def member(member_id: str, epoch: int, now: Assignment, then: Assignment) -> DescribedMember:
        return DescribedMember(
            member_id=member_id,
            member_epoch=epoch,
            client_id="asker",
            client_host="/127.0.0.1",
            subscribed_topic_names=[topic],
            subscribed_topic_regex="",
            assignment=now,
            target_assignment=then,
            member_type=1 if version >= 1 else -1,
        )

    first = member("m1", 2, rows(0, 1), rows(0))
    first.instance_id, first.rack_id = "i", "r"
    assert described(target, group, version) == DescribedGroup(
        group_id=group,
        group_state="Reconciling",
        group_epoch=3,
        assignment_epoch=3,
        assignor_name="range",
        members=[first, member("m2", 3, rows(), rows(1))],
        authorized_operations=NOT_ASKED,
    )


@pytest.mark.api("ConsumerGroupDescribe")
def test_authorized_operations_on_request(target: Target, group: str, topic: str, version: int) -> None:
    Member(target, group, "m").join(topic)
    request = ConsumerGroupDescribeRequest(group_ids=[group, "never"], include_authorized_operations=True)
    rows = {row.group_id: row.authorized_operations for row in target.ask(request, version).groups}
    codes = (3, 6, 8, 10, 11)  # READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS
    assert rows == {group: sum(1 << code for code in codes), "never": NOT_ASKED}


@pytest.mark.api("ConsumerGroupDescribe")
def test_groups_that_are_not_of_the_protocol_are_not_found(target: Target, group: str, version: int) -> None:
    with ClassicMember(target, group) as member:
        member.join()
        request = ConsumerGroupDescribeRequest(group_ids=[group, "never"])
        response = target.ask(request, version).groups
        assert sorted(response, key=lambda row: row.group_id == "never") == [
            DescribedGroup(group_id=group_id, error_code=errors.GROUP_ID_NOT_FOUND, error_message=text)
            for group_id, text in [
                (group, f"Group {group} is not a consumer group."),
                ("never", "Group never not found."),
            ]
        ]
        assert Member(target, group, "m").beat(1).error_message == f"Group {group} is not a consumer group."


def test_no_group_has_an_empty_name(target: Target, group: str) -> None:
    [row] = target.ask(ConsumerGroupDescribeRequest(group_ids=[""])).groups
    assert row == DescribedGroup(group_id="", error_code=errors.INVALID_GROUP_ID)


def test_a_group_is_listed_with_its_type(target: Target, group: str, topic: str) -> None:
    member = Member(target, group, "m")
    member.join(topic)

    def listed() -> list[tuple[str, str, str]]:
        response = target.ask(ListGroupsRequest(types_filter=["consumer"]), 5)
        return [
            (row.protocol_type, row.group_state, row.group_type)
            for row in response.groups
            if row.group_id == group
        ]

    assert listed() == [("consumer", "Stable", "consumer")]
    member.beat(-1)
    assert listed() == [("consumer", "Empty", "consumer")]


@pytest.mark.api("DescribeGroups")
def test_to_classic_describers_it_is_dead(target: Target, group: str, topic: str, version: int) -> None:
    Member(target, group, "m").join(topic)
    [row] = target.ask(DescribeGroupsRequest(groups=[group]), version).groups
    said = version >= 6
    assert row == DescribedClassic(
        error_code=errors.GROUP_ID_NOT_FOUND if said else errors.NONE,
        error_message=f"Group {group} is not a classic group." if said else None,
        group_id=group,
        group_state="Dead",
        authorized_operations=NOT_ASKED,
    )
