"""DescribeGroups, ListGroups, DeleteGroups: what an operator sees and may remove."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.generated.delete_groups_request import DeleteGroupsRequest
from kclient.generated.describe_groups_request import DescribeGroupsRequest
from kclient.generated.describe_groups_response import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from kclient.generated.list_groups_request import ListGroupsRequest
from kclient.protocol import errors
from tests.conformance.classic import SUBSCRIPTION, Member, pair
from tests.conformance.offsets import NOTHING, commit, committed
from tests.conformance.target import Target, eventually, fresh

NOT_ASKED = -2147483648
READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS = 3, 6, 8, 10, 11
OPERATIONS = {
    False: [READ, DELETE, DESCRIBE],
    True: [READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS],
}


def operations(bits: int) -> list[int]:
    """The numbers of the bits that are set."""
    return [number for number in range(32) if bits >> number & 1]


def described(target: Target, group: str, version: int, **fields: Any) -> Any:
    """The whole response about one group."""
    target.coordinated(group)
    return target.ask(DescribeGroupsRequest(groups=[group], **fields), version)


def state(target: Target, group: str) -> str:
    """The state of a group."""
    return str(described(target, group, target.newest("DescribeGroups")).groups[0].group_state)


@pytest.mark.spec("S4-52", "B.21")
@pytest.mark.api("DescribeGroups")
def test_a_stable_group(target: Target, group: str, version: int) -> None:
    with Member(target, group, instance_id="a") as member:
        member.settle()
        row = DescribedGroupMember(
            member_id=member.member_id,
            group_instance_id="a" if version >= 4 else None,
            client_id="asker",
            client_host="/127.0.0.1",
            member_metadata=SUBSCRIPTION,
            member_assignment=b"plan",
        )
        eventually(lambda: state(target, group), lambda name: name == "Stable")
        assert described(target, group, version) == DescribeGroupsResponse(
            groups=[
                DescribedGroup(
                    group_id=group,
                    group_state="Stable",
                    protocol_type="consumer",
                    protocol_data="range",
                    members=[row],
                    authorized_operations=NOT_ASKED,
                )
            ]
        )


@pytest.mark.spec("B.21")
@pytest.mark.api("DescribeGroups")
def test_an_unknown_group_is_dead(target: Target, group: str, version: int) -> None:
    [row] = described(target, group, version).groups
    expected = DescribedGroup(group_id=group, group_state="Dead", authorized_operations=NOT_ASKED)
    if version >= 6:
        expected.error_code = errors.GROUP_ID_NOT_FOUND
        assert row.error_message
    row.error_message = expected.error_message
    assert row == expected


@pytest.mark.spec("S4-42")
def test_each_state_has_its_name(target: Target, group: str) -> None:
    leader, follower = pair(target, group)
    with leader, follower:
        assert state(target, group) == "CompletingRebalance"
        leader.sync({leader.member_id: b""})
        eventually(lambda: state(target, group), lambda name: name == "Stable")
        leader.send_join()
        assert leader.raw_client.silent(0.05)
        assert state(target, group) == "PreparingRebalance"
        assert follower.ask_to_join().error_code == errors.NONE
        assert leader.joined().error_code == errors.NONE
        leader.leave()
        follower.leave()
        assert state(target, group) == "Empty"


def test_only_a_stable_group_shows_metadata(target: Target, group: str) -> None:
    with Member(target, group) as member:
        member.join()
        [row] = described(target, group, target.newest("DescribeGroups")).groups
        assert (row.protocol_type, row.protocol_data) == ("consumer", "")
        assert [bytes(one.member_metadata) for one in row.members] == [b""]


@pytest.mark.api("DescribeGroups", few=True)
def test_a_simple_group_has_no_protocol(target: Target, group: str, topic: str, version: int) -> None:
    assert commit(target, group, topic) == errors.NONE
    assert described(target, group, version).groups == [
        DescribedGroup(group_id=group, group_state="Empty", authorized_operations=NOT_ASKED)
    ]


@pytest.mark.api("DescribeGroups", 3, few=True)
def test_authorized_operations_on_request(target: Target, group: str, topic: str, version: int) -> None:
    assert commit(target, group, topic) == errors.NONE
    [row] = described(target, group, version, include_authorized_operations=True).groups
    assert operations(row.authorized_operations) == OPERATIONS[target.since("4.0")]


@pytest.mark.api("ListGroups")
def test_groups_are_listed_with_what_the_version_reports(target: Target, topic: str, version: int) -> None:
    simple, joined = fresh("group"), fresh("group")
    assert commit(target, simple, topic) == errors.NONE
    kind = "classic" if version >= 5 else ""
    expected = {
        simple: ("", "Empty" if version >= 4 else "", kind),
        joined: ("consumer", "Stable" if version >= 4 else "", kind),
    }

    def listed() -> dict[str, tuple[str, str, str]]:
        response = target.ask(ListGroupsRequest(), version)
        assert response.error_code == errors.NONE
        rows = {row.group_id: (row.protocol_type, row.group_state, row.group_type) for row in response.groups}
        return {group: rows[group] for group in (simple, joined)}

    with Member(target, joined) as member:
        member.settle()
        eventually(listed, lambda rows: rows == expected)  # 2.8 answers SyncGroup just before it is Stable


@pytest.mark.api("ListGroups", 4, few=True)
@pytest.mark.parametrize(
    ("states", "listed"), [(["Stable"], False), (["Empty"], True), (["Stable", "Empty"], True)]
)
def test_groups_are_listed_by_state(
    target: Target, group: str, topic: str, version: int, states: list[str], listed: bool
) -> None:
    assert commit(target, group, topic) == errors.NONE
    response = target.ask(ListGroupsRequest(states_filter=states), version)
    assert (group in [row.group_id for row in response.groups]) is listed


@pytest.mark.api("ListGroups", 4, few=True)
def test_states_are_compared_without_case_since_4(
    target: Target, group: str, topic: str, version: int
) -> None:
    assert commit(target, group, topic) == errors.NONE
    response = target.ask(ListGroupsRequest(states_filter=["eMPTY"]), version)
    assert (group in [row.group_id for row in response.groups]) is target.since("4.0")


@pytest.mark.api("ListGroups", 5, few=True)
@pytest.mark.parametrize(
    ("types", "listed"), [(["consumer"], False), (["classic"], True), (["Classic"], True)]
)
def test_groups_are_listed_by_type(
    target: Target, group: str, topic: str, version: int, types: list[str], listed: bool
) -> None:
    assert commit(target, group, topic) == errors.NONE
    response = target.ask(ListGroupsRequest(types_filter=types), version)
    assert (group in [row.group_id for row in response.groups]) is listed


@pytest.mark.spec("B.21")
@pytest.mark.api("DeleteGroups")
def test_an_empty_group_is_deleted_with_its_offsets(
    target: Target, group: str, topic: str, version: int
) -> None:
    assert commit(target, group, topic) == errors.NONE
    [row] = target.ask(DeleteGroupsRequest(groups_names=[group]), version).results
    assert (row.group_id, row.error_code) == (group, errors.NONE)
    assert committed(target, group, topic) == NOTHING
    assert state(target, group) == "Dead"


@pytest.mark.spec("B.21")
@pytest.mark.api("DeleteGroups", few=True)
def test_each_group_is_answered(target: Target, group: str, topic: str, version: int) -> None:
    unknown, empty = target.coordinated(fresh("group")), fresh("group")
    assert commit(target, empty, topic) == errors.NONE
    with Member(target, group) as member:
        member.settle()
        response = target.ask(DeleteGroupsRequest(groups_names=[group, unknown, empty]), version)
        assert {row.group_id: row.error_code for row in response.results} == {
            group: errors.NON_EMPTY_GROUP,
            unknown: errors.GROUP_ID_NOT_FOUND,
            empty: errors.NONE,
        }
        assert member.heartbeat() == errors.NONE


def test_after_deletion_the_group_begins_again(target: Target, group: str) -> None:
    with Member(target, group) as member:
        member.settle()
        member.leave()
        [row] = target.ask(DeleteGroupsRequest(groups_names=[group])).results
        assert row.error_code == errors.NONE
        member.member_id = ""
        assert member.join().generation_id == 1
