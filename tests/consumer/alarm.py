"""Signals whose handler raises, at random moments of what a test tries."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Alarm:
    """Raises in the main thread at random moments, each time after it was `armed` again."""

    def __init__(self, kind: type[BaseException]) -> None:
        self.kind, self.armed, self.count = kind, False, 0

    def ring(self, number: int, frame: Any) -> None:
        if self.armed:
            self.armed = False
            self.count += 1
            raise self.kind


@contextmanager
def alarm(kind: type[BaseException], longest: float) -> Iterator[Alarm]:
    def disturb() -> None:
        moments = random.Random(7)
        while not over.wait(moments.uniform(0.0005, longest)):
            signal.pthread_kill(victim, signal.SIGUSR1)

    clock, victim, over = Alarm(kind), threading.get_ident(), threading.Event()
    before = signal.signal(signal.SIGUSR1, clock.ring)
    thread = threading.Thread(target=disturb, name="disturber")
    thread.start()
    try:
        yield clock
    finally:
        clock.armed = False
        over.set()
        thread.join(5)
        signal.signal(signal.SIGUSR1, before)
