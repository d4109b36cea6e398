"""Planted bugs: each a small patch of the client under a name of reliability.md section 4, to see that it is noticed.

    with planted("M-01"):
        verdict = run_seed(7)

They prove that the promises are alive. `make mutants` looks for a seed that catches each of them; a seed counts only if
it passes without the bug.
"""

from __future__ import annotations

from typing import Final

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

_SESSIONS: Final = "fetches use no sessions yet"
_COOPERATIVE: Final = "members are eager yet"
_KIP_848: Final = "the client does not speak KIP-848 yet"
_SPARK: Final = "of the reader for Spark, which no simulation runs; tests/spark has tests of its own"
NOT_APPLICABLE: Final = {
    "M-28": _SESSIONS,
    "M-29": _SESSIONS,
    "M-30": _SESSIONS,
    "M-63": _COOPERATIVE,
    "M-64": _COOPERATIVE,
    "M-65": _COOPERATIVE,
    "M-68": "there is no sticky assignor yet",
    "M-111": "a simulated leader knows the epoch of every position that lies in its log",
    "M-113": "brokers forget commits with their topic, and the client keeps none beside theirs",
    **{f"M-{number}": _KIP_848 for number in range(78, 85)},
    **{f"M-{number}": _SPARK for number in range(116, 121)},
    "M-124": "file descriptors are the kernel's: for a real cluster",
}

__all__ = [
    "MUTANTS",
    "NOT_APPLICABLE",
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
