"""Groups whose members run handlers, under the faults of the first seeds: at least once, in order, bounded."""

from __future__ import annotations

import gc

import pytest

from tests.simulation.handling_plans import run_handled

SEEDS = 60
IN_EVERY_RUN = 5
# A process that is killed does not close its consumer.
pytestmark = [
    pytest.mark.spread,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.spec("I-41", "I-42", "I-43")
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=[] if first <= IN_EVERY_RUN else [pytest.mark.exhaustive])
        for first in range(1, SEEDS, IN_EVERY_RUN)
    ],
)
def test_no_seed_breaks_a_promise_of_handlers(first: int) -> None:
    failed: list[str] = []
    for seed in range(first, first + IN_EVERY_RUN):
        failed += [f"{seed}: {one}" for one in run_handled(seed).violations]
    gc.collect()  # of killed members, while their warnings are ignored
    assert failed == []
