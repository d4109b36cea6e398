"""The cluster's time: the loop's time, which a test may move forward.

Every timer of the cluster is scheduled here and nothing else in it sleeps, so `advance` makes a session time out or a
record expire at once, in the order in which it would have happened.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import math
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Final, TypeAlias

import attrs

from kclient.embedded.loop_thread import ClusterLoop, HasClusterLoop, control
from kclient.errors import ArgumentError
from kclient.runtime import Runtime

Duration: TypeAlias = float | timedelta | str

UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def to_seconds(duration: Duration) -> float:
    """Return a duration in seconds. Raise ArgumentError for an invalid one."""
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if isinstance(duration, int | float) and math.isfinite(duration):
        return float(duration)
    parts = PART.findall(duration) if isinstance(duration, str) else []
    if not parts or "".join(number + unit for number, unit in parts) != str(duration).replace(" ", ""):
        raise ArgumentError(
            f"{duration!r} is not a duration; give seconds as a number, a timedelta, or text such as '10m', '1h30m'."
        )
    return sum(float(number) * UNITS[unit] for number, unit in parts)


SWEPT_FROM: Final = 1_000
DAY: Final = 86_400.0
LONGEST_SECONDS: Final = 1_000 * DAY  # brokers check the retention every five minutes of it


@attrs.define(eq=False)
class Timer:
    """A callback that is due at a time of the cluster's clock; cancelling twice is cancelling once."""

    callback: Callable[[], None] | None

    def cancel(self) -> None:
        """Never call back."""
        self.callback = None


class Clock:
    """Monotonic seconds and wall milliseconds of one cluster."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._ahead = 0.0
        self._timers: list[tuple[float, int, Timer]] = []  # when, its number, and what
        self._made = 0
        self._most = SWEPT_FROM  # timers, before those that were cancelled are looked for
        self._advancing = False
        self._alarm: asyncio.TimerHandle | None = None
        self._context = contextvars.copy_context()  # whose request set a timer does not matter when it rings

    def now(self) -> float:
        """Seconds that never go back."""
        return self._runtime.now() + self._ahead

    def wall_ms(self) -> int:
        """Milliseconds since 1970, UTC."""
        return self._runtime.wall_ms() + int(self._ahead * 1000)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back in so many seconds of the cluster's time."""
        self._made += 1
        timer = Timer(callback)
        if len(self._timers) >= self._most:
            self._sweep()
        heapq.heappush(self._timers, (self.now() + seconds, self._made, timer))
        self._set_alarm()
        return timer

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds of the cluster's time."""
        over = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds, lambda: None if over.done() else over.set_result(None))
        try:
            await over
        finally:
            timer.cancel()

    def advance(self, seconds: float) -> None:
        """Move the time forward; every timer on the way fires at its own time.

        Raise ArgumentError for a time that goes back, and for one that would take too long to walk through.
        """
        if seconds > LONGEST_SECONDS:
            raise ArgumentError(
                f"The clock goes on by {LONGEST_SECONDS / DAY:g} days at once, and not by {seconds / DAY:g}; "
                "sessions and records are gone long before. Give less."
            )
        if seconds < 0:
            raise ArgumentError(
                f"The clock cannot go back by {-seconds:g} s; give a positive number of seconds."
            )
        until = self.now() + seconds
        self._advancing = True
        try:
            while self._timers and self._timers[0][0] <= until:
                self._ahead += max(0.0, self._timers[0][0] - self.now())
                self._ring_one()
        finally:
            self._ahead += max(0.0, until - self.now())
            self._advancing = False
            self._set_alarm()

    def stop(self) -> None:
        """Forget every timer."""
        self._timers.clear()
        self._set_alarm()

    def _ring_one(self) -> None:
        callback = heapq.heappop(self._timers)[2].callback
        if callback is not None:
            callback()

    def _ring(self) -> None:
        self._alarm = None
        try:
            while self._timers and self._timers[0][0] <= self.now():
                self._ring_one()
        finally:
            self._set_alarm()  # a callback that fails must not prevent later timers

    def _sweep(self) -> None:
        """Remove cancelled timers: every heartbeat cancels one, which would stay until its time."""
        self._timers = [one for one in self._timers if one[2].callback is not None]
        heapq.heapify(self._timers)
        self._most = max(SWEPT_FROM, 2 * len(self._timers))

    def _set_alarm(self) -> None:
        """Set the one timer of the loop, for the earliest callback."""
        if self._advancing:
            return
        while self._timers and self._timers[0][2].callback is None:
            heapq.heappop(self._timers)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._timers:
            loop = asyncio.get_running_loop()
            when = self._timers[0][0] - self._ahead
            self._alarm = loop.call_at(when, self._ring, context=self._context)


class ClusterClock:
    """The time of a cluster, which a test can advance."""

    def __init__(self, cluster: HasClusterLoop, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    @property
    def cluster_loop(self) -> ClusterLoop:
        """The loop of the cluster. Raise UsageError if it is not running."""
        return self._cluster.cluster_loop

    @control
    def advance(self, duration: Duration) -> None:
        """Move the cluster's time forward ("10m", 1.5, a timedelta): sessions and records expire on the way.

        The clients' time does not move. Raise ArgumentError for a time that goes back.
        """
        self._clock.advance(to_seconds(duration))

    @control
    def now(self) -> float:
        """Seconds that never go back."""
        return self._clock.now()

    @control
    def wall_ms(self) -> int:
        """Milliseconds since 1970, UTC, as the brokers see them."""
        return self._clock.wall_ms()
