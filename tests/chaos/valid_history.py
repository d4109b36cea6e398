"""A short history that keeps every promise, for tests that break it in one place.

Two members share two partitions: a has both, gives them up, and gets back 0 while b gets 1. Then they close.
"""

from __future__ import annotations

from typing import Any

import attrs

from tests.chaos.findings import Finding
from tests.chaos.history import History, read_history
from tests.chaos.journal import Line
from tests.chaos.kafka_state import Taken
from tests.chaos.producer import value_of
from tests.chaos.verify import verify

A, B, CHAOS = "ours-1.0#1", "theirs-1.0#1", "chaos"
WALL = 1_000_000.0
RECORDS = {(0, 0): 0, (1, 0): 1, (0, 1): 2, (1, 1): 3, (0, 2): 4, (1, 2): 5}


@attrs.define
class Forged:
    """Lines in the order of their times, the records of the topic, and the commits as the coordinator took them."""

    lines: list[Line]
    records: dict[tuple[int, int], str]
    acknowledged: dict[tuple[int, int], str]
    taken: list[Taken]
    eager: bool = True
    by_coordinator: bool = False

    def at(self, at: float) -> int:
        """The index of the line of this time."""
        return next(number for number, line in enumerate(self.lines) if line.at == at)

    def replace(self, at: float, **details: Any) -> None:
        """Change a line."""
        number = self.at(at)
        self.lines[number] = attrs.evolve(
            self.lines[number], details={**self.lines[number].details, **details}
        )

    def remove(self, at: float) -> None:
        del self.lines[self.at(at)]

    def add(self, at: float, who: str, event: str, **details: Any) -> None:
        """A line more, in its place."""
        self.lines.append(Line(at, who, event, details))
        self.lines.sort(key=lambda line: line.at)

    def take(self, at: float, partition: int, offset: int) -> None:
        """The coordinator takes a commit more."""
        self.taken.append(Taken(partition, offset, WALL + at))
        self.taken.sort(key=lambda one: one.wall)

    def history(self) -> History:
        history = read_history(self.lines, eager=self.eager, session=6.0, by_coordinator=self.by_coordinator)
        history.records, history.acknowledged = self.records, self.acknowledged
        history.taken = self.taken
        return history

    def findings(self) -> list[Finding]:
        return verify(self.history())


def row(partition: int, offset: int) -> list[Any]:
    return [partition, offset, value_of(partition, RECORDS[partition, offset])]


def honest() -> Forged:
    """Nothing is broken."""
    values = {place: value_of(place[0], number) for place, number in RECORDS.items()}
    forged = Forged([], values, dict(values), [])
    forged.add(0.0, CHAOS, "began", wall=WALL)
    _callback(forged, 1.0, A, "assigned", 0, 1)
    forged.add(2.0, A, "delivered", rows=[row(0, 0), row(1, 0), row(0, 1)])
    _commit(forged, 2.2, A, 1, {0: 2, 1: 1})
    _callback(forged, 3.0, A, "revoked", 0, 1)
    _callback(forged, 4.0, A, "assigned", 0)
    _callback(forged, 4.5, B, "assigned", 1)
    forged.add(5.0, A, "delivered", rows=[row(0, 2)])
    _commit(forged, 5.2, A, 2, {0: 3})
    forged.add(6.0, B, "delivered", rows=[row(1, 1), row(1, 2)])
    _commit(forged, 6.2, B, 1, {1: 3})
    for at, member, partition in ((8.0, A, 0), (8.5, B, 1)):
        _callback(forged, at, member, "revoked", partition, inside="close")
        forged.add(at + 0.2, member, "closed")
    return forged


def _callback(
    forged: Forged, at: float, who: str, event: str, *partitions: int, inside: str = "poll"
) -> None:
    forged.add(at, who, event, partitions=list(partitions), inside=inside)
    forged.add(at + 0.1, who, f"{event} over", partitions=list(partitions))


def _commit(forged: Forged, at: float, who: str, number: int, offsets: dict[int, int]) -> None:
    forged.add(at, who, "commit", number=number, offsets=sorted(map(list, offsets.items())), inside="commit")
    for partition, offset in offsets.items():
        forged.take(at + 0.05, partition, offset)
    forged.add(at + 0.1, who, "committed", number=number, error=None)
