"""The assignors give every member what Java's assignors give it, whatever the order of the members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from kclient.group.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    Member,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    Subscription,
    Topics,
)
from kclient.types import TopicPartition
from tests.group.vectors import vectors

ASSIGNORS: dict[str, type[Assignor]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
CASES = vectors("assignors")
RANDOM = vectors("assignors_random")  # by tools/compare_assignors.py: larger groups, ids that are not ASCII
SOUND = [case for case in CASES if not case.get("java_flaws")]
FLAWED = [case for case in CASES if case.get("java_flaws")]


def name_of(case: dict[str, Any]) -> str:
    return str(case["case"])


def members_of(case: dict[str, Any]) -> list[Member]:
    return [
        Member(
            entry["member_id"],
            Subscription(
                topics=tuple(entry["topics"]),
                user_data=None if entry["user_data"] is None else bytes.fromhex(entry["user_data"]),
                owned_partitions=tuple(TopicPartition(*owned) for owned in entry["owned_partitions"]),
                generation_id=entry["generation"] if entry["generation"] >= 0 else None,
                rack_id=entry["rack"],
            ),
            entry["group_instance_id"],
        )
        for entry in case["members"]
    ]


def topics_of(case: dict[str, Any]) -> Topics:
    racks = {int(node): rack for node, rack in case["nodes"].items()}
    return {
        topic: [frozenset(racks[node] for node in replicas if racks[node]) for replicas in partitions]
        for topic, partitions in case["topics"].items()
    }


def run(case: dict[str, Any], members: Sequence[Member]) -> dict[str, list[list[str | int]]]:
    given = ASSIGNORS[case["assignor"]]().assign(topics_of(case), members)
    return {
        member_id: [list(partition) for partition in part.partitions] for member_id, part in given.items()
    }


def test_no_case_is_left_out() -> None:
    count = Counter(case["assignor"] for case in CASES)
    assert count == {"range": 102, "roundrobin": 65, "sticky": 220, "cooperative-sticky": 219}
    assert len(FLAWED) == 8


@pytest.mark.spec("B.16.1", "B.16.2", "B.16.3", "B.16.4", "B.16.5", "B.16.6", "D-73", "D-14")
@pytest.mark.parametrize("case", SOUND, ids=name_of)
def test_every_member_gets_what_java_gives_it(case: dict[str, Any]) -> None:
    assert run(case, members_of(case)) == case["assignment"]


@pytest.mark.spec("B.16.3", "B.16.4", "B.16.5", "B.16.6", "D-73")
@pytest.mark.parametrize("case", RANDOM, ids=name_of)
def test_larger_groups_get_what_java_gives_them_over_several_rebalances(case: dict[str, Any]) -> None:
    assert run(case, members_of(case)) == case["assignment"]


@pytest.mark.spec("B.16.1", "B.16.2", "B.16.4", "B.16.5")
@pytest.mark.parametrize("case", [case for case in SOUND if case["any_member_order"]], ids=name_of)
def test_the_order_of_the_members_makes_no_difference(case: dict[str, Any]) -> None:
    members = members_of(case)
    for order in (members[::-1], members[1:] + members[:1]):
        assert run(case, order) == case["assignment"]


@pytest.mark.spec("B.16.3", "B.16.5")
@pytest.mark.parametrize("case", FLAWED, ids=name_of)
def test_where_java_gives_what_cannot_be_given_every_partition_goes_once_to_a_subscriber(
    case: dict[str, Any],
) -> None:
    members = members_of(case)
    given = run(case, members)
    pairs = [tuple(partition) for partitions in given.values() for partition in partitions]
    wanted = {topic for member in members for topic in member.subscription.topics}
    exist = {
        (topic, number)
        for topic in wanted & case["topics"].keys()
        for number in range(len(case["topics"][topic]))
    }
    assert len(pairs) == len(set(pairs))
    assert set(pairs) <= exist if case["assignor"] == "cooperative-sticky" else set(pairs) == exist
    for member in members:
        assert {topic for topic, _ in given[member.member_id]} <= set(member.subscription.topics)
