"""How long something may take, on machines that stand still now and then.

A thread looks at the clock all the time. Where it was kept from that for long, so was everything else in this process.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Final, Self

LOOK_SECONDS: Final = 0.02
LATE_SECONDS: Final = 0.1  # less is what threads do to each other


class within:  # noqa: N801 – reads as a word
    """`with within(2.0):` fails if the block takes longer, not counting the time in which this process was not run.

    `seconds` is what it took by the clock on the wall, `lost` how many of them the process was not run.
    """

    def __init__(self, most: float) -> None:
        self.most = most
        self.seconds = 0.0
        self.lost = 0.0
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, name="pace", daemon=True)

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
        told = f"{self.seconds:.3f} s, and {self.lost:.3f} of them the process was not run"
        assert kind is not None or self.seconds - self.lost < self.most, told

    def _look(self) -> None:
        before, over = time.monotonic(), False
        while not over:
            over = self._over.wait(LOOK_SECONDS)
            now = time.monotonic()
            if now - before > LATE_SECONDS:
                self.lost += now - before - LOOK_SECONDS
            before = now
