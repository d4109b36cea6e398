"""The promises of reliability.md section 3, as classes that look on while a seed runs; every seed checks `ALL`."""

from __future__ import annotations

from typing import Final

from tests.simulation.invariants import (
    commits,
    conduct,
    connections,
    delivery,
    liveness,
    logs,
    membership,
    metrics,
    ownership,
    resources,
    truncation,
)
from tests.simulation.watch import Invariant

ALL: list[type[Invariant]] = [
    *delivery.ALL,
    *commits.ALL,
    *ownership.ALL,
    *truncation.ALL,
    *connections.ALL,
    *conduct.ALL,
    *liveness.ALL,
    *membership.ALL,
    *resources.ALL,
    *logs.ALL,
    *metrics.ALL,
]
OF_THE_RUN: Final = {"I-25": "runner.py: a run that cannot go on is told as a violation"}
OWN_TESTS: Final = {
    "I-18": "test_wall_clock.py",
    "I-20": "test_facade.py",
    "I-30": "test_cancelling.py",
    "I-33": "test_growth.py",
}
NOT_YET: Final = {
    "I-19": "fetches use no sessions yet",
    "I-21": "simulation runs no Spark; tests/spark has tests of its own",
    "I-36": "file descriptors are the kernel's: for a real cluster",
}
