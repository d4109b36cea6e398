"""The assignors: how a group's leader shares out partitions. Pure functions of members and topics.

`range`, `roundrobin`, `sticky` and `cooperative-sticky` are built in; any object with the shape of `Assignor` may
stand beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kclient.errors import ConfigError
from kclient.group.assignors.base import (
    COOPERATIVE,
    EAGER,
    Assignment,
    Assignor,
    Member,
    Subscription,
    Topics,
)
from kclient.group.assignors.range import RangeAssignor
from kclient.group.assignors.roundrobin import RoundRobinAssignor
from kclient.group.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
from kclient.group.assignors.validate import make_plan

__all__ = [
    "COOPERATIVE",
    "EAGER",
    "PROTOCOLS",
    "Assignment",
    "Assignor",
    "CooperativeStickyAssignor",
    "Member",
    "RangeAssignor",
    "RoundRobinAssignor",
    "StickyAssignor",
    "Subscription",
    "Topics",
    "common_protocol",
    "make_plan",
    "resolve_assignors",
]

_BUILT_IN: dict[str, type[Assignor]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}

_METHODS: Final = ("subscription_user_data", "assign", "on_assignment")

PROTOCOLS: Final = (EAGER, COOPERATIVE)
"""The ways of rebalancing, oldest first."""


def common_protocol(assignors: Sequence[Assignor]) -> str | None:
    """Return the newest rebalance protocol that all of these support, None if there is none."""
    shared = [
        each for each in PROTOCOLS if all(each in assignor.supported_protocols for assignor in assignors)
    ]
    return shared[-1] if shared else None


def resolve_assignors(strategies: Sequence[Any]) -> tuple[Assignor, ...]:
    """The assignors that `partition_assignment_strategy` names, in its order: names, or objects of one's own.

    Raises ConfigError with every problem in `.problems`.
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
    if not problems and common_protocol(assignors) is None:
        problems.append(f"the assignors {', '.join(names)} have no rebalance protocol in common")
    if problems:
        known = ", ".join(_BUILT_IN)
        raise ConfigError(
            f"partition_assignment_strategy cannot be used: {'; '.join(problems)}. "
            f"Give a list of names ({known}) or of objects with the shape of kclient.group.assignors.Assignor.",
            problems=tuple(f"partition_assignment_strategy: {problem}" for problem in problems),
        )
    return tuple(assignors)


def _problem(assignor: object) -> str | None:
    """Return why this object cannot be an assignor, None if it can."""
    if isinstance(assignor, str):
        return f"no assignor is called {assignor!r}"
    if isinstance(assignor, type):
        return f"{assignor.__name__} is a class; give an object of it, {assignor.__name__}()"
    if not isinstance(assignor, Assignor):
        return f"{assignor!r} lacks one of name, supported_protocols, {', '.join(_METHODS)}"
    name = getattr(assignor, "name", None)  # a class that inherits need not have said one
    if not isinstance(name, str) or not name:
        return f"{assignor!r} has the name {name!r}, which must be text"
    if uncallable := [each for each in _METHODS if not callable(getattr(assignor, each))]:
        return f"{', '.join(uncallable)} of the assignor {assignor.name!r} cannot be called"
    declared = assignor.supported_protocols
    if not _are_protocols(declared):
        return (
            f"the assignor {assignor.name!r} declares supported_protocols {declared!r}, "
            f"which must be a list of {' and '.join(map(repr, PROTOCOLS))}"
        )
    return None


def _are_protocols(declared: object) -> bool:
    return (
        isinstance(declared, list | tuple) and bool(declared) and all(each in PROTOCOLS for each in declared)
    )
