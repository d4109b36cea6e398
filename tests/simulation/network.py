"""The network between hosts: names, addresses, listening ports, connections, and what can go wrong with each.

Faults are named by host, so they outlive a restart. `cut` is one way; `part` cuts both. A cut loses nothing: senders
repeat until it heals or their patience ends. Test code on no host is the host "world" at 127.0.0.1 of its own.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

from tests.simulation.end import End
from tests.simulation.ends import LOOPBACK, Connection, join
from tests.simulation.hosts import HOST, Host, State, host_name
from tests.simulation.opening import Opening, ServerOpening
from tests.simulation.server import SimServer
from tests.simulation.wire import Wire

FIRST_PORT: Final = 40_000
LOOKUP_TEXTS: Final = {
    socket.EAI_NONAME: "Name or service not known",
    socket.EAI_AGAIN: "Temporary failure in name resolution",
}


class Network:
    """See the module."""

    def __init__(self, loop: Any, seed: object = 0) -> None:
        self.loop = loop
        self.rng = Random(f"{seed}:network")
        self.default = Wire()
        self.local = Wire(latency=5e-5, jitter=0.0)
        self.wires: dict[tuple[str, str], Wire] = {}
        self.hosts: dict[str, Host] = {}  # by address
        self.by_name: dict[str, Host] = {}  # the latest incarnation of each
        self.names: dict[str, list[str]] = {"localhost": [LOOPBACK]}
        self.lookup_seconds = 0.002
        self.lookup_errors: dict[str, int] = {}  # name → EAI code
        self.cuts: set[tuple[str, str]] = set()
        self.refusing: set[str] = set()  # hosts whose ports answer RST
        self.swallowing: set[str] = set()  # hosts that never answer a SYN
        self.syn_seconds = 127.0
        self.connections: dict[int, Connection] = {}
        self.listeners: dict[tuple[str, int], SimServer] = {}
        self._ports: dict[str, int] = {}
        self._numbers = 0
        loop.network = self

    # --- hosts and names

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
            end.host_ended(silently=host.state is State.OFF)
        self.refresh()

    def at(self, address: str) -> Host | None:
        """The host that has this address for the host that runs. Raises LookupError when there is none."""
        return HOST.get() if address == LOOPBACK else self.hosts[address]

    def next_port(self, name: str) -> int:
        """A port that a host has not used."""
        self._ports[name] = self._ports.get(name, FIRST_PORT - 1) + 1
        return self._ports[name]

    async def getaddrinfo(self, host: Any, port: Any) -> list[Any]:
        """The addresses of a name, in the order of the table. Raises gaierror."""
        name = host.decode() if isinstance(host, bytes) else str(host or LOOPBACK)
        if not _is_address(name):
            await asyncio.sleep(self.lookup_seconds * (0.5 + self.rng.random()))
        code = self.lookup_errors.get(
            name, 0 if name in self.names or _is_address(name) else socket.EAI_NONAME
        )
        if code:
            raise socket.gaierror(code, LOOKUP_TEXTS.get(code, "Non-recoverable failure in name resolution"))
        found = self.names.get(name, [name])
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, int(port or 0))) for ip in found]

    async def getnameinfo(self, sockaddr: tuple[Any, ...]) -> tuple[str, str]:
        """The name of an address; without one, the address."""
        await asyncio.sleep(self.lookup_seconds * (0.5 + self.rng.random()))
        ip, port = str(sockaddr[0]), str(sockaddr[1])
        return next((name for name, ips in self.names.items() if ip in ips), ip), port

    # --- connections

    async def create_connection(self, factory: Callable[[], Any], *args: Any, **options: Any) -> Any:
        return await Opening(self, factory).open(*args, **options)

    async def create_server(self, factory: Callable[[], Any], *args: Any, **options: Any) -> SimServer:
        return await ServerOpening(self, factory).open(*args, **options)

    def join(self, ip: str, server: SimServer) -> Connection:
        """Make a connection from the host that runs to a listening port."""
        self._numbers += 1
        connection = self.connections[self._numbers] = join(self, self._numbers, ip, server)
        self.loop.trace("connect", f"#{self._numbers}", *connection.names(), server.port)
        connection.refresh(self)
        return connection

    def closed(self, end: End) -> None:
        """One end is gone; with the other the connection is forgotten."""
        connection = self.connections[end.number]
        self.loop.trace("closed", f"#{end.number}", host_name(end.host))
        if connection.client.gone and connection.server.gone:
            del self.connections[end.number]

    def ends_of(self, host: Host) -> list[End]:
        """The ends of connections that a host has."""
        ends = [end for way in self.connections.values() for end in (way.client, way.server)]
        return [end for end in ends if end.host is host and not end.gone]

    def between(self, one: str, other: str | None = None) -> Iterator[Connection]:
        """The connections of a host, or those between two, oldest first."""
        for connection in list(self.connections.values()):
            names = connection.names()
            if one in names and (other is None or other in names):
                yield connection

    # --- faults of the way

    def wire(self, source: str, target: str) -> Wire:
        """The settings of one direction; to change one alone, put a Wire into `wires` before connections are made."""
        return self.wires.get((source, target), self.local if source == target else self.default)

    def cut(self, source: str, target: str) -> None:
        """Let nothing pass from a host to another (F-11)."""
        self._set_cuts({(source, target)}, set())

    def part(self, one: str, other: str) -> None:
        """Let nothing pass between two hosts (F-10)."""
        self._set_cuts({(one, other), (other, one)}, set())

    def heal(self, one: str, other: str) -> None:
        """Let everything pass between two hosts."""
        self._set_cuts(set(), {(one, other), (other, one)})

    def heal_all(self) -> None:
        """End every partition, black hole, refusal and failure of names."""
        self.refusing.clear()
        self.swallowing.clear()
        self.lookup_errors.clear()
        self._set_cuts(set(), set(self.cuts))

    def passes(self, source: str, target: str) -> bool:
        """Whether a packet gets from a host to another."""
        return (source, target) not in self.cuts

    def refresh(self) -> None:
        """Notify every connection of what passes now."""
        for connection in list(self.connections.values()):
            connection.refresh(self)

    def _set_cuts(self, new: set[tuple[str, str]], healed: set[tuple[str, str]]) -> None:
        self.cuts = (self.cuts | new) - healed
        self.loop.trace("cuts", *sorted(self.cuts))
        self.refresh()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
