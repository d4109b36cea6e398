"""The rule of cooperative plans: what one member has, no other gets before the first has given it up.

A member that loses a partition by a plan still reads it when the other learns the same plan, so both would have it. The
partition must be left out, and be given to the other when the group has joined again. See KIP-429.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kclient.errors import UsageError
from kclient.group.assignors import Assignment, Member
from kclient.types import TopicPartition

EXEMPT: Final = "cooperative-sticky"  # knows by the generations whose claims are out of date


def check_handovers(name: str, plan: Mapping[str, Assignment], members: Sequence[Member]) -> None:
    """Raises UsageError for a plan of the assignor `name` that moves a partition at once."""
    if name == EXEMPT:
        return
    gives_up: dict[TopicPartition, str] = {}
    gets: dict[TopicPartition, str] = {}
    for member in members:
        owned = dict.fromkeys(member.subscription.owned_partitions)
        given = dict.fromkeys(plan[member.member_id].partitions)
        gives_up |= {tp: member.member_id for tp in owned if tp not in given}
        gets |= {tp: member.member_id for tp in given if tp not in owned}
    moved = next((tp for tp in gets if tp in gives_up), None)
    if moved is not None:
        raise UsageError(
            f"The assignor {name!r} gives {moved} to member {gets[moved]} while member {gives_up[moved]} still has it. "
            "In a cooperative group both would read it. Leave out of the plan what goes from one member to another: "
            "the group joins again as soon as it is given up, and owned_partitions lists it no more."
        )
