"""How long a sender repeats itself: `retransmit_seconds` without an acknowledgement, then ETIMEDOUT."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import TimerHandle

    from tests.simulation.pipe import Pipe


class Patience:
    """Of the source of one pipe. On its host's time: a paused host gives up later, a dead one never."""

    of_the_network = True  # its timers are not those of a program

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._end: TimerHandle | None = None

    def wear(self) -> None:
        """Something goes without an acknowledgement from now on."""
        if self._end is None:
            source, limit = self._pipe.source, self._pipe.wire.retransmit_seconds
            self._end = self._pipe.loop.call_later(limit, self._give_up, context=source.context)

    def renew(self) -> None:
        """Both ways are free again, or not yet."""
        if self._end is not None and not self._pipe.deaf:
            self._end.cancel()
            self._end = None

    def _give_up(self) -> None:
        self._end = None
        if self._pipe.deaf and self._pipe.unheard:
            self._pipe.source.fail(TimeoutError(errno.ETIMEDOUT, "Connection timed out"))
