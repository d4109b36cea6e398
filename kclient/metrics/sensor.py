"""Recorded numbers, with totals since the start, and averages, rates and extremes over the last few windows.

A sensor keeps `count` windows of `seconds` each (metrics_num_samples × metrics_sample_window_ms). A window begins with
the first number that comes when the one before is over, and is forgotten when it began `count` × `seconds` ago. Rates
go by the time that the windows at hand cover, but by no less than all windows but the newest: the first number of a
quiet sensor is not a burst.
"""

from __future__ import annotations

from math import inf, nan

import attrs


@attrs.frozen
class Windows:
    """The period that a sensor covers: a number of windows, and their length in seconds."""

    seconds: float = 30.0
    count: int = 2


@attrs.define(eq=False)
class _Window:
    start: float
    end: float
    events: int = 0
    total: float = 0.0
    highest: float = -inf
    lowest: float = inf


class Sensor:
    """`events` and `total` are of its whole life, what is computed from `now` (the loop's seconds) of its windows."""

    __slots__ = ("_current", "_kept", "_past_events", "_past_total", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._current: _Window | None = None
        self._kept: tuple[_Window, ...] = ()
        self._past_events = 0  # of windows that are not kept any more
        self._past_total = 0.0

    def record(self, value: float, now: float) -> None:
        """Record a number. This is the hot path; everything else is computed when it is read."""
        window = self._current
        if window is None or now >= window.end:
            window = self._next_window(now)
        window.events += 1
        window.total += value
        if value > window.highest:
            window.highest = value
        if value < window.lowest:
            window.lowest = value

    @property
    def events(self) -> int:
        """Return how often something was recorded."""
        return self._past_events + sum(window.events for window in self._kept)

    @property
    def total(self) -> float:
        """Return the sum of all numbers."""
        return self._past_total + sum(window.total for window in self._kept)

    def avg(self, now: float) -> float:
        """Return the mean of the numbers in the windows; NaN if there are none."""
        windows = self._recent(now)
        events = sum(window.events for window in windows)
        return sum(window.total for window in windows) / events if events else nan

    def max(self, now: float) -> float:
        """Return the largest number in the windows; NaN if there are none."""
        return max((window.highest for window in self._recent(now)), default=nan)

    def min(self, now: float) -> float:
        """Return the smallest number in the windows; NaN if there are none."""
        return min((window.lowest for window in self._recent(now)), default=nan)

    def rate(self, now: float) -> float:
        """Return the sum of the numbers in the windows per second."""
        windows = self._recent(now)
        return sum(window.total for window in windows) / self._covered(windows, now)

    def event_rate(self, now: float) -> float:
        """Return how many numbers were recorded per second."""
        windows = self._recent(now)
        return sum(window.events for window in windows) / self._covered(windows, now)

    def _next_window(self, now: float) -> _Window:
        self._current = window = _Window(now, now + self._windows.seconds)
        kept = (*self._recent(now), window)[-self._windows.count :]
        for old in self._kept:
            if old not in kept:
                self._past_events += old.events
                self._past_total += old.total
        self._kept = kept
        return window

    def _recent(self, now: float) -> tuple[_Window, ...]:
        oldest = now - self._windows.count * self._windows.seconds
        return tuple(window for window in self._kept if window.start > oldest)

    def _covered(self, windows: tuple[_Window, ...], now: float) -> float:
        """Return the seconds that a rate is computed over."""
        seconds, count = self._windows.seconds, self._windows.count
        elapsed = now - windows[0].start if windows else 0.0
        missing = max(0, count - 1 - int(elapsed // seconds))
        return elapsed + missing * seconds or seconds
