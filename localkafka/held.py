"""Defers signals while a child process is started: an unregistered child would outlive this process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_held() -> Iterator[None]:
    """Deliver signals that arrive inside at the end of the outermost block."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals interrupt the main thread alone
        return
    came: list[int] = []

    def note(signum: int, frame: FrameType | None) -> None:
        came.append(signum)

    before = {signum: handler for signum in SIGNALS if (handler := signal.getsignal(signum)) is not None}
    try:
        for signum in before:
            signal.signal(signum, note)
        yield
    finally:
        for signum, handler in before.items():
            # Any other is from the previous handler, run as the block began or ended: it may ignore what comes next.
            if signal.getsignal(signum) is note:
                signal.signal(signum, handler)
        for taken in came:
            signal.raise_signal(taken)
