"""The tasks of one consumer. A flow that fails ends nothing else; the next poll raises its error and starts it anew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from kclient.change_signal import ChangeSignal
from kclient.errors import InternalError, KclientError
from kclient.log import get_logger

log = get_logger("kclient.consumer")

Flow = Callable[[], Coroutine[Any, Any, None]]


class Flows:
    """Named tasks that run until `stop`, and short ones that end by themselves."""

    def __init__(self, failed: ChangeSignal) -> None:
        self._failed = failed
        self._flows: dict[str, Flow] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._errands: dict[asyncio.Task[None], None] = {}
        self._errors: dict[str, BaseException] = {}

    def start(self, name: str, flow: Flow) -> None:
        """Run a flow under this name."""
        self._flows[name] = flow
        task = self._tasks[name] = asyncio.create_task(flow(), name=f"kclient {name}")
        task.add_done_callback(lambda ended: self._flow_ended(name, ended))

    def errand(self, name: str, errand: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something short beside the flows; its error too is raised by the next poll."""
        task = asyncio.create_task(errand, name=f"kclient {name}")
        self._errands[task] = None
        task.add_done_callback(lambda ended: self._errand_ended(name, ended))
        return task

    def take_error(self) -> KclientError | None:
        """The error of a flow that failed; the flow starts anew."""
        if not self._errors:
            return None
        name = next(iter(self._errors))
        error = self._errors.pop(name)
        if name in self._flows:
            self.start(name, self._flows[name])
        if isinstance(error, KclientError):
            return error
        internal = InternalError(
            f"The {name} of this consumer ended with {type(error).__name__}: {error}. That is a bug of kclient. "
            "Please report it with the traceback; poll again to go on."
        )
        internal.__cause__ = error
        return internal

    async def stop(self, *names: str) -> None:
        """End these flows, or everything, and wait until it has ended."""
        if ending := self.end(*names):
            await asyncio.wait(ending)

    def end(self, *names: str) -> set[asyncio.Task[None]]:
        """End these flows, or everything: from now on they are no flows any more. The tasks to wait for."""
        ending = {self._tasks.pop(name) for name in names or tuple(self._tasks) if name in self._tasks}
        for name in names or tuple(self._flows):
            self._flows.pop(name, None)
            self._errors.pop(name, None)
        if not names:
            ending |= self._errands.keys()
        for task in ending:
            task.cancel()
        return ending

    def _flow_ended(self, name: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(name) is not task:
            return  # stopped on purpose
        del self._tasks[name]
        self._keep(name, task)

    def _errand_ended(self, name: str, task: asyncio.Task[None]) -> None:
        self._errands.pop(task, None)
        self._keep(name, task)

    def _keep(self, name: str, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None:
            return
        log.debug("the %s failed: %s", name, error)
        self._errors.setdefault(name, error)
        self._failed.notify()
