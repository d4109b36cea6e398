"""Checks of plans and assignments. Each error names the first mistake.

    make_plan, validate_plan            the leader refuses an invalid plan of a custom assignor: with it the group would
                                        read partitions twice or not at all. A topic to which no member is subscribed is
                                        allowed: a pattern may match it
    validate_cooperative_assignment     a partition that moves is left out until its owner has revoked it, and assigned
                                        when the group has joined again (KIP-429). Otherwise both members would read it
                                        until the owner has learnt the plan
    assignment_problem                  a member refuses an assignment with impossible topics or partitions. Partitions
                                        that metadata does not have yet are accepted, since topics may have grown: as
                                        many as are known, and MOST_NEW more

A partition takes memory and time, and one message can name millions of them.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kclient.errors import ProtocolDecodeError, UsageError
from kclient.group.assignors.base import Assignment, Assignor, Member, Topics, assignor_failed
from kclient.network.metadata import MetadataCache, is_legal_topic
from kclient.types import TopicPartition


def make_plan(assignor: Assignor, topics: Topics, members: Sequence[Member]) -> dict[str, Assignment]:
    """Run the assignor as the group leader does; the plan has every member.

    Raises UsageError if the assignor fails or its plan is invalid.
    """
    try:
        plan = assignor.assign(topics, members)
    except (Exception, asyncio.CancelledError, SystemExit) as exc:  # user code must not end our task
        doing = f"while assigning {len(topics)} topics to {len(members)} members"
        lost = "The group cannot go on without a plan."
        raise assignor_failed(assignor.name, exc, doing, lost) from exc
    return validate_plan(assignor.name, plan, topics, members)


def validate_plan(name: str, plan: Any, topics: Topics, members: Sequence[Member]) -> dict[str, Assignment]:
    """Return the plan of the assignor `name`, with an empty assignment for members that it leaves out.

    Raises UsageError for a plan that is not a mapping of member ids to Assignment, that names members or partitions
    that do not exist, or that assigns a partition twice.
    """
    try:
        _check(plan, topics, members)
    except ValueError as exc:
        raise UsageError(
            f"The assignor {name!r} made a plan that cannot be: {exc}. "
            f"The group cannot go on without a plan. Correct its assign()."
        ) from None
    return {member.member_id: plan.get(member.member_id, Assignment()) for member in members}


def _check(plan: Any, topics: Topics, members: Sequence[Member]) -> None:
    """Raise ValueError with the first mistake."""
    if not isinstance(plan, Mapping):
        raise ValueError(f"it is {type(plan).__name__}, not a mapping from member ids to Assignment")
    known = {member.member_id for member in members}
    given_to: dict[TopicPartition, str] = {}
    for member_id, part in plan.items():
        if member_id not in known:
            raise ValueError(f"it names {member_id!r}, and no member of the group has this id")
        if not isinstance(part, Assignment):
            raise ValueError(f"it gives {member_id} {type(part).__name__}, not Assignment")
        if not isinstance(part.user_data, bytes | None):
            raise ValueError(f"the user_data for {member_id} is {type(part.user_data).__name__}, not bytes")
        for partition in _partitions(part.partitions, member_id, topics):
            if partition in given_to:
                twice = "twice" if given_to[partition] == member_id else f"and {given_to[partition]}"
                raise ValueError(f"it gives {partition} to {member_id} {twice}")
            given_to[partition] = member_id


def _partitions(partitions: Any, member_id: str, topics: Topics) -> Iterable[TopicPartition]:
    if not isinstance(partitions, tuple | list):
        raise ValueError(f"it gives {member_id} {type(partitions).__name__}, not a tuple of partitions")
    for each in partitions:
        if not (
            isinstance(each, TopicPartition) and isinstance(each.topic, str) and _is_number(each.partition)
        ):
            raise ValueError(f"it gives {member_id} {each!r}, which is not a TopicPartition")
        if each.topic in topics and each.partition >= len(topics[each.topic]):
            raise ValueError(
                f"it gives {member_id} {each}, and {each.topic} has {len(topics[each.topic])} partitions"
            )
        yield each


def _is_number(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**31


EXEMPT: Final = "cooperative-sticky"  # knows by the generations whose claims are out of date


def validate_cooperative_assignment(
    name: str, plan: Mapping[str, Assignment], members: Sequence[Member]
) -> None:
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


MAX_UNKNOWN_PARTITIONS: Final = 1_000


def partitions_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the partition numbers of each topic, in ascending order, each once."""
    topics: dict[str, set[int]] = {}
    for tp in partitions:
        topics.setdefault(tp.topic, set()).add(tp.partition)
    return {topic: sorted(numbers) for topic, numbers in topics.items()}


def assignment_problem(assigned: Mapping[str, Sequence[int]], metadata: MetadataCache) -> str | None:
    """Return what is impossible about these topics and ascending numbers, None if nothing is."""
    known = new = 0
    for topic, numbers in assigned.items():
        if not is_legal_topic(topic) or (numbers and numbers[0] < 0):
            return "it names a topic or a partition that cannot be"
        count = bisect_left(numbers, metadata.partition_count(topic) or 0)
        known += count
        new += len(numbers) - count
    if new > known + MAX_UNKNOWN_PARTITIONS:
        return f"{new:,} of its {known + new:,} partitions do not exist"
    return None


def invalid_assignment(group_id: str, why: str) -> ProtocolDecodeError:
    """Return the error for an assignment that is refused."""
    return ProtocolDecodeError(
        f"The assignment of group {group_id} is refused: {why}. The member that leads the group, or its coordinator, "
        "is damaged or hostile. Look at the group's members with: kclient lag GROUP",
        field="assigned_partitions",
    )
