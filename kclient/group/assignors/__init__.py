"""The assignors: how a group's leader shares out partitions. Pure functions of members and topics.

`range` and `roundrobin` are built in; any object with the shape of `Assignor` may stand beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kclient.errors import ConfigError
from kclient.group.assignors.base import EAGER, Assignment, Assignor, Member, Subscription, Topics
from kclient.group.assignors.range import RangeAssignor
from kclient.group.assignors.roundrobin import RoundRobinAssignor

__all__ = [
    "Assignment",
    "Assignor",
    "Member",
    "RangeAssignor",
    "RoundRobinAssignor",
    "Subscription",
    "Topics",
    "resolve_assignors",
]

_BUILT_IN: dict[str, type[Assignor]] = {"range": RangeAssignor, "roundrobin": RoundRobinAssignor}


def resolve_assignors(strategies: Sequence[Any]) -> tuple[Assignor, ...]:
    """The assignors that `partition_assignment_strategy` names, in its order: names, or objects of one's own.

    Raises ConfigError with every problem in `.problems`.

    Spec: B.16.8.
    """
    problems: list[str] = []
    assignors: list[Assignor] = []
    for strategy in strategies:
        assignor = _BUILT_IN[strategy]() if isinstance(strategy, str) and strategy in _BUILT_IN else strategy
        if problem := _problem(assignor):
            problems.append(problem)
        else:
            assignors.append(assignor)
    names = [assignor.name for assignor in assignors]
    problems += [
        f"the assignor {name!r} is named twice" for name in dict.fromkeys(names) if names.count(name) > 1
    ]
    if not strategies:
        problems.append("it is empty, but a group needs at least one assignor")
    if problems:
        known = ", ".join(_BUILT_IN)
        raise ConfigError(
            f"partition_assignment_strategy cannot be used: {'; '.join(problems)}. "
            f"Give a list of names ({known}) or of objects with the shape of kclient.group.assignors.Assignor.",
            problems=tuple(f"partition_assignment_strategy: {problem}" for problem in problems),
        )
    return tuple(assignors)


def _problem(assignor: object) -> str | None:
    """Why this cannot be an assignor, None if it can."""
    if isinstance(assignor, str):
        return f"no assignor is called {assignor!r}"
    if not isinstance(assignor, Assignor):
        return f"{assignor!r} lacks one of name, rebalance_protocol, subscription_user_data, assign, on_assignment"
    if assignor.rebalance_protocol != EAGER:
        return (
            f"the assignor {assignor.name!r} declares the rebalance protocol {assignor.rebalance_protocol!r}, "
            f"and only {EAGER!r} is honoured so far"
        )
    return None
