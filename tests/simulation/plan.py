"""A fault plan as data: which faults, on what, from when, for how long. Plans outlive the seeds that drew them.

    {"scenario": {"brokers": 1}, "faults": [["kill_broker", "1", 12.5, 6.0, 0.0]]}

`KINDS` of faults.py says what each kind does; `amount` is in the kind's own unit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple, Self

import attrs

from tests.simulation.scenario import Scenario


class Fault(NamedTuple):
    """One fault. `target` names a broker, a member, a partition or an API, as its kind wants it."""

    kind: str
    target: str
    start: float
    seconds: float
    amount: float = 0.0

    def __str__(self) -> str:
        return f"{self.start:7.2f} s  {self.kind} {self.target} for {self.seconds:.2f} s ({self.amount:g})"


@attrs.frozen
class Plan:
    """A scenario and what goes wrong in it, by time."""

    scenario: Scenario
    faults: tuple[Fault, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What `from_json` reads."""
        return {"scenario": self.scenario.to_json(), "faults": [list(fault) for fault in self.faults]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """What `to_json` wrote."""
        faults = tuple(Fault(*fault) for fault in data["faults"])
        return cls(Scenario.from_json(data["scenario"]), faults)

    @classmethod
    def load(cls, path: Path) -> Self:
        """From a file."""
        return cls.from_json(json.loads(path.read_text(encoding="utf-8")))

    def save(self, path: Path) -> None:
        """Into a file that people may read and change."""
        rows = ",\n  ".join(json.dumps(list(fault)) for fault in self.faults)
        scenario = json.dumps(self.scenario.to_json())
        path.write_text(f'{{"scenario": {scenario},\n "faults": [\n  {rows}\n]}}\n', encoding="utf-8")

    def without(self, fault: Fault) -> Self:
        """The same without one fault."""
        return attrs.evolve(self, faults=tuple(one for one in self.faults if one is not fault))
