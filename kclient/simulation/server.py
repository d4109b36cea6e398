"""A listening port in memory, with the calls of asyncio's Server."""

from __future__ import annotations

import asyncio
import contextvars
from asyncio import sslproto
from collections.abc import Callable
from ssl import SSLContext
from typing import Any, Self, TypeAlias

import attrs

from kclient.simulation.loop import SimLoop
from kclient.simulation.process import Process, process_name
from kclient.simulation.transport import SimTransport

ListenerKey: TypeAlias = tuple[str, int]  # the name of a host, and a port


@attrs.frozen
class ListeningSocket:
    """What stands for the listening socket."""

    address: tuple[str, int]

    def getsockname(self) -> tuple[str, int]:
        return self.address


class SimServer(asyncio.AbstractServer):
    """See the module. `context` carries the host that listens; `listeners` are those of the network."""

    def __init__(
        self,
        loop: SimLoop,
        listeners: dict[ListenerKey, SimServer],
        factory: Callable[[], Any],
        address: tuple[str, int],
        host: Process | None,
        tls: SSLContext | None,
        timeouts: dict[str, float | None],
    ) -> None:
        self.port: int = address[1]
        self.host: Process | None = host
        self.context: contextvars.Context = contextvars.copy_context()
        self._address = address
        self._loop, self._listeners, self._factory = loop, listeners, factory
        self._tls, self._timeouts = tls, timeouts

    @property
    def key(self) -> ListenerKey:
        """Under which the network finds it."""
        return (process_name(self.host), self.port)

    @property
    def sockets(self) -> tuple[ListeningSocket, ...]:
        return (ListeningSocket(self._address),) if self.is_serving() else ()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def is_serving(self) -> bool:
        return self._listeners.get(self.key) is self

    async def start_serving(self) -> None:
        if self._listeners.setdefault(self.key, self) is not self:
            raise OSError(
                98, f"error while attempting to bind on address {self._address!r}: address already in use"
            )

    async def serve_forever(self) -> None:
        await self.start_serving()
        try:
            await self._loop.create_future()
        finally:
            self.close()

    def close(self) -> None:
        """Listen no more; connections stay."""
        if self.is_serving():
            del self._listeners[self.key]

    async def wait_closed(self) -> None:
        await asyncio.sleep(0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.close()
        await self.wait_closed()

    def accept(self, end: SimTransport) -> None:
        """Make the protocol of a new connection."""
        try:
            protocol = self._factory()
        except BaseException:
            end.vanish(reset=True, notify=True)
            raise
        if self._tls is not None:
            make: Any = sslproto.SSLProtocol  # typeshed asks for a waiter and whole seconds
            protocol = make(self._loop, protocol, self._tls, None, server_side=True, **self._timeouts)
        end.set_protocol(protocol)
        end.connected()
