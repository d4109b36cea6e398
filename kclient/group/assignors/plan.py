"""Whether what an assignor gives back can be given to a group.

An assignor of a user's own may err, and a group that went by its plan would read partitions twice or not at all; so
the leader refuses the plan, and says which part of it is wrong.

A topic that the member does not want, or nobody wants, is allowed: the member, who may know it by a pattern, decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kclient.errors import UsageError
from kclient.group.assignors.base import Assignment, Member, Topics
from kclient.types import TopicPartition


def checked_plan(name: str, plan: Any, topics: Topics, members: Sequence[Member]) -> dict[str, Assignment]:
    """The plan of the assignor `name`, an empty assignment for members that it leaves out.

    Raises UsageError for what is no mapping of member ids to Assignment, names members or partitions that do not
    exist, or gives a partition twice.
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
    """Raises ValueError with the first mistake."""
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
            raise ValueError(f"it gives {member_id} {each!r}, which is no TopicPartition")
        if each.topic in topics and each.partition >= len(topics[each.topic]):
            raise ValueError(
                f"it gives {member_id} {each}, and {each.topic} has {len(topics[each.topic])} partitions"
            )
        yield each


def _is_number(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**31
