"""The wall clock never matters: with every application's clock an hour wrong the same happens. I-18.

But for `auto_offset_reset=by_duration`, which asks for a time of the wall clock: these seeds have other policies.
"""

from __future__ import annotations

import gc
import warnings

import pytest

from kclient.simulation.world import World
from tests.simulation.runner import draw_plan, run_plan
from tests.simulation.watch import Handed, Invariant

pytestmark = pytest.mark.spread
Delivery = tuple[float, str, str, int]


def deliveries(seed: int, skew: float) -> tuple[str, list[Delivery]]:
    """What was handed to whom and when, and the digest of everything that happened."""
    seen: list[Delivery] = []

    class Recorder(Invariant):
        """Breaks nothing."""

        id = "I-18"

        def delivered(self, handed: Handed) -> None:
            record = handed.record
            seen.append((self.stage.now, str(handed.member), str(handed.tp), record.offset))

    def set_clocks(world: World) -> None:
        for number in range(8):
            world.clock(f"member-{number + 1}").skew = skew

    plan = draw_plan(seed)
    # That one sets clocks right again.
    kept = tuple(fault for fault in plan.faults if fault.kind != "skew_clock")
    verdict = run_plan(seed, type(plan)(plan.scenario, kept), more=(Recorder,), prepare=set_clocks)
    del Recorder  # it keeps the members, of which those that were killed have not closed their consumers
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    return verdict.digest, seen


@pytest.mark.spec("D-74")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", [1, 4, pytest.param(7, marks=pytest.mark.exhaustive), 10])
def test_an_hour_more_or_less_changes_nothing(seed: int) -> None:
    assert not draw_plan(seed).scenario.reset.startswith("by_duration")
    right = deliveries(seed, 0.0)
    assert right[1]
    assert deliveries(seed, 3_600.0) == right
    assert deliveries(seed, -3_600.0) == right
