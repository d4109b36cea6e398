"""Plans for members that run handlers."""

from __future__ import annotations

from typing import Final

import attrs

from tests.simulation.faults import OF_LOGS
from tests.simulation.plan import Plan
from tests.simulation.runner import Verdict, draw_plan, run_plan

NOT_FOR_HANDLERS: Final = (*OF_LOGS, "delete_topic")
# Metrics count records when a poll returns them, the ledger when a handler is called.
OF_POLLS: Final = ("I-40",)


def draw_handled(seed: int) -> Plan:
    """The plan of a seed for members that run handlers. Logs lose nothing: every record has its place in an order."""
    plan = draw_plan(seed)
    scenario = attrs.evolve(
        plan.scenario,
        handles=True,
        manual=False,
        fidgety=False,
        endings=False,
        commits_first=False,
        commit="sync",
        reset="earliest",
    )
    faults = tuple(one for one in plan.faults if one.kind not in NOT_FOR_HANDLERS)
    return attrs.evolve(plan, scenario=scenario, faults=faults)


def run_handled(seed: int) -> Verdict:
    """Run it. Of what was violated, that which is not for handlers is left out."""
    verdict = run_plan(seed, draw_handled(seed))
    violations = tuple(one for one in verdict.violations if one.invariant not in OF_POLLS)
    return attrs.evolve(verdict, violations=violations)
