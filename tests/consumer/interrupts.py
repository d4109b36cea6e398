"""Signals whose handler raises at random moments of a test."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupts:
    """Raises in the main thread at random moments, once each time that `armed` is set."""

    def __init__(self, kind: type[BaseException]) -> None:
        self.kind, self.armed, self.count = kind, False, 0

    def on_signal(self, number: int, frame: Any) -> None:
        if self.armed:
            self.armed = False
            self.count += 1
            raise self.kind


@contextmanager
def raise_at_random(kind: type[BaseException], longest: float) -> Iterator[Interrupts]:
    def send_signals() -> None:
        moments = random.Random(7)
        while not over.wait(moments.uniform(0.0005, longest)):
            signal.pthread_kill(victim, signal.SIGUSR1)

    interrupts, victim, over = Interrupts(kind), threading.get_ident(), threading.Event()
    before = signal.signal(signal.SIGUSR1, interrupts.on_signal)
    thread = threading.Thread(target=send_signals, name="interrupts")
    thread.start()
    try:
        yield interrupts
    finally:
        interrupts.armed = False
        over.set()
        thread.join(5)
        signal.signal(signal.SIGUSR1, before)
