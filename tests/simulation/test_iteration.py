"""Groups whose members iterate, under the faults of the first seeds: what is read ahead keeps every promise too."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import attrs
import pytest

from kclient.consumer.read_ahead import ReadAhead
from tests.simulation.runner import draw_plan, run_plan

SEEDS = 60
IN_EVERY_RUN = 6
# What they say of a poll that returns all its records is not so of one whose records are asked for one by one: the
# metrics count them all, and those left are taken after the member has heard that it is fenced.
OF_POLLS = ("I-40", "I-09")
# A process that is killed does not close its consumer.
pytestmark = [
    pytest.mark.spread,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture
def taken_ahead(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """For each time that iteration asked for records without a poll: whether it got them."""
    found: list[bool] = []
    hand_out = ReadAhead.hand_out

    def noted(self: ReadAhead, now: float) -> bool:
        found.append(hand_out(self, now))
        return found[-1]

    monkeypatch.setattr(ReadAhead, "hand_out", noted)
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=[] if first <= IN_EVERY_RUN else [pytest.mark.exhaustive])
        for first in range(1, SEEDS, IN_EVERY_RUN)
    ],
)
def test_no_seed_breaks_a_promise_to_members_that_iterate(first: int, taken_ahead: list[bool]) -> None:
    failed = []
    for seed in range(first, first + IN_EVERY_RUN):
        plan = draw_plan(seed)
        scenario = attrs.evolve(plan.scenario, iterates=True, manual=False, max_poll_records=5)
        verdict = run_plan(seed, attrs.evolve(plan, scenario=scenario))
        failed += [f"{seed}: {one}" for one in verdict.violations if one.invariant not in OF_POLLS]
    gc.collect()  # of killed members, while their warnings are ignored
    assert failed == []
    assert sum(taken_ahead) > 100
