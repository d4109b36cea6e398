"""Names, connections and ports as a program on a host sees them: the handshake of TCP, then TLS, and every failure.

A SYN is repeated after 1, 2, 4 … seconds until it is answered or `syn_seconds` are over; so a connection comes about
some time after a cut has healed. A paused host still answers: its kernel accepts.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from asyncio import sslproto
from collections.abc import Callable
from ssl import SSLContext, create_default_context
from typing import Any, Final, TypeAlias

import attrs

from kclient.simulation.network import LOOPBACK, Network, SimConnection, is_address
from kclient.simulation.process import CURRENT_PROCESS, ProcessState, current_name, process_name
from kclient.simulation.server import SimServer

Tls: TypeAlias = SSLContext | bool | None

LOOKUP_TEXTS: Final = {
    socket.EAI_NONAME: "Name or service not known",
    socket.EAI_AGAIN: "Temporary failure in name resolution",
}


@attrs.frozen
class Sockets:
    """What `SimLoop` asks for the host that runs."""

    network: Network

    # --- names

    async def getaddrinfo(self, host: Any, port: Any) -> list[Any]:
        """Return the addresses of a name, in the order of the table. Raise gaierror."""
        network = self.network
        name = host.decode() if isinstance(host, bytes) else str(host or LOOPBACK)
        if not is_address(name):
            await asyncio.sleep(network.lookup_seconds * (0.5 + network.rng.random()))
        code = network.lookup_errors.get(
            name, 0 if name in network.names or is_address(name) else socket.EAI_NONAME
        )
        if code:
            raise socket.gaierror(code, LOOKUP_TEXTS.get(code, "Non-recoverable failure in name resolution"))
        found = network.names.get(name, [name])
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, int(port or 0))) for ip in found]

    async def getnameinfo(self, sockaddr: tuple[Any, ...]) -> tuple[str, str]:
        """Return the name of an address; without one, the address."""
        network = self.network
        await asyncio.sleep(network.lookup_seconds * (0.5 + network.rng.random()))
        ip, port = str(sockaddr[0]), str(sockaddr[1])
        return next((name for name, ips in network.names.items() if ip in ips), ip), port

    # --- connections

    async def create_connection(
        self,
        factory: Callable[[], Any],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: Tls = None,
        server_hostname: str | None = None,
        ssl_handshake_timeout: float | None = None,
        ssl_shutdown_timeout: float | None = None,
        family: int = 0,
        proto: int = 0,
        flags: int = 0,
    ) -> tuple[asyncio.Transport, Any]:
        """Connect to the first address that answers, as `loop.create_connection`. Raise OSError, SSLError."""
        infos = await self.getaddrinfo(host, port)
        connection = await self._first_of([info[4] for info in infos])
        loop, app, end = self.network.loop, factory(), connection.client
        waiter: asyncio.Future[None] = loop.create_future()
        protocol = app
        if ssl:
            make: Any = sslproto.SSLProtocol  # typeshed asks for whole seconds
            protocol = make(
                loop,
                app,
                create_default_context() if isinstance(ssl, bool) else ssl,
                waiter,
                server_hostname=host if server_hostname is None else server_hostname,
                ssl_handshake_timeout=ssl_handshake_timeout,
                ssl_shutdown_timeout=ssl_shutdown_timeout,
            )
        end.set_protocol(protocol)
        loop.call_soon(end.connected, None if ssl else waiter, context=end.context)
        await _established(waiter, end)
        return (protocol._app_transport if ssl else end), app

    async def _first_of(self, addresses: list[tuple[str, int]]) -> SimConnection:
        problems: list[OSError] = []
        for ip, port in addresses:
            try:
                return await self._handshake(ip, port)
            except OSError as exc:
                problems.append(exc)
        if len(problems) == 1:
            raise problems[0]
        raise OSError(f"Multiple exceptions: {', '.join(map(str, problems))}")

    async def _handshake(self, ip: str, port: int) -> SimConnection:
        network, pause = self.network, 1.0
        deadline = network.loop.time() + network.syn_seconds
        while True:
            if self._reaches(ip):
                await asyncio.sleep(self._round_trip(ip))
            if self._reaches(ip):  # still: SYN-ACK and ACK pass as well
                server = self._listener(ip, port)
                if server is None:
                    raise ConnectionRefusedError(errno.ECONNREFUSED, f"Connect call failed ('{ip}', {port})")
                return network.join(ip, server)
            if network.loop.time() + pause > deadline:
                await asyncio.sleep(max(0.0, deadline - network.loop.time()))
                raise TimeoutError(errno.ETIMEDOUT, f"Connect call failed ('{ip}', {port})")
            await asyncio.sleep(pause)
            pause *= 2

    def _reaches(self, ip: str) -> bool:
        """Return whether a SYN gets there and the response back."""
        try:
            there = self.network.at(ip)
        except LookupError:
            return False
        if there is None or there is CURRENT_PROCESS.get():
            return True
        here = current_name()
        return (
            there.state is not ProcessState.OFF
            and there.name not in self.network.swallowing
            and self.network.passes(here, there.name)
            and self.network.passes(there.name, here)
        )

    def _round_trip(self, ip: str) -> float:
        there, here = self._name_at(ip), current_name()
        ways = self.network.wire(here, there), self.network.wire(there, here)
        return sum(wire.delay(self.network.rng) for wire in ways)

    def _listener(self, ip: str, port: int) -> SimServer | None:
        name = self._name_at(ip)
        return None if name in self.network.refusing else self.network.listeners.get((name, port))

    def _name_at(self, ip: str) -> str:
        return process_name(self.network.at(ip))

    # --- ports

    async def create_server(
        self,
        factory: Callable[[], Any],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: SSLContext | None = None,
        backlog: int = 100,
        ssl_handshake_timeout: float | None = None,
        ssl_shutdown_timeout: float | None = None,
        start_serving: bool = True,
        reuse_address: bool | None = None,
        reuse_port: bool | None = None,
    ) -> SimServer:
        """Listen on one address, as `loop.create_server`. Raise OSError if the port is in use or the address not ours.

        What runs on no host may listen at the address of any: to the network it is that host.
        """
        here, ip = CURRENT_PROCESS.get(), self._own_address(host)
        there = self.network.at(ip) if here is None else here
        address = (ip, port or self.network.next_port(process_name(there)))
        timeouts = {
            "ssl_handshake_timeout": ssl_handshake_timeout,
            "ssl_shutdown_timeout": ssl_shutdown_timeout,
        }
        network = self.network
        server = SimServer(network.loop, network.listeners, factory, address, there, ssl, timeouts)
        if start_serving:
            await server.start_serving()
        return server

    def _own_address(self, host: str | None) -> str:
        here = CURRENT_PROCESS.get()
        own = tuple(self.network.hosts) if here is None else here.addresses
        if not host or host in ("0.0.0.0", "::"):  # noqa: S104 – the comparison binds nothing
            return LOOPBACK if here is None else own[0]
        for ip in self.network.names.get(host, [host]):  # of its own: no resolver is asked
            if ip in (*own, LOOPBACK):
                return ip
        raise OSError(errno.EADDRNOTAVAIL, f"could not bind on any address out of [{host!r}]")


async def _established(waiter: asyncio.Future[None], end: Any) -> None:
    """Wait until the protocol knows of the connection; close it if the wait is cancelled."""
    try:
        await waiter
    except BaseException:
        end.close()
        raise
