"""The errors of a run that cannot go on, with what every task waits for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import attrs

FRAMES: Final = ("cr_frame", "gi_frame", "ag_frame")


class SimulationStuckError(Exception):
    """A run that cannot go on. `tasks`: one line for each task that is not done."""

    def __init__(self, text: str, tasks: list[str]) -> None:
        super().__init__("\n  ".join([text, *tasks]))
        self.tasks = tasks


class SimulationDeadlockError(SimulationStuckError):
    """No callback is ready and no timer is set: a wakeup was lost."""


class SimulationTimeoutError(SimulationStuckError):
    """The limit of virtual time has passed."""


class SimulationLivelockError(SimulationStuckError):
    """Too many callbacks in one virtual second: something spins."""


@attrs.define
class RunLimits:
    """How long a run may take, and how much may happen in one second of it; both virtual."""

    seconds: float
    callbacks_a_second: int
    _second_began: float = 0.0
    _callbacks_then: int = 0

    def check(self, loop: asyncio.AbstractEventLoop, callbacks: int) -> None:
        """Raise SimulationTimeoutError or SimulationLivelockError if a limit has passed, after so many callbacks."""
        now = loop.time()
        if now > self.seconds:
            raise SimulationTimeoutError(f"not done within {self.seconds} virtual s", waiting_tasks(loop))
        if now - self._second_began >= 1.0:
            self._second_began, self._callbacks_then = now, callbacks
        elif callbacks - self._callbacks_then > self.callbacks_a_second:
            since = f"in the second from {self._second_began:.6f} s"
            raise SimulationLivelockError(
                f"more than {self.callbacks_a_second} callbacks {since}", waiting_tasks(loop)
            )


def callback_name(callback: object) -> str:
    """Return a name without an address in memory, which would differ from run to run."""
    return str(getattr(callback, "__qualname__", type(callback).__name__))


def waiting_tasks(loop: asyncio.AbstractEventLoop) -> list[str]:
    """Return a line for each task that is not done: name, host, its chain of awaits, what the innermost waits for."""
    tasks: list[Any] = sorted(asyncio.all_tasks(loop), key=lambda task: task.number)
    return [
        f"{task.get_name()} on {_host(task)}: {' > '.join([*_awaits(task), _innermost(task)])}"
        for task in tasks
    ]


def _host(task: Any) -> str:
    return "no host" if task.host is None else f"{task.host.name} ({task.host.state.value})"


def _awaits(task: Any) -> list[str]:
    links, awaited = [], task.get_coro()
    while awaited is not None:
        frame = next((found for name in FRAMES if (found := getattr(awaited, name, None))), None)
        if frame is not None:
            code = frame.f_code
            links.append(f"{code.co_qualname} ({Path(code.co_filename).name}:{frame.f_lineno})")
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    return links


def _innermost(task: Any) -> str:
    waited = task._fut_waiter
    if waited is None:
        return "about to run"
    if isinstance(waited, asyncio.Task):
        return f"task {waited.get_name()}"
    return f"{type(waited).__name__} {getattr(waited, 'number', '')}".rstrip()


def first_line(problem: BaseException) -> str:
    """Return what it is and the first line of what it says; what follows in these are the tasks that wait."""
    return f"{type(problem).__name__}: {problem}".partition("\n")[0]
