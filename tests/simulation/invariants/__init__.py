"""The promises of reliability.md section 3, as classes that look on while a seed runs; every seed checks `ALL`."""

from __future__ import annotations

from tests.simulation.invariants import commits, delivery, ownership
from tests.simulation.watch import Invariant

ALL: list[type[Invariant]] = [*delivery.ALL, *commits.ALL, *ownership.ALL]
