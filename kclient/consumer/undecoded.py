"""Records whose deserializer failed and that were passed all the same: counted, and told in the log now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kclient.log import THROTTLE_SECONDS, get_logger
from kclient.records.reader import Chunk

log = get_logger("kclient.fetch")

DONE: Final[Mapping[str, str]] = {
    "skip": "left out",
    "keep": "handed out as Undecoded",
    "dlq": "given to the dead-letter sink",
}


class UndecodedRecords:
    """`total` counts those that were delivered or passed; `left_out` is told of those that nobody will see."""

    def __init__(self, on_decode_error: str, left_out: Callable[[int], None] | None = None) -> None:
        self.total = 0
        self._doing = DONE.get(on_decode_error, "")
        self._left_out = left_out if on_decode_error in ("skip", "dlq") else None
        self._told = 0
        self._quiet_until = 0.0

    def note(self, chunks: Iterable[Chunk], now: float) -> None:
        """What a poll is about to return. `now` is the loop's time."""
        count, last = 0, None
        for chunk in chunks:
            if chunk.undecoded:
                count, last = count + chunk.undecoded, chunk
        if last is None:
            return
        self.total += count
        if self._left_out is not None:
            self._left_out(count)
        if now >= self._quiet_until:
            self._quiet_until = now + THROTTLE_SECONDS
            log.warning(
                "%d records could not be decoded and were %s, the last of %s before offset %d",
                self.total - self._told,
                self._doing,
                last.partition,
                last.next_offset,
            )
            self._told = self.total
