"""What the demo prints: on a terminal lines that are drawn again in place, elsewhere a plain line now and then."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from typing import Final, TextIO

from demo.recording import DONE, KILLED, Carrier, Numbers

BAR: Final = 20
PLAIN_SECONDS: Final = 2.0
REDRAW_SECONDS: Final = 0.1
INDENT: Final = 10 * " "
COLOURS: Final = {KILLED: "31", DONE: "32"}


class Terminal:
    """Headlines stay; `draw` replaces what it drew before."""

    def __init__(self, stream: TextIO = sys.stdout) -> None:
        self._stream = stream
        self._live = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._coloured = self._live and not os.environ.get("NO_COLOR")
        self._drawn = 0
        self._last = 0.0
        self._began = time.monotonic()

    def elapsed(self) -> float:
        """Return the seconds since the demo began."""
        return round(time.monotonic() - self._began, 3)

    def say(self, text: str, kind: str = "") -> None:
        """Print a permanent line with the seconds since the demo began; on a terminal wrapped and in colour."""
        self._erase()
        self._write(f"{self.elapsed():6.1f} s  {self.paint(self._fitted(text), kind)}\n")

    def paint(self, text: str, kind: str) -> str:
        """Return the text in the colour of an event's kind, if colours are supported."""
        return f"\x1b[{COLOURS[kind]}m{text}\x1b[0m" if self._coloured and kind in COLOURS else text

    def table(self, text: str) -> None:
        """Print permanent lines unchanged."""
        self._erase()
        self._write(text + "\n")

    def draw(self, lines: Sequence[str], plain: str, *, now: bool = False) -> None:
        """Print lines that the next call replaces; without a terminal print `plain`, every two seconds or `now`."""
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

    def _fitted(self, text: str) -> str:
        """Broken between words where the terminal ends; elsewhere a line stays one."""
        if not self._live:
            return text
        room = max(20, shutil.get_terminal_size().columns - len(INDENT))
        lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
        return f"\n{INDENT}".join(lines)

    def _erase(self) -> None:
        if self._drawn:
            self._write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def bar(done: int, total: int) -> str:
    """Return a progress bar with the share in per cent."""
    share = done / total if total else 1.0
    filled = int(share * BAR)
    return f"{'█' * filled}{'░' * (BAR - filled)} {share:6.1%}"


def numbers_table(numbers: Numbers, paint: Callable[[str, str], str]) -> str:
    """Return the five numbers, one per line, and whether each is right."""
    return "\n".join(
        f"{INDENT}{paint('✓', DONE) if right else paint('✗', KILLED)} {name:12}{value:>11,}"
        for name, value, right in numbers.named()
    )


def carriers_table(carriers: Sequence[Carrier]) -> str:
    """Return the answer as lines of at most 80 columns."""
    lines = [
        f"{INDENT}the ten worst carriers, by their mean delay in minutes",
        f"{INDENT}{'':31}{'flights':>9}{'departure':>12}{'arrival':>10}",
    ]
    lines += [
        f"{INDENT}{one.code} {one.airline:28}{one.flights:>9,}"
        f"{_minutes(one.departure):>12}{_minutes(one.arrival):>10}"
        for one in carriers
    ]
    return "\n".join(lines)


def _minutes(delay: float | None) -> str:
    return "–" if delay is None else f"{delay:.2f}"
