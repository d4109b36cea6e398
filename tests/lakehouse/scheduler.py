"""Threads of blocking code on one virtual clock: one runs at a time, and the seed decides which.

    task        pause(seconds)           another one runs; this one goes on when its time has come
    anything    at(time, function)       an event that is no task
                kill(task)               it never gets further than its next pause, as after SIGKILL
                freeze(task, until)      it stands still, as after SIGSTOP, and goes on without knowing

Only `pause` gives the turn to another task, so between two pauses a task has the world for itself. What is ready at the
same time runs in an order that is drawn.
"""

from __future__ import annotations

import heapq
import random
import threading
from collections.abc import Callable
from typing import Final

import attrs

from kclient.runtime import Runtime

STACK_BYTES: Final = 1 << 20
STUCK_SECONDS: Final = 60.0
"""Real time: a task that blocks otherwise than by `pause` is a mistake of the simulation."""


class Killed(BaseException):
    """Ends the thread of a task that was killed. Code of the task cannot tell anybody about it."""


@attrs.define(eq=False)
class Task:
    """A thread that runs when it is given the turn."""

    name: str
    frozen_until: float = 0.0
    killed: bool = False
    over: bool = False
    began: float = 0.0
    ended: float = 0.0
    dies_in: int | None = None
    """After so many more pauses it is killed."""
    failure: BaseException | None = None
    """What has ended it, None if it returned or was killed."""
    turn: threading.Semaphore = attrs.field(factory=lambda: threading.Semaphore(0))


class Scheduler:
    """See the module."""

    def __init__(self, rng: random.Random) -> None:
        self.now = 0.0
        self._rng = rng
        self._due: list[tuple[float, float, int, Task | Callable[[], None]]] = []
        self._count = 0
        self._turn = threading.Semaphore(0)
        self.running: Task | None = None
        """The task that has the turn."""
        self.tasks: list[Task] = []

    def spawn(self, name: str, function: Callable[[], None]) -> Task:
        """Start a task."""
        task = Task(name, began=self.now)
        self.tasks.append(task)
        before = threading.stack_size(STACK_BYTES)
        threading.Thread(target=self._run, args=(task, function), name=name, daemon=True).start()
        threading.stack_size(before)
        self._push(self.now, task)
        return task

    def at(self, time: float, function: Callable[[], None]) -> None:
        """Call a function at a time."""
        self._push(max(time, self.now), function)

    def pause(self, seconds: float) -> None:
        """Let others run, and go on after this time."""
        task = self.running
        if task is None:
            raise RuntimeError("only a task can pause")
        if task.dies_in is not None:
            task.dies_in -= 1
            task.killed = task.killed or task.dies_in < 0
        if task.killed:
            raise Killed
        self._push(self.now + max(0.0, seconds), task)
        self._turn.release()
        task.turn.acquire()
        if task.killed:
            raise Killed

    def kill(self, task: Task) -> None:
        """End a task where it is."""
        if not task.over and not task.killed:
            task.killed, task.frozen_until = True, 0.0
            self._push(self.now, task)

    def die(self) -> None:
        """Kill the task that runs, at once."""
        if self.running is not None:
            self.running.killed = True
        raise Killed

    def freeze(self, task: Task, until: float) -> None:
        """Let a task stand still until a time."""
        task.frozen_until = max(task.frozen_until, until)

    def run(self, until: float) -> None:
        """Run until a time. The clock stands there afterwards."""
        while self._due and self._due[0][0] <= until:
            time, _, _, what = heapq.heappop(self._due)
            self.now = max(self.now, time)
            if callable(what):
                what()
            elif what.frozen_until > self.now:
                self._push(what.frozen_until, what)
            elif not what.over:
                self._resume(what)
        self.now = max(self.now, until)

    def close(self) -> None:
        """Kill every task that is left, so that no thread is."""
        for task in self.tasks:
            self.kill(task)
        self.run(self.now)

    def _resume(self, task: Task) -> None:
        self.running = task
        task.turn.release()
        if not self._turn.acquire(timeout=STUCK_SECONDS):
            raise RuntimeError(f"{task.name} blocks and does not pause")
        self.running = None

    def _run(self, task: Task, function: Callable[[], None]) -> None:
        task.turn.acquire()
        try:
            if not task.killed:
                function()
        except Killed:
            pass
        except BaseException as exc:  # noqa: BLE001 whoever has spawned it looks at it
            task.failure = exc
        finally:
            task.over, task.ended = True, self.now
            self._turn.release()

    def _push(self, time: float, what: Task | Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._due, (time, self._rng.random(), self._count, what))


@attrs.define
class SimulatedRuntime(Runtime):
    """A runtime whose pauses and clock are those of a scheduler."""

    scheduler: Scheduler = attrs.field(kw_only=True)

    def pause(self, seconds: float) -> None:
        self.scheduler.pause(seconds)

    def now(self) -> float:
        return self.scheduler.now

    @classmethod
    def of(cls, scheduler: Scheduler, rng: random.Random) -> SimulatedRuntime:
        """Return the runtime of one process."""
        return cls(rng=rng, wall_clock=lambda: EPOCH + scheduler.now, scheduler=scheduler)


EPOCH: Final = 1_700_000_000.0
