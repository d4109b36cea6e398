"""What sharing out costs grows with the partitions, not with partitions times members; and nothing random decides.

Costs are counted in calls of Python functions, which are the same on every machine. `make bench` has the seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import attrs
import pytest

from kclient.group.assignors import Member, Subscription, Topics, resolve_assignors
from kclient.group.assignors.sticky import StickyUserData, encode_sticky

ROOT = Path(__file__).parents[2]
MOST_CALLS_PER_PARTITION = 45


def group(members: int, topics: int, wanted: int) -> tuple[Topics, list[Member]]:
    """Ten partitions of each topic for a member, three racks, members that want some of the topics."""
    random = Random(members)
    names = [f"topic-{number}" for number in range(topics)]
    racks = ("a", "b", "c", "d")
    return (
        {name: [frozenset(random.sample(racks, 2)) for _ in range(10 * members // topics)] for name in names},
        [
            Member(
                f"m-{number}",
                Subscription(tuple(random.sample(names, wanted)), rack_id=random.choice(racks[:3])),
            )
            for number in range(members)
        ],
    )


def calls(name: str, topics: Topics, members: list[Member]) -> tuple[int, list[Member]]:
    """How many Python functions are called, and the members at the next rebalance."""
    (assignor,) = resolve_assignors([name])
    count = 0

    def on_call(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(on_call)
    try:
        plan = assignor.assign(topics, members)
    finally:
        sys.setprofile(None)
    return count, [
        attrs.evolve(
            member,
            subscription=attrs.evolve(
                member.subscription,
                owned_partitions=plan[member.member_id].partitions,
                generation_id=1,
                user_data=encode_sticky(StickyUserData(plan[member.member_id].partitions, 1)),
            ),
        )
        for member in members
    ]


@pytest.mark.spec("B.16.4", "B.16.5")
@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@pytest.mark.parametrize("wanted", [20, 10], ids=["alike", "halves"])
@pytest.mark.parametrize("members", [40, 400])
def test_a_partition_costs_the_same_in_groups_of_all_sizes(name: str, wanted: int, members: int) -> None:
    topics, group_members = group(members, 20, wanted)
    fresh, later = calls(name, topics, group_members)
    one_left, _ = calls(name, topics, later[1:])
    assert max(fresh, one_left) <= MOST_CALLS_PER_PARTITION * 10 * members


SHARE_OUT = """
from kclient.group.assignors import resolve_assignors
from tests.group.test_assignor_cost import calls, group
for name in ("range", "roundrobin", "sticky", "cooperative-sticky"):
    topics, members = group(30, 6, 3)
    for member in calls(name, topics, calls(name, topics, members)[1][2:])[1]:
        print(name, member.member_id, *member.subscription.owned_partitions)
"""


@pytest.mark.spec("B.16")
def test_processes_with_other_hashes_of_text_share_out_alike() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SHARE_OUT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0].count(b"\n") == 4 * 28
    assert outputs[0] == outputs[1]
