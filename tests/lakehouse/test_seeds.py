"""Jobs that land in a table under the faults of the first seeds: each record once, and all of them in the end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lakehouse.connect_bugs import PLANS
from tests.lakehouse.plan import KINDS, draw
from tests.lakehouse.world import run_seed

SEEDS = 600
IN_EVERY_RUN = 40
TOGETHER = 10
pytestmark = pytest.mark.spread


@pytest.mark.timeout(600)
@pytest.mark.spec("I-46", "I-47", "I-48", "I-49", "I-51", "I-52")
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=[] if first <= IN_EVERY_RUN else [pytest.mark.exhaustive])
        for first in range(1, SEEDS, TOGETHER)
    ],
)
def test_no_seed_breaks_a_promise(first: int) -> None:
    failed: list[str] = []
    for seed in range(first, first + TOGETHER):
        failed += [f"{seed}: {one}" for one in run_seed(seed).violations]
    assert failed == []


def test_every_kind_of_fault_is_drawn() -> None:
    every_run = {fault.kind for seed in range(1, IN_EVERY_RUN + 1) for fault in draw(seed).faults}
    rare = {"recreate", "sleep"}  # which have plans of their own
    assert every_run >= KINDS.keys() - rare
    assert rare <= {fault.kind for plan in PLANS.values() for fault in plan.faults}


def test_a_seed_gives_the_same_run_in_every_process() -> None:
    program = "from tests.lakehouse.world import run_seed; print(run_seed(8).digest)"
    digests = [
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    ]
    assert digests == [run_seed(8).digest] * 2
