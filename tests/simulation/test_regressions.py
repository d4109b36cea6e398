"""Plans that once broke a promise: each names what it found, and passes since that is mended."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.simulation.plan import Plan
from tests.simulation.runner import run_plan

PLANS: Final = Path(__file__).parent / "regressions"
FOUND: Final = {
    "bootstrap_servers_kept": (
        (1, 2, 3),
        "I-34: bootstrap servers that were ready second kept their connections until the brokers were connected.",
    ),
    "commits_overtake_after_an_outage": (
        (1, 2, 3),
        "I-08: asynchronous commits that waited for the coordinator went out in any order when it was back.",
    ),
    "commits_overtake_on_a_full_connection": (
        (1, 2, 3),
        "I-08: asynchronous commits that waited for room on their connection went out in any order.",
    ),
    "old_coordinators_kept": (
        (1, 2, 3),
        "I-34: the connection to a coordinator was kept when another broker had become the coordinator.",
    ),
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", sorted(path.stem for path in PLANS.glob("*.json")))
def test_what_was_mended_stays_so(name: str) -> None:
    seeds, what = FOUND[name]
    plan = Plan.load(PLANS / f"{name}.json")
    for seed in seeds:
        verdict = run_plan(seed, plan)
        assert verdict.passed, f"{what} Seed {seed}: {'; '.join(map(str, verdict.violations[:3]))}"
