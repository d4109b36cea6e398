"""What a protocol has written and the wire has not taken: above a limit the protocol's pause_writing is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.simulation.pipe import Bytes, Pipe

if TYPE_CHECKING:
    from tests.simulation.end import End

HIGH_WATER_BYTES: Final = 65_536


class Outbox:
    """See the module. The limits are asyncio's."""

    def __init__(self, end: End, pipe: Pipe) -> None:
        self.pipe = pipe
        self.high, self.low = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4
        self._end = end
        self._paused = False

    def write(self, data: Bytes) -> None:
        """Send; above the high mark the protocol is paused."""
        self.pipe.send(data if type(data) is bytes else bytes(data))
        if self.pipe.waiting_bytes > self.high and not self._paused:
            self._paused = True
            self._end.get_protocol().pause_writing()

    def drained(self) -> bool:
        """Whether a paused protocol may go on; asked once for each pause."""
        if self._paused and self.pipe.waiting_bytes <= self.low:
            self._paused = False
            return True
        return False

    def set_limits(self, high: int | None, low: int | None) -> None:
        """As `set_write_buffer_limits`. Raises ValueError."""
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high!r}) must be >= low ({low!r}) must be >= 0")
        self.high, self.low = high, low
