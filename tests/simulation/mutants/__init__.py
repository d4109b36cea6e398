"""Planted bugs: each a small patch of the client under a name of reliability.md section 4, to see that it is noticed.

    with planted("M-01"):
        verdict = run_seed(7)

They prove that the promises are alive. `make mutants` looks for a seed that catches each of them; a seed counts only if
it passes without the bug.
"""

from __future__ import annotations

from tests.simulation.mutants import (
    classic,
    commits,
    connections,
    facade,
    fetching,
    positions,
    records,
    surroundings,
    truncation,
)
from tests.simulation.mutants.table import MUTANTS, Mutant, planted

__all__ = [
    "MUTANTS",
    "Mutant",
    "classic",
    "commits",
    "connections",
    "facade",
    "fetching",
    "planted",
    "positions",
    "records",
    "surroundings",
    "truncation",
]
