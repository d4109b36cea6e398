"""What the demo prints: on a terminal lines that are drawn again in place, elsewhere a plain line now and then."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from typing import Final, TextIO

BAR: Final = 20
PLAIN_SECONDS: Final = 2.0
REDRAW_SECONDS: Final = 0.1


class Terminal:
    """Headlines stay; `draw` replaces what it drew before."""

    def __init__(self, stream: TextIO = sys.stdout) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._drawn = 0
        self._last = 0.0
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        """A line that stays, with the seconds since the demo began."""
        self._erase()
        self._write(f"{time.monotonic() - self._began:6.1f} s  {text}\n")

    def table(self, text: str) -> None:
        """Lines that stay, as they are."""
        self._erase()
        self._write(text + "\n")

    def draw(self, lines: Sequence[str], plain: str, *, now: bool = False) -> None:
        """Lines that the next call replaces; without a terminal `plain` instead, every two seconds or `now`."""
        elapsed = time.monotonic() - self._last
        if not now and elapsed < (REDRAW_SECONDS if self._live else PLAIN_SECONDS):
            return
        self._last = time.monotonic()
        if not self._live:
            self.say(plain)
            return
        self._erase()
        width = shutil.get_terminal_size().columns - 1  # a line that wraps would be two to erase
        self._write("".join(f"{line[:width]}\n" for line in lines))
        self._drawn = len(lines)

    def _erase(self) -> None:
        if self._drawn:
            self._write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def bar(done: int, total: int) -> str:
    """A bar that fills, and the share in per cent."""
    share = done / total if total else 1.0
    filled = int(share * BAR)
    return f"{'█' * filled}{'░' * (BAR - filled)} {share:6.1%}"
