"""SimulatedMember: a process of the user's, on a host of its own, as a supervisor such as systemd runs it.

    the function returns                     its other tasks are cancelled, then the process ends
    it raises one of `restart_on`            the process ends, and is started again after a second
    it raises anything else                  the run ends with that exception
    kill()                                   nothing of it runs any more, no `finally`; its connections are reset
    terminate()                              SIGTERM: the handler that the process has set, else as kill()
    pause()                                  SIGSTOP: nothing of it runs, its connections stay, until resume()

Each start calls the function again, so what it holds in local variables is gone, as the memory of a process is. What
the test holds outside stays: a stand-in for a database.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import signal
from collections.abc import Awaitable, Callable
from typing import Any, Final

from kclient.errors import (
    ArgumentError,
    BrokerError,
    CommitFailedError,
    ConnectError,
    DeadlineError,
    KclientError,
    OffsetError,
)
from kclient.simulation.network import Host
from kclient.simulation.process import CURRENT_PROCESS
from kclient.simulation.schedule import SimTask
from kclient.simulation.world import World

RESTART_SECONDS: Final = 1.0
# What a cluster in trouble does to a consumer. Wrong use and a handler that fails are what a test is there to show.
CLUSTER_ERRORS: Final[tuple[type[KclientError], ...]] = (
    BrokerError,
    CommitFailedError,
    ConnectError,
    DeadlineError,
    OffsetError,
)

Function = Callable[..., Awaitable[object]]


class SimulatedMember:
    """See the module. Made by `Simulation.start`; `failures` are the exceptions that ended its processes, with times.

    `starts` counts them; `exited` says whether the last one ended because its function returned.
    """

    def __init__(
        self,
        world: World,
        name: str,
        function: Function,
        args: tuple[object, ...],
        restart_on: tuple[type[Exception], ...],
        fail: Callable[[BaseException], None],
    ) -> None:
        self.name: str = name
        self.starts: int = 0
        self.exited: bool = False
        self.failures: list[tuple[float, Exception]] = []
        self._world, self._function, self._args = world, function, args
        self._restart_on, self._fail = restart_on, fail
        self._host: Host = self._start()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name} {self._host.state.value}>"

    # --- what a test asks and does

    @property
    def running(self) -> bool:
        """Whether its process is there, even if it is paused."""
        return self._host.alive

    def kill(self) -> None:
        """End the process as SIGKILL does. `restart` starts it again."""
        self._host.kill()

    def restart(self) -> None:
        """Start the process again; one that is there is killed first."""
        self._host = self._start()

    def pause(self) -> None:
        """Stop the process until `resume`, as SIGSTOP, a long collection or the move of a virtual machine does."""
        self._host.pause()

    def resume(self) -> None:
        """Take back one `pause`; with the last one the process goes on."""
        self._host.resume()

    def terminate(self) -> None:
        """Send SIGTERM: call the handler that the process has set for it, or kill the process if it has none."""
        handler = self._host.signal_handlers.get(signal.SIGTERM, signal.SIG_DFL)
        if callable(handler):
            self._host.call(handler, signal.SIGTERM, None)
        elif handler is not signal.SIG_IGN:
            self.kill()

    # --- its processes

    def _start(self) -> Host:
        self.starts += 1
        self.exited = False
        host = self._world.host(self.name)
        task = host.start(self._main(), name=f"{self.name}, start {self.starts}")
        task.add_done_callback(lambda done: self._ended(host, done), context=contextvars.Context())
        return host

    async def _main(self) -> None:
        """Run the function as `asyncio.run` does: when it has ended, all other tasks of the process are cancelled."""
        running = self._function(*self._args)
        if not inspect.isawaitable(running):
            raise ArgumentError(
                f"{self.name} runs {self._function!r}, which returned {type(running).__name__}. Give a coroutine "
                "function (async def): the processes of a simulation share one event loop."
            )
        try:
            await running
        except Exception:
            await _cancel_other_tasks()
            raise
        await _cancel_other_tasks()

    def _ended(self, host: Host, task: asyncio.Future[Any]) -> None:
        """The function returned or raised; a process that was killed never comes here."""
        host.kill()
        if task.cancelled() or (problem := task.exception()) is None:
            self.exited = True
        elif isinstance(problem, self._restart_on):
            self.failures.append((self._world.loop.time(), problem))
            context = contextvars.Context()
            self._world.loop.call_later(RESTART_SECONDS, self._restart_after, host, context=context)
        else:
            problem.add_note(f"raised by {self.name} at {self._world.loop.time():.3f} virtual s")
            self._fail(problem)

    def _restart_after(self, host: Host) -> None:
        if self._host is host:  # not started by a fault's end meanwhile
            self.restart()


async def _cancel_other_tasks() -> None:
    """Cancel the other tasks of this process, and wait until they have ended."""
    process, this = CURRENT_PROCESS.get(), asyncio.current_task()
    tasks = [task for task in asyncio.all_tasks() if isinstance(task, SimTask) and task.host is process]
    others = sorted((task for task in tasks if task is not this), key=lambda task: task.number)
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
