"""A listening port in memory, with the face of asyncio's Server."""

from __future__ import annotations

import asyncio
import contextvars
from asyncio import sslproto
from collections.abc import Callable
from ssl import SSLContext
from typing import TYPE_CHECKING, Any

import attrs

from tests.simulation.hosts import Host, host_name

if TYPE_CHECKING:
    from tests.simulation.network import Network
    from tests.simulation.transport import SimTransport


@attrs.frozen
class Listening:
    """What stands for the listening socket."""

    address: tuple[str, int]

    def getsockname(self) -> tuple[str, int]:
        return self.address


class SimServer(asyncio.AbstractServer):
    """See the module. `context` carries the host that listens."""

    def __init__(
        self,
        network: Network,
        factory: Callable[[], Any],
        address: tuple[str, int],
        host: Host | None,
        tls: SSLContext | None,
        timeouts: dict[str, float | None],
    ) -> None:
        self.port, self.host = address[1], host
        self.context = contextvars.copy_context()
        self._address = address
        self._network, self._factory = network, factory
        self._tls, self._timeouts = tls, timeouts

    @property
    def key(self) -> tuple[str, int]:
        """Under which the network finds it."""
        return (host_name(self.host), self.port)

    @property
    def sockets(self) -> tuple[Listening, ...]:
        return (Listening(self._address),) if self.is_serving() else ()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._network.loop

    def is_serving(self) -> bool:
        return self._network.listeners.get(self.key) is self

    async def start_serving(self) -> None:
        if self._network.listeners.setdefault(self.key, self) is not self:
            raise OSError(
                98, f"error while attempting to bind on address {self._address!r}: address already in use"
            )

    async def serve_forever(self) -> None:
        await self.start_serving()
        try:
            await self._network.loop.create_future()
        finally:
            self.close()

    def close(self) -> None:
        """Listen no more; connections stay."""
        if self.is_serving():
            del self._network.listeners[self.key]

    async def wait_closed(self) -> None:
        await asyncio.sleep(0)

    async def __aenter__(self) -> SimServer:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.close()
        await self.wait_closed()

    def accept(self, end: SimTransport) -> None:
        """Make the protocol of a new connection."""
        try:
            protocol = self._factory()
        except BaseException:
            end.vanish(reset=True, tell=True)
            raise
        if self._tls is not None:
            protocol = sslproto.SSLProtocol(
                self._network.loop, protocol, self._tls, None, server_side=True, **self._timeouts
            )
        end.set_protocol(protocol)
        end.connected()
