"""What one member writes down, whatever its client: journal lines, and its position in each owned partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tests.chaos.journal import Journal

Row = tuple[int, int, str]  # partition, offset, value


class MemberJournal:
    """A member's lines. `inside` is the call of the member that runs at the moment, "" between calls."""

    def __init__(self, journal: Journal, name: str) -> None:
        self._journal = journal
        self.name = name
        self._inside = ""
        self.position: dict[int, int] = {}  # of owned partitions, where something was delivered
        self._commits = 0
        self._last: dict[int, int] = {}

    @contextmanager
    def inside(self, call: str) -> Iterator[None]:
        """The member is inside of one of its calls."""
        before, self._inside = self._inside, call
        try:
            yield
        finally:
            self._inside = before

    @contextmanager
    def callback(self, event: str, partitions: Iterable[int]) -> Iterator[None]:
        """A callback about these partitions runs: `assigned`, `revoked` or `lost`."""
        parts = sorted(partitions)
        self._write(event, partitions=parts, inside=self._inside)
        yield
        self._write(f"{event} over", partitions=parts)
        for partition in parts:
            self.position.pop(partition, None)
            self._last.pop(partition, None)

    def delivered(self, rows: list[Row]) -> None:
        """These records came out of a poll, in this order."""
        if rows:
            self._write("delivered", rows=rows)
            self.position |= {partition: offset + 1 for partition, offset, _ in rows}

    def to_commit(self) -> dict[int, int]:
        """Where a commit would change something."""
        return {
            partition: offset
            for partition, offset in self.position.items()
            if self._last.get(partition) != offset
        }

    def commit(self, offsets: dict[int, int]) -> int:
        """A commit of these offsets is about to be asked for. Returns its number."""
        self._commits += 1
        self._last |= offsets
        pairs = sorted(offsets.items())
        self._write("commit", number=self._commits, offsets=pairs, inside=self._inside)
        return self._commits

    def committed(self, number: int, error: object | None) -> None:
        """What became of it: no error means that the group has these offsets."""
        self._write("committed", number=number, error=None if error is None else repr(error))
        if error is not None:
            self._last.clear()

    def tell(self, event: str) -> None:
        """Any other event."""
        self._write(event)

    def _write(self, event: str, **details: object) -> None:
        self._journal.write(self.name, event, **details)
