"""`consumer-metrics`: how the application polls and commits; `kclient-metrics`: what Java does not measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from kclient.metrics.registry import Registry, seconds_ago

GROUP = "consumer-metrics"


class CallMetrics:
    """Measures polls and commits: milliseconds between polls, nanoseconds in commits, as in Java.

    The idle ratio is the part of the time since the poll before ended that this poll took: 1.0 where the application
    needs no time of its own, near 0 where it hardly ever waits for records. (Java divides by the time since the poll
    before *began* plus that of this one, which never gives more than one half in a steady loop.)
    """

    def __init__(self, registry: Registry) -> None:
        self._between = registry.sensor()
        self._idle = registry.sensor()
        self._clock = registry.clock
        self._polls = 0
        self._started: float | None = None
        self._ended: float | None = None
        self._ns_in = {"commit": 0.0, "committed": 0.0}
        group = registry.group(GROUP)
        group.spread("time-between-poll", self._between, "avg", "max")
        group.add("poll-idle-ratio-avg", self._idle.avg)
        group.add("last-poll-seconds-ago", lambda now: seconds_ago(self._started, now))
        registry.group(OWN_GROUP).add("poll-total", lambda now: float(self._polls))
        group.add("commit-sync-time-ns-total", lambda now: self._ns_in["commit"])
        group.add("committed-time-ns-total", lambda now: self._ns_in["committed"])

    def poll_started(self) -> None:
        """Note the beginning of a poll and how long ago the one before began."""
        self._poll_started(self._clock())

    def polled(self, now: float) -> None:
        """Note a poll that took no time worth measuring, from any thread: `now` is the loop's time."""
        self._poll_started(now)
        self._poll_ended(now)

    def _poll_started(self, now: float) -> None:
        self._polls += 1
        if self._started is not None:
            self._between.record((now - self._started) * 1000, now)
        self._started = now

    def poll_ended(self) -> None:
        """Note the end of a poll, also if it raised."""
        self._poll_ended(self._clock())

    def _poll_ended(self, now: float) -> None:
        started = now if self._started is None else self._started
        since = started if self._ended is None else self._ended
        if now > since:
            self._idle.record((now - started) / (now - since), now)
        self._ended = now

    @contextmanager
    def inside(self, call: Literal["commit", "committed"]) -> Iterator[None]:
        """Record the time that this call takes, also if it fails."""
        began = self._clock()
        try:
            yield
        finally:
            self._ns_in[call] += (self._clock() - began) * 1e9


OWN_GROUP = "kclient-metrics"
COUNTERS = (
    "auto-commit-total",
    "commit-failed-total",
    "assignments-total",
    "partitions-assigned-total",
    "partitions-revoked-total",
    "partitions-lost-total",
    "offset-resets-total",
)


class KclientMetrics:
    """Counters that only grow. `buffered_bytes` returns the bytes that were fetched and not returned yet."""

    def __init__(self, registry: Registry, buffered_bytes: Callable[[], int] = int) -> None:
        self._registry = registry
        self._counts = dict.fromkeys(COUNTERS, 0.0)
        self._skipped: dict[str, float] = {}
        group = registry.group(OWN_GROUP)
        for name in COUNTERS:
            group.add(name, self._reader(self._counts, name))
        group.add("buffered-bytes", lambda now: float(buffered_bytes()))

    def count(self, name: str, amount: int = 1) -> None:
        """Add to one of COUNTERS."""
        self._counts[name] += amount

    def records_skipped(self, amount: int, reason: str) -> None:
        """Count records that the application will never get: `retention`, `decode`."""
        if reason not in self._skipped:
            self._skipped[reason] = 0.0
            group = self._registry.group(OWN_GROUP, reason=reason)
            group.add("records-skipped-total", self._reader(self._skipped, reason))
        self._skipped[reason] += amount

    @staticmethod
    def _reader(counts: dict[str, float], name: str) -> Callable[[float], float]:
        return lambda now: counts[name]
