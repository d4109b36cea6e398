"""Planted bugs: each a small patch of the client with a name (M-01, …), to see that an invariant notices it.

    with planted("M-01"):
        verdict = run_seed(7)

They prove that the promises are alive. `make mutants` looks for a seed that catches each of them; a seed counts only if
it passes without the bug.
"""

from __future__ import annotations

from typing import Final

from tests.simulation.mutants import (
    classic,
    closing,
    commits,
    connections,
    consumer_protocol,
    facade,
    fetching,
    gradual,
    handlers,
    lakehouse,
    polling,
    positions,
    records,
    sessions,
    sockets,
    spark,
    surroundings,
    tokens,
    truncation,
)
from tests.simulation.mutants.table import MUTANTS, Mutant, planted

NOT_APPLICABLE: Final[dict[str, str]] = {}
"""Bugs of the page that cannot be planted here, each with its reason."""

__all__ = [
    "MUTANTS",
    "NOT_APPLICABLE",
    "Mutant",
    "classic",
    "closing",
    "commits",
    "connections",
    "consumer_protocol",
    "facade",
    "fetching",
    "gradual",
    "handlers",
    "lakehouse",
    "planted",
    "polling",
    "positions",
    "records",
    "sessions",
    "sockets",
    "spark",
    "surroundings",
    "tokens",
    "truncation",
]
