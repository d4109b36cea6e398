"""SIGTERM and SIGINT: the first asks to stop after the batch at work, the second ends the job at once.

Spec: SP-85.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import attrs


@attrs.define
class Stop:
    """Whether a signal asked to stop, and which."""

    signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    def ask(self, number: int, _: FrameType | None = None) -> None:
        """Handle a signal. Raises KeyboardInterrupt for the second."""
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Listen to both signals, in the main thread; elsewhere nobody can ask this way."""
    stop = Stop()
    before: dict[signal.Signals, Any] = {}
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            before[number] = signal.signal(number, stop.ask)
    except ValueError:  # not the main thread
        pass
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
