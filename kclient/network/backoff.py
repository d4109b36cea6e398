"""Exponential backoff with jitter, for retries, reconnects and the connection set-up timeout (KIP-580, KIP-601).

    delay(n) = min(max, base · 2^min(n, log2(max / base)) · U(0.8, 1.2)),  n = 0 for the first delay

A maximum that is not above its base is a constant delay without jitter.
"""

from __future__ import annotations

import math
from typing import Protocol

from kclient.config import Config
from kclient.runtime import Runtime

JITTER = 0.2


class Uniform(Protocol):
    """The method of a random generator that the backoff uses."""

    def uniform(self, a: float, b: float) -> float: ...


class Backoff:
    """Delays in seconds, each about twice the one before."""

    __slots__ = ("_base", "_last_step", "_max", "_rng", "step")

    def __init__(self, base_ms: float, max_ms: float, rng: Uniform) -> None:
        self._base = min(base_ms, max_ms) / 1000
        self._max = max_ms / 1000
        self._last_step = math.log2(max_ms / max(base_ms, 1)) if max_ms > base_ms else 0.0
        self._rng = rng
        self.step: int = 0  # delays since the last reset

    @classmethod
    def for_retries(cls, config: Config, runtime: Runtime) -> Backoff:
        """Return a backoff from retry_backoff_ms to retry_backoff_max_ms."""
        return cls(config.retry_backoff_ms, config.retry_backoff_max_ms, runtime.rng)

    @property
    def steady(self) -> bool:
        """Whether the delay has stopped growing."""
        return self.step > self._last_step

    @property
    def longest(self) -> float:
        """The longest delay, in seconds."""
        return self._max

    def next(self) -> float:
        """Return the delay to wait now, in seconds; the next one is longer."""
        n = min(self.step, self._last_step)
        self.step += 1
        if not self._last_step:
            return self._base
        return min(self._max, self._base * 2**n * self._rng.uniform(1 - JITTER, 1 + JITTER))

    def reset(self) -> None:
        """Begin again with the shortest delay."""
        self.step = 0
