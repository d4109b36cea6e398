"""Whole groups under faults: the same seed, the same run.

`make test` runs seeds 1 to 20, `make verify` 1 to 300: the same in every run, so that a failure is the change's.
`make sim` draws fresh ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.faults import KINDS
from tests.simulation.runner import draw_plan
from tests.simulation.sweep import Totals, sweep

ROOT = Path(__file__).parents[2]
BLOCK = 20
IN_EVERY_RUN, ALL = 20, 300
BLOCKS = [
    pytest.param(first, marks=[] if first <= IN_EVERY_RUN else [pytest.mark.exhaustive])
    for first in range(1, ALL, BLOCK)
]
pytestmark = pytest.mark.spread


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", BLOCKS)
def test_no_seed_breaks_a_promise(first: int, capsys: pytest.CaptureFixture[str]) -> None:
    totals = Totals()
    for result in sweep(range(first, first + BLOCK), jobs=1):
        totals.add(result)
    with capsys.disabled():
        print(f"\nsimulation: {totals}")
    failures = [f"make sim SEED={one.seed}: {one.problem or one.violations[0]}" for one in totals.failed]
    assert not failures, "\n".join(failures)
    assert totals.seeds == BLOCK
    assert sorted(totals.virtual_seconds)[totals.seeds // 2] >= 120


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_same_seed_gives_the_same_digest_in_every_process() -> None:
    program = "from tests.simulation.runner import run_seed; print([run_seed(n).digest for n in (1, 3, 4)])"
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=250,
        ).stdout
        for hash_seed in ("0", "1")
    }
    assert len(digests) == 1


def test_seeds_draw_every_kind_of_fault() -> None:
    drawn = {fault.kind for seed in range(1, 400) for fault in draw_plan(seed).faults}
    assert drawn == set(KINDS)
    assert len({number for kind in KINDS.values() for number in kind.ids}) >= 30


def test_chaos_lasts_a_minute_at_least() -> None:
    assert all(draw_plan(seed).scenario.chaos_seconds >= 60 for seed in range(1, 400))
