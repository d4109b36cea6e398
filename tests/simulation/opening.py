"""Opening connections and ports: the handshake of TCP, then TLS, with every way in which they fail.

A SYN is repeated after 1, 2, 4 … seconds until it is answered or `syn_seconds` are over; so a connection comes about
some time after a partition has healed. A paused host still answers: its kernel accepts.
"""

from __future__ import annotations

import asyncio
import errno
from asyncio import sslproto
from collections.abc import Callable
from ssl import SSLContext, create_default_context
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from tests.simulation.ends import LOOPBACK
from tests.simulation.hosts import HOST, State, current_name, host_name
from tests.simulation.server import SimServer

if TYPE_CHECKING:
    from tests.simulation.ends import Connection
    from tests.simulation.network import Network

Tls: TypeAlias = SSLContext | bool | None


@attrs.frozen
class Opening:
    """A connection to be made for the host that runs."""

    network: Network
    factory: Callable[[], Any]

    async def open(
        self,
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
        """As `loop.create_connection`: the first address that answers. Raises OSError, SSLError."""
        infos = await self.network.getaddrinfo(host, port)
        connection = await self._first_of([info[4] for info in infos])
        loop, app, end = self.network.loop, self.factory(), connection.client
        waiter = loop.create_future()
        protocol = app
        if ssl:
            protocol = sslproto.SSLProtocol(
                loop,
                app,
                create_default_context() if ssl is True else ssl,
                waiter,
                server_hostname=host if server_hostname is None else server_hostname,
                ssl_handshake_timeout=ssl_handshake_timeout,
                ssl_shutdown_timeout=ssl_shutdown_timeout,
            )
        end.set_protocol(protocol)
        loop.call_soon(end.connected, None if ssl else waiter, context=end.context)
        await _stands(waiter, end)
        return (protocol._app_transport if ssl else end), app

    async def _first_of(self, addresses: list[tuple[str, int]]) -> Connection:
        problems: list[OSError] = []
        for ip, port in addresses:
            try:
                return await self._shake_hands(ip, port)
            except OSError as exc:
                problems.append(exc)
        if len(problems) == 1:
            raise problems[0]
        raise OSError(f"Multiple exceptions: {', '.join(map(str, problems))}")

    async def _shake_hands(self, ip: str, port: int) -> Connection:
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
        """Whether a SYN gets there and the response back."""
        try:
            there = self.network.at(ip)
        except LookupError:
            return False
        if there is None or there is HOST.get():
            return True
        here = current_name()
        return (
            there.state is not State.OFF
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
        return host_name(self.network.at(ip))


@attrs.frozen
class ServerOpening:
    """A port to be opened on the host that runs."""

    network: Network
    factory: Callable[[], Any]

    async def open(
        self,
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
        """As `loop.create_server`, on one address. Raises OSError when the port is taken or the address not ours.

        What runs on no host may listen at the address of any: to the network it is that host.
        """
        here, ip = HOST.get(), self._own_address(host)
        there = self.network.at(ip) if here is None else here
        address = (ip, port or self.network.next_port(host_name(there)))
        timeouts = {
            "ssl_handshake_timeout": ssl_handshake_timeout,
            "ssl_shutdown_timeout": ssl_shutdown_timeout,
        }
        server = SimServer(self.network, self.factory, address, there, ssl, timeouts)
        if start_serving:
            await server.start_serving()
        return server

    def _own_address(self, host: str | None) -> str:
        here = HOST.get()
        lent = tuple(self.network.hosts) if here is None else here.addresses
        if not host or host in ("0.0.0.0", "::"):
            return LOOPBACK if here is None else lent[0]
        for ip in self.network.names.get(host, [host]):  # of its own: no resolver is asked
            if ip in (*lent, LOOPBACK):
                return ip
        raise OSError(errno.EADDRNOTAVAIL, f"could not bind on any address out of [{host!r}]")


async def _stands(waiter: asyncio.Future[None], end: Any) -> None:
    """Wait until the protocol knows of the connection; who stops waiting closes it."""
    try:
        await waiter
    except BaseException:
        end.close()
        raise
