"""Processes: what the loop runs belongs to one, or to none; a ContextVar carries it to everything that it starts.

    UP       its callbacks run
    PAUSED   SIGSTOP, a long collection, a blocked loop: its callbacks are parked until it continues
    DEAD     kill -9: its callbacks are dropped, no `finally` runs, its kernel answers RST
    OFF      power loss: the same, but nothing answers; RST only after a restart

What a dead process held is kept until the run is over: a coroutine that lost its last reference would run its
`finally`. `network.Host` adds addresses, connections and the calls that pause, kill and restart.
"""

from __future__ import annotations

import asyncio
import contextvars
import enum
from typing import Any, Final


class ProcessState(enum.Enum):
    """What becomes of the callbacks of a process."""

    UP = "up"
    PAUSED = "paused"
    DEAD = "dead"
    OFF = "off"


UP: Final = ProcessState.UP


class Process:
    """One incarnation of a process; `addresses` are the IPs of its host."""

    def __init__(self, name: str, addresses: tuple[str, ...]) -> None:
        self.name: str = name
        self.addresses: tuple[str, ...] = addresses
        self.state: ProcessState = ProcessState.UP
        self.signal_handlers: dict[int, Any] = {}  # what signal.signal() has set in it, by number
        self._pauses = 0
        self._parked: list[asyncio.Handle] = []
        self._kept: list[object] = []  # what a dead process held

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} {self.state.value}>"

    @property
    def alive(self) -> bool:
        """Whether it is up or paused."""
        return self.state in (ProcessState.UP, ProcessState.PAUSED)

    def defer(self, handle: asyncio.Handle) -> None:
        """Park a callback of a process that is paused; keep that of a dead one, and never run it."""
        (self._parked if self.state is ProcessState.PAUSED else self._kept).append(handle)

    def resume_if_due(self) -> bool:
        """Be up again unless it was paused or ended meanwhile; return whether it is. `take_parked` follows."""
        if self.state is not ProcessState.PAUSED or self._pauses:
            return False
        self.state = ProcessState.UP
        return True

    def take_parked(self) -> list[asyncio.Handle]:
        """Return the callbacks that were parked, in their order."""
        parked, self._parked = self._parked, []
        return parked

    def take_kept(self) -> list[object]:
        """Return what it held when it died; the run is over."""
        kept, self._kept = self._kept, []
        return kept


CURRENT_PROCESS: Final[contextvars.ContextVar[Process | None]] = contextvars.ContextVar("host", default=None)
KERNEL: Final = contextvars.Context()  # of no process: it runs whatever happens to hosts
OUTSIDE: Final = "world"  # the name of what runs on no host: the test itself


def process_name(process: Process | None) -> str:
    """Return the name of a process, or of what runs in none."""
    return OUTSIDE if process is None else process.name


def state_of(process: Process | None) -> ProcessState:
    """Return the state of a process; what runs in none is always up."""
    return UP if process is None else process.state


def current_name() -> str:
    """Return the name of the process whose code runs."""
    return process_name(CURRENT_PROCESS.get())
