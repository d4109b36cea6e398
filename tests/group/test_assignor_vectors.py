"""range and roundrobin give every member what Java's assignors give it, whatever the order of the members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kclient.group.assignors import Assignor, Member, RangeAssignor, RoundRobinAssignor, Subscription, Topics
from kclient.types import TopicPartition
from tests.group.vectors import vectors

ASSIGNORS: dict[str, type[Assignor]] = {"range": RangeAssignor, "roundrobin": RoundRobinAssignor}
CASES = [case for case in vectors("assignors") if case["assignor"] in ASSIGNORS]


def members_of(case: dict[str, Any]) -> list[Member]:
    return [
        Member(
            entry["member_id"],
            Subscription(
                topics=tuple(entry["topics"]),
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


def test_there_are_cases_of_both_and_none_is_a_flaw_of_java() -> None:
    assert sum(case["assignor"] == "range" for case in CASES) == 102
    assert sum(case["assignor"] == "roundrobin" for case in CASES) == 65
    assert not any(case.get("java_flaws") for case in CASES)


@pytest.mark.spec("B.16.1", "B.16.2", "D-73", "D-14")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['assignor']}-{case['case']}")
def test_every_member_gets_what_java_gives_it(case: dict[str, Any]) -> None:
    members = members_of(case)
    assert run(case, members) == case["assignment"]


@pytest.mark.spec("B.16.1", "B.16.2")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['assignor']}-{case['case']}")
def test_the_order_of_the_members_makes_no_difference(case: dict[str, Any]) -> None:
    assert case["any_member_order"]
    members = members_of(case)
    for order in (members[::-1], members[1:] + members[:1]):
        assert run(case, order) == case["assignment"]
