"""The invariants of docs/specification/simulation.md, as classes that observe a seed; every seed checks `ALL`."""

from __future__ import annotations

from typing import Final

from tests.simulation.invariants import (
    commits,
    conduct,
    connections,
    delivery,
    endings,
    gradual,
    handlers,
    liveness,
    logs,
    membership,
    metrics,
    ownership,
    resources,
    sessions,
    tokens,
    truncation,
)
from tests.simulation.watch import Invariant

ALL: list[type[Invariant]] = [
    *delivery.ALL,
    *commits.ALL,
    *ownership.ALL,
    *gradual.ALL,
    *truncation.ALL,
    *connections.ALL,
    *sessions.ALL,
    *tokens.ALL,
    *conduct.ALL,
    *liveness.ALL,
    *endings.ALL,
    *membership.ALL,
    *resources.ALL,
    *logs.ALL,
    *metrics.ALL,
    *handlers.ALL,
]
OF_THE_RUN: Final = {"I-25": "runner.py: a run that cannot go on is told as a violation"}
OWN_TESTS: Final = {
    "I-18": "test_wall_clock.py",
    "I-20": "test_facade.py",
    "I-21": "test_spark.py",
    "I-30": "test_cancelling.py",
    "I-33": "test_growth.py",
    **{f"I-{number}": "../lakehouse/test_connect_bugs.py" for number in range(46, 53)},
}
NOT_YET: Final = {
    "I-36": "file descriptors are the kernel's; mutants/sockets.py looks at real ones, a soak at a real cluster's",
}
