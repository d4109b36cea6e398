"""Bounds on real time that tolerate a machine which pauses the process.

A thread reads the clock all the time. When it was not scheduled for long, neither was anything else in this process.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Final, Self

LOOK_SECONDS: Final = 0.02
LATE_SECONDS: Final = 0.1  # shorter delays come from other threads of this process


class within:  # noqa: N801 – reads as a word
    """`with within(2.0):` fails if the block takes longer, not counting time in which the process was not scheduled.

    `seconds` is the elapsed time, `lost` the part of it in which the process was not scheduled.
    """

    def __init__(self, most: float) -> None:
        self.most = most
        self.seconds = 0.0
        self.lost = 0.0
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, name="realtime", daemon=True)

    def __enter__(self) -> Self:
        self._watch.start()
        self._began = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = time.monotonic() - self._began
        self._over.set()
        self._watch.join()
        message = f"{self.seconds:.3f} s, of which the process was not scheduled for {self.lost:.3f} s"
        assert kind is not None or self.seconds - self.lost < self.most, message

    def _look(self) -> None:
        before, over = time.monotonic(), False
        while not over:
            over = self._over.wait(LOOK_SECONDS)
            now = time.monotonic()
            if now - before > LATE_SECONDS:
                self.lost += now - before - LOOK_SECONDS
            before = now
