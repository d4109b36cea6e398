"""Hosts, their names and addresses, the connections between them, and what can go wrong with each.

Faults are named by host, so they outlive a restart. `cut` is one way; `cut_both` cuts both. A cut loses nothing:
senders repeat until it heals or they time out. Test code on no host is the host "world" at 127.0.0.1 of its own.
"""

from __future__ import annotations

import asyncio
import contextvars
import ipaddress
from collections.abc import Callable, Coroutine, Iterator
from random import Random
from typing import Any, Final

import attrs

from kclient.simulation.loop import SimLoop
from kclient.simulation.pipe import Pipe, Wire
from kclient.simulation.process import (
    CURRENT_PROCESS,
    KERNEL,
    Process,
    ProcessState,
    process_name,
    state_of,
)
from kclient.simulation.schedule import SimHandle, SimTask
from kclient.simulation.server import ListenerKey, SimServer
from kclient.simulation.transport import SimTransport

FIRST_PORT: Final = 40_000
LOOPBACK: Final = "127.0.0.1"


@attrs.frozen
class SimConnection:
    """Both ends and both directions of a connection, for faults."""

    number: int
    client: SimTransport
    server: SimTransport

    @property
    def forward(self) -> Pipe:
        """From client to server."""
        return self.client.out

    @property
    def backward(self) -> Pipe:
        """From server to client."""
        return self.server.out

    def names(self) -> tuple[str, str]:
        """Return the names of the two hosts, the client's first."""
        return process_name(self.client.host), process_name(self.server.host)

    def reset(self) -> None:
        """End it from somewhere on the way: both ends see RST."""
        self.forward.reset()
        self.backward.reset()

    def refresh(self, network: Network) -> None:
        """Apply the cuts of the network."""
        client, server = self.names()
        off = ProcessState.OFF in (state_of(self.client.host), state_of(self.server.host))
        self.forward.set_cut(off or not network.passes(client, server))
        self.backward.set_cut(off or not network.passes(server, client))


class Network:
    """See the module."""

    def __init__(self, loop: SimLoop, seed: object = 0) -> None:
        self.loop: SimLoop = loop
        self.rng: Random = Random(f"{seed}:network")
        self.default: Wire = Wire()
        self.local: Wire = Wire(latency=5e-5, jitter=0.0)
        self.wires: dict[tuple[str, str], Wire] = {}
        self.hosts: dict[str, Host] = {}  # by address
        self.by_name: dict[str, Host] = {}  # the latest incarnation of each
        self.names: dict[str, list[str]] = {"localhost": [LOOPBACK]}
        self.lookup_seconds: float = 0.002
        self.lookup_errors: dict[str, int] = {}  # name → EAI code
        self.cuts: set[tuple[str, str]] = set()
        self.refusing: set[str] = set()  # hosts whose ports answer RST
        self.swallowing: set[str] = set()  # hosts that never answer a SYN
        self.syn_seconds: float = 127.0
        self.connections: dict[int, SimConnection] = {}
        self.listeners: dict[ListenerKey, SimServer] = {}
        self._ports: dict[str, int] = {}
        self._numbers = 0

    # --- hosts

    def attach(self, host: Host) -> None:
        """Give a host its addresses and its name."""
        for address in host.addresses:
            self.hosts[address] = host
        self.by_name[host.name] = host
        self.names.setdefault(host.name, list(host.addresses))
        self.refresh()

    def host_ended(self, host: Host) -> None:
        """A host died or lost power: its ports close; its connections are reset, or go silent."""
        for key in [key for key, server in self.listeners.items() if server.host is host]:
            del self.listeners[key]
        for end in self.ends_of(host):
            end.host_ended(silently=host.state is ProcessState.OFF)
        self.refresh()

    def at(self, address: str) -> Process | None:
        """Return the host that has this address for the host that runs. Raise LookupError when there is none."""
        return CURRENT_PROCESS.get() if address == LOOPBACK else self.hosts[address]

    def next_port(self, name: str) -> int:
        """Return a port that a host has not used."""
        self._ports[name] = self._ports.get(name, FIRST_PORT - 1) + 1
        return self._ports[name]

    # --- connections

    def join(self, ip: str, server: SimServer) -> SimConnection:
        """Make a connection from the host that runs to a listening port at `ip`; the server learns of it soon."""
        self._numbers += 1
        here, there = CURRENT_PROCESS.get(), server.context.copy()
        names = process_name(here), process_name(server.host)
        own = LOOPBACK if ip == LOOPBACK or here is None else here.addresses[0]
        near, far = (own, self.next_port(names[0])), (ip, server.port)
        here_context, extra = contextvars.copy_context(), {"sockname": near, "peername": far}
        client = SimTransport(self, self._numbers, here, here_context, extra)
        end = SimTransport(self, self._numbers, server.host, there, {"sockname": far, "peername": near})
        forward = Pipe(self.loop, self.rng, self.wire(*names), client, end)
        backward = Pipe(self.loop, self.rng, self.wire(*reversed(names)), end, client)
        forward.back, backward.back = backward, forward
        client.attach(forward, backward)
        end.attach(backward, forward)
        self.loop.call_soon(server.accept, end, context=there)
        connection = self.connections[self._numbers] = SimConnection(self._numbers, client, end)
        self.loop.trace("connect", f"#{self._numbers}", *connection.names(), server.port)
        connection.refresh(self)
        return connection

    def closed(self, end: SimTransport) -> None:
        """One end is gone; with the other the connection is forgotten."""
        connection = self.connections[end.number]
        self.loop.trace("closed", f"#{end.number}", process_name(end.host))
        if connection.client.gone and connection.server.gone:
            del self.connections[end.number]

    def ends_of(self, host: Process) -> list[SimTransport]:
        """Return the ends of connections that a host has."""
        ends = [end for way in self.connections.values() for end in (way.client, way.server)]
        return [end for end in ends if end.host is host and not end.gone]

    def between(self, one: str, other: str | None = None) -> Iterator[SimConnection]:
        """Iterate over the connections of a host, or those between two, oldest first."""
        for connection in list(self.connections.values()):
            names = connection.names()
            if one in names and (other is None or other in names):
                yield connection

    # --- faults of the way

    def wire(self, source: str, target: str) -> Wire:
        """Return the settings of one direction; put a Wire into `wires` first to change one connection's alone."""
        return self.wires.get((source, target), self.local if source == target else self.default)

    def cut(self, source: str, target: str) -> None:
        """Let nothing pass from a host to another."""
        self._set_cuts({(source, target)}, set())

    def cut_both(self, one: str, other: str) -> None:
        """Let nothing pass between two hosts."""
        self._set_cuts({(one, other), (other, one)}, set())

    def heal(self, one: str, other: str) -> None:
        """Let everything pass between two hosts."""
        self._set_cuts(set(), {(one, other), (other, one)})

    def heal_all(self) -> None:
        """End every cut, black hole, refusal and failure of names."""
        self.refusing.clear()
        self.swallowing.clear()
        self.lookup_errors.clear()
        self._set_cuts(set(), set(self.cuts))

    def passes(self, source: str, target: str) -> bool:
        """Return whether a packet gets from a host to another."""
        return (source, target) not in self.cuts

    def refresh(self) -> None:
        """Apply the cuts to every connection."""
        for connection in list(self.connections.values()):
            connection.refresh(self)

    def _set_cuts(self, new: set[tuple[str, str]], healed: set[tuple[str, str]]) -> None:
        self.cuts = (self.cuts | new) - healed
        self.loop.trace("cuts", *sorted(self.cuts))
        self.refresh()


class Host(Process):
    """A process with addresses on a network. Made by `World.host`; connections come from the first address."""

    state: ProcessState

    def __init__(self, network: Network, name: str, addresses: tuple[str, ...]) -> None:
        super().__init__(name, addresses)
        self._network, self._loop = network, network.loop
        self._loop.processes.append(self)

    # --- running something on it

    def context(self) -> contextvars.Context:
        """Return a context in which code runs on this host."""
        context = contextvars.copy_context()
        context.run(CURRENT_PROCESS.set, self)
        return context

    def start(self, coro: Coroutine[Any, Any, Any], name: str | None = None) -> SimTask:
        """Run a coroutine on this host. Its task is never done if the host dies."""
        return self._loop.create_task(coro, name=name, context=self.context())

    def call(self, function: Callable[..., object], *args: object) -> SimHandle:
        """Run a function on this host, soon."""
        return self._loop.call_soon(function, *args, context=self.context())

    # --- faults

    def pause(self) -> None:
        """Stop running its callbacks; the kernel goes on. Each `pause` needs a `resume`."""
        if self.alive:
            self._pauses += 1
            self.state = ProcessState.PAUSED
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
        self._end(ProcessState.DEAD)

    def power_off(self) -> None:
        """Pull the plug: as `kill`, but peers learn nothing; they are reset when they send after a restart."""
        self._end(ProcessState.OFF)

    def restart(self) -> Host:
        """Return a new incarnation with the same name and addresses; kill this one first if it is alive."""
        if self.state is not ProcessState.OFF:
            self.kill()
        self.state = ProcessState.DEAD
        host = Host(self._network, self.name, self.addresses)
        self._network.attach(host)
        self._loop.trace("host", self.name, "restarted")
        return host

    def leftovers(self) -> list[str]:
        """Return what this incarnation still has: tasks, timers, connections; nothing after a clean end.

        What still goes to and from a connection that it has closed is the network's.
        """
        tasks = [f"task {task.get_name()}" for task in self._tasks()]
        timers = [timer for timer in self._loop.timers if self._has_set(timer)]
        return sorted([*tasks, *map(repr, timers), *map(repr, self._network.ends_of(self))])

    def _tasks(self) -> list[SimTask]:
        found = asyncio.all_tasks(self._loop)
        return [task for task in found if isinstance(task, SimTask) and task.host is self]

    def _has_set(self, timer: SimHandle) -> bool:
        owner = getattr(timer._callback, "__self__", None)
        return timer._context.get(CURRENT_PROCESS) is self and not getattr(owner, "of_the_network", False)

    def _end(self, state: ProcessState) -> None:
        if not self.alive:
            return
        self._loop.trace("host", self.name, state.value)
        self.state = state
        self._kept += self._tasks()
        self._kept += self.take_parked()
        self._network.host_ended(self)


def is_address(name: str) -> bool:
    """Return whether a name is an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
