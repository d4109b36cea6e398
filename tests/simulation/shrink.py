"""From a plan that breaks a promise to the fewest faults that still break it.

Faults are dropped in ever smaller groups, then each of those that stay is made shorter. A smaller plan counts if it
breaks the same promise under the same seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from tests.simulation.plan import Fault, Plan

RUNS: Final = 200

Breaks = Callable[[Plan], bool]


@attrs.define
class Shrunk:
    """What is left of the plan, and how many runs it took."""

    plan: Plan
    runs: int = 0


def shrink(plan: Plan, breaks: Breaks, limit: int = RUNS) -> Shrunk:
    """The smallest plan found within `limit` runs. `breaks` runs a plan."""
    found = Shrunk(plan)
    _drop_groups(found, breaks, limit)
    _shorten(found, breaks, limit)
    return found


def _try(found: Shrunk, plan: Plan, breaks: Breaks, limit: int) -> bool:
    if found.runs >= limit:
        return False
    found.runs += 1
    if not breaks(plan):
        return False
    found.plan = plan
    return True


def _drop_groups(found: Shrunk, breaks: Breaks, limit: int) -> None:
    size = max(1, len(found.plan.faults) // 2)
    while size:
        at = 0
        while at < len(found.plan.faults):
            faults = found.plan.faults
            fewer = attrs.evolve(found.plan, faults=faults[:at] + faults[at + size :])
            if not _try(found, fewer, breaks, limit):
                at += size
        size = size // 2 if size > 1 else 0


def _shorten(found: Shrunk, breaks: Breaks, limit: int) -> None:
    for at in range(len(found.plan.faults)):
        for part in (0.1, 0.5):
            faults = list(found.plan.faults)
            faults[at] = Fault(*faults[at][:3], round(faults[at].seconds * part, 3), faults[at].amount)
            if _try(found, attrs.evolve(found.plan, faults=tuple(faults)), breaks, limit):
                break
