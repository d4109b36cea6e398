"""Plans of short absences, far apart: what a group must get over without a rebalance (I-17, I-31)."""

from __future__ import annotations

from random import Random
from typing import Final

from tests.simulation.faults.kinds import KINDS
from tests.simulation.plan import Fault
from tests.simulation.scenario import Scenario

SHARE: Final = 0.25  # of the scenarios that suit
SETTLED_SECONDS: Final = 25.0  # the group has come to rest by then
CUTS: Final = ("close_idle", "finish_midway", "reset", "reset_midway")
RESTARTS: Final = ("kill_broker", "shut_down_broker")


def is_gentle(scenario: Scenario) -> bool:
    """Whether this scenario is one. Asks no generator that anything else is drawn from."""
    suits = not scenario.fidgety and scenario.process_seconds < 0.1
    return suits and Random(str(scenario)).random() < SHARE


def draw_gently(rng: Random, scenario: Scenario) -> tuple[Fault, ...]:
    """As many as fit, each over long before a session is, and the next one a session later."""
    session = scenario.session_timeout_ms / 1000
    names = (*CUTS, "kill_member") if scenario.static else (*CUTS, *RESTARTS)
    drawn, start = [], SETTLED_SECONDS + rng.uniform(0.0, 10.0)
    while start < scenario.chaos_seconds * 0.9:
        kind = KINDS[rng.choice(names)]
        seconds, amount = rng.uniform(0.05, session / 6), kind.draw_amount(rng, scenario)
        amount = min(amount, 100.0)
        drawn.append(Fault(kind.name, kind.draw_target(rng, scenario), start, seconds, amount))
        start += session + rng.uniform(1.0, 15.0)
    return tuple(drawn)
