"""Rare and legal things happen where a seed says so, the same ones each time, and never outside of simulation."""

from __future__ import annotations

from random import Random

import pytest

from kclient.runtime import Runtime
from tests.simulation.plan import Plan
from tests.simulation.probes import WatchedRuntime
from tests.simulation.runner import draw_plan, run_plan
from tests.simulation.scenario import Scenario

POINTS = {
    "a response to Fetch is lost, and the session with it",
    "others run while records are decoded",
    "poll looks again for no reason",
}


def test_nothing_rare_happens_to_users() -> None:
    assert not any(Runtime().buggify(point) for point in POINTS for _ in range(100))
    assert not any(WatchedRuntime(dice=Random(1)).buggify(point) for point in POINTS)


def test_some_seeds_let_rare_things_happen() -> None:
    odds = {draw_plan(seed).scenario.odds for seed in range(1, 100)}
    assert {0.0, 0.1} <= odds


@pytest.mark.timeout(120)
def test_a_group_reads_on_where_every_point_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    met: set[str] = set()
    plain = WatchedRuntime.buggify

    def buggify(self: WatchedRuntime, what: str) -> bool:
        happens = plain(self, what)
        met.update([what] if happens else [])
        return happens

    monkeypatch.setattr(WatchedRuntime, "buggify", buggify)
    verdict = run_plan(1, Plan(Scenario(odds=0.3, members=2)))
    assert verdict.passed, verdict.violations
    assert met == POINTS
