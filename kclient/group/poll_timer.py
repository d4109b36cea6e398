"""max.poll.interval.ms of one member: restarted by every poll; a warning at 80 % of it, the end of the membership at
100 %.

The warning comes while there is time left: the application still has the records, and the group still waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kclient.config import Config
from kclient.runtime import Runtime

WARN_AT: Final = 0.8  # of the interval


class PollTimer:
    """Times are seconds of the loop. `slow` is called once for each poll that is overdue soon, with the seconds
    since."""

    def __init__(self, config: Config, runtime: Runtime, slow: Callable[[float], None]) -> None:
        self._interval = config.max_poll_interval_ms / 1000
        self._runtime = runtime
        self._slow = slow
        self._polled_at = 0.0
        self._warned = False

    def restart(self) -> None:
        """A poll has begun, or another round of one that waits."""
        self._polled_at = self._runtime.now()
        self._warned = False

    def since_poll(self) -> float:
        """Seconds since the last poll."""
        return self._runtime.now() - self._polled_at

    @property
    def ends(self) -> float:
        """When the membership ends unless there is a poll before."""
        return self._polled_at + self._interval

    @property
    def next_at(self) -> float:
        """When to look again: for the warning, or for the end."""
        return self.ends if self._warned else self._polled_at + WARN_AT * self._interval

    def warn_if_due(self) -> None:
        """Warn once between two polls."""
        if not self._warned and self._runtime.now() >= self.next_at:
            self._warned = True
            self._slow(self.since_poll())
