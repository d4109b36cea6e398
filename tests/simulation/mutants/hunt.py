"""Look for a seed that notices a planted bug."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Final

import attrs

from kclient.simulation.stuck import first_line
from tests.simulation.mutants import MUTANTS, planted
from tests.simulation.mutants.table import Look, Symptoms
from tests.simulation.runner import run_seed

SEEDS: Final = 200


@attrs.frozen
class Caught:
    """The seed that noticed, after so many seeds, and what it said. Nothing noticed: `seed` is None."""

    mutant: str
    seed: int | None
    tried: int
    invariants: tuple[str, ...] = ()
    text: str = ""

    def __str__(self) -> str:
        if self.seed is None:
            return f"{self.mutant} was NOT noticed by {self.tried} seeds: {MUTANTS[self.mutant].what}"
        by = ", ".join(self.invariants)
        return f"{self.mutant} noticed by {by} with seed {self.seed} (try {self.tried}): {self.text}"


def hunt(name: str, seeds: int = SEEDS) -> Caught:
    """Try the seed that noticed last time, then others.

    What another invariant says, a crash for one, may be the patch's own fault. A seed that fails without the bug proves
    nothing.
    """
    bug = MUTANTS[name]
    tries = itertools.chain([bug.seed], (seed for seed in range(1, seeds) if seed != bug.seed))
    for tried, seed in enumerate(tries, 1):
        with planted(name):
            found = [symptom for symptom in _symptoms(seed, bug.look) if symptom[0] in bug.invariants]
        if found and not _symptoms(seed, bug.look):
            return Caught(name, seed, tried, tuple(sorted({one for one, _ in found})), found[0][1][:160])
    return Caught(name, None, seeds)


def _symptoms(seed: int, look: Look | None) -> Symptoms:
    """What is wrong with a seed. A run that cannot go on, or crashes, is noticed too."""
    try:
        return (look or _as_every_seed)(seed)
    except Exception as exc:  # noqa: BLE001 – whatever it is
        return [("I-38", first_line(exc))]


def _as_every_seed(seed: int) -> Symptoms:
    return [(violation.invariant, str(violation)) for violation in run_seed(seed).violations]


def hunt_all(names: Iterable[str], jobs: int) -> Iterator[Caught]:
    """All of them, on several processes, as they are caught."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(hunt, name) for name in names]):
            yield future.result()
