"""SIGTERM and SIGINT: the first stops the job after the running batch, the second at once.

Until work begins, Ctrl-C interrupts as anywhere else, because the job may be waiting for a silent broker. SIGTERM stops
the job in order also then: its exit code is 0.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import attrs


@attrs.define
class StopRequest:
    """Whether a signal asked to stop, and which."""

    signal: int | None = None
    listens: bool = False

    def begin_work(self) -> None:
        """Mark that work has begun: from here on the first signal lets it end."""
        if self.listens:
            signal.signal(signal.SIGINT, self.ask)

    @contextmanager
    def shield(self) -> Iterator[None]:
        """Let Ctrl-C wait until the block has ended: a start of a process that it interrupts would forget a child."""
        if not self.listens:
            yield
            return
        waiting: list[int] = []
        before = signal.signal(signal.SIGINT, lambda number, _: waiting.append(number))
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            for number in waiting[:1]:
                signal.raise_signal(number)

    def __bool__(self) -> bool:
        return self.signal is not None

    def ask(self, number: int, _: FrameType | None = None) -> None:
        """Handle a signal. Raises KeyboardInterrupt for the second."""
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Handle both signals in the main thread; elsewhere do nothing."""
    stop = StopRequest()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        signal.signal(signal.SIGTERM, stop.ask)
        stop.listens = True
    except ValueError:  # not the main thread
        pass
    try:
        yield stop
    finally:
        for number, handler in before.items() if stop.listens else ():
            signal.signal(number, handler)
