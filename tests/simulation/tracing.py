"""The history of a run, as a digest always and as lines to read when asked for.

Every callback goes in with its time and its task's number, so two runs of one digest did the same things in the same
order. Payload bytes never go in: TLS draws its own randomness.
"""

from __future__ import annotations

from array import array
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from tests.simulation.hosts import current_name

if TYPE_CHECKING:
    from tests.simulation.loop import SimLoop

FLUSH_NUMBERS: Final = 16_384


class Trace:
    """See the module. `lines` is None unless the history is kept."""

    def __init__(self, loop: SimLoop, *, history: bool) -> None:
        self.lines: list[str] | None = [] if history else None
        self._loop = loop
        self._hash = blake2b(digest_size=16)
        self._numbers = array("d")

    def step(self, *numbers: float) -> None:
        """Put numbers into the digest."""
        self._numbers.extend(numbers)
        if len(self._numbers) >= FLUSH_NUMBERS:
            self._flush()

    def event(self, words: tuple[object, ...]) -> None:
        """Put words into the digest, and into the history with time and host."""
        self._flush()
        line = f"{self._loop.time():12.6f} {current_name():<10} {' '.join(map(str, words))}"
        self._hash.update(line.encode())
        if self.lines is not None:
            self.lines.append(line)

    def digest(self) -> str:
        """Of everything so far."""
        self._flush()
        return self._hash.hexdigest()

    def _flush(self) -> None:
        if self._numbers:
            self._hash.update(self._numbers)
            self._numbers = array("d")
