"""Hosts: one Host is one incarnation of a process, carried in a ContextVar by everything that it starts.

    up       its callbacks run
    paused   SIGSTOP, a long collection, a blocked loop: its callbacks are parked until it goes on
    dead     kill -9: its callbacks are dropped, no `finally` runs, its kernel answers RST
    off      power loss: the same, but nothing answers; RST only after a restart

A restart is a new Host of the same name and addresses, so a timer of the old one can never fire in the new one. What
a dead host held is kept until the run is over: a coroutine that lost its last reference would run its `finally`.
"""

from __future__ import annotations

import asyncio
import contextvars
import enum
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.simulation.handles import SimHandle, SimTask
    from tests.simulation.loop import SimLoop


class State(enum.Enum):
    UP = "up"
    PAUSED = "paused"
    DEAD = "dead"
    OFF = "off"


UP: Final = State.UP
HOST: Final[contextvars.ContextVar[Host | None]] = contextvars.ContextVar("host", default=None)
KERNEL: Final = contextvars.Context()  # of no host: it runs whatever happens to hosts
EVERYWHERE: Final = "world"  # the name of what runs on no host: the test itself


def host_name(host: Host | None) -> str:
    """The name of a host, or of what runs on none."""
    return EVERYWHERE if host is None else host.name


def state_of(host: Host | None) -> State:
    """The state of a host; what runs on none is always up."""
    return UP if host is None else host.state


def current_name() -> str:
    """The name of the host whose code runs."""
    return host_name(HOST.get())


class Host:
    """See the module. Made by `World.host`; `addresses` are its IPs, the first is where its connections come from."""

    def __init__(self, loop: SimLoop, name: str, addresses: tuple[str, ...]) -> None:
        self.name, self.addresses = name, addresses
        self.state = State.UP
        self._loop = loop
        loop.hosts.append(self)
        self._pauses = 0
        self._parked: list[SimHandle] = []
        self._kept: list[object] = []  # what a dead host held

    def __repr__(self) -> str:
        return f"<Host {self.name} {self.state.value}>"

    # --- running something on it

    def context(self) -> contextvars.Context:
        """A context in which code runs on this host."""
        context = contextvars.copy_context()
        context.run(HOST.set, self)
        return context

    def start(self, coro: Coroutine[Any, Any, Any], name: str | None = None) -> SimTask:
        """Run a coroutine on this host. Its task is never done if the host dies."""
        return self._loop.create_task(coro, name=name, context=self.context())

    def call(self, function: Callable[..., object], *args: object) -> SimHandle:
        """Run a function on this host, soon."""
        return self._loop.call_soon(function, *args, context=self.context())

    # --- faults

    def pause(self) -> None:
        """Stop running its callbacks; the kernel goes on. Each `pause` wants a `resume`."""
        if self.alive:
            self._pauses += 1
            self.state = State.PAUSED
            self._loop.trace("host", self.name, "paused")

    def resume(self) -> None:
        """Take back one `pause`; with the last one everything parked runs, in its order."""
        if self._pauses:
            self._pauses -= 1
            if not self._pauses and self.alive:
                self._loop.resumed.append(self)

    def block(self, seconds: float) -> None:
        """Let nothing of this host run for a while, as a blocked loop or a long collection does."""
        if self.alive:
            self.pause()
            self._loop.call_later(seconds, self.resume, context=KERNEL)

    def kill(self) -> None:
        """kill -9: nothing of it runs any more, its connections are reset, its ports refuse."""
        self._end(State.DEAD)

    def power_off(self) -> None:
        """Pull the plug: as `kill`, but peers hear nothing; they are reset when they send after a restart."""
        self._end(State.OFF)

    def restart(self) -> Host:
        """A new incarnation with the same name and addresses; kills this one if need be."""
        if self.state is not State.OFF:
            self.kill()
        self.state = State.DEAD
        host = Host(self._loop, self.name, self.addresses)
        self._loop.network.attach(host)
        self._loop.trace("host", self.name, "restarted")
        return host

    def leftovers(self) -> list[str]:
        """What this incarnation still has: tasks, timers, connections; empty after a clean end.

        What still goes to and from a connection that it has closed is the network's.
        """
        tasks = [f"task {task.get_name()}" for task in asyncio.all_tasks(self._loop) if task.host is self]
        timers = [timer for timer in self._loop.timers if self._has_set(timer)]
        return sorted([*tasks, *map(repr, timers), *map(repr, self._loop.network.ends_of(self))])

    def _has_set(self, timer: SimHandle) -> bool:
        owner = getattr(timer._callback, "__self__", None)
        return timer._context.get(HOST) is self and not getattr(owner, "of_the_network", False)

    @property
    def alive(self) -> bool:
        """Whether it is up or paused."""
        return self.state in (State.UP, State.PAUSED)

    def _end(self, state: State) -> None:
        if not self.alive:
            return
        self._loop.trace("host", self.name, state.value)
        self.state = state
        self._kept += [task for task in asyncio.all_tasks(self._loop) if task.host is self]
        self._kept += self._parked
        self._parked = []
        self._loop.network.host_ended(self)

    # --- what the loop asks

    def put_aside(self, handle: SimHandle) -> None:
        """A callback of a host that is not up: parked, or dropped for good."""
        (self._parked if self.state is State.PAUSED else self._kept).append(handle)

    def go_on(self) -> list[SimHandle]:
        """Be up again; what was parked, in its order."""
        if self.state is not State.PAUSED or self._pauses:
            return []
        self.state = State.UP
        self._loop.trace("host", self.name, "resumed")
        parked, self._parked = self._parked, []
        return parked

    def bury(self) -> list[object]:
        """What it held when it died; the run is over."""
        kept, self._kept = self._kept, []
        return kept
