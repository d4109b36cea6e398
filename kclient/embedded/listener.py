"""The listeners of a broker: where clients connect, and with which security."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from ssl import SSLContext
from typing import TYPE_CHECKING, Final, Protocol

import attrs

from kclient.errors import ArgumentError
from kclient.security import SCRAM_DIGESTS

if TYPE_CHECKING:
    from socket import socket  # noqa: TID251 only for annotations: servers make their own

PLAINTEXT: Final = "PLAINTEXT"
MECHANISMS: Final = ("PLAIN", *SCRAM_DIGESTS, "OAUTHBEARER")


class Server(Protocol):
    """What a broker needs of an `asyncio.Server`."""

    @property
    def sockets(self) -> Sequence[socket]: ...

    def close(self) -> None: ...


@attrs.define(eq=False)
class Listener:
    """A named address of one broker. Port 0 becomes the one that the system chose, for all later starts.

    `advertised` is the address in Metadata if it differs; `mechanisms` are the SASL mechanisms, none for no SASL.
    """

    name: str
    host: str = "127.0.0.1"
    port: int = 0
    ssl: SSLContext | None = None
    mechanisms: tuple[str, ...] = attrs.field(default=())
    advertised: tuple[str, int] | None = None
    server: Server | None = None

    @mechanisms.validator
    def _known(self, attribute: object, mechanisms: tuple[str, ...]) -> None:
        for mechanism in mechanisms:
            if mechanism not in MECHANISMS:
                raise ArgumentError(
                    f"The embedded cluster does not speak {mechanism!r}; it speaks {', '.join(MECHANISMS)}."
                )

    def of_broker(self, number: int) -> Listener:
        """Return the listener of one broker (the first is 0): a fixed port counts up from broker to broker."""
        return attrs.evolve(self, port=self.port + number if self.port else 0, server=None)

    @property
    def server_address(self) -> str:
        """`host:port` as bootstrap_servers takes it, with brackets around an IPv6 address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def address(self) -> tuple[str, int]:
        """The host and port in Metadata."""
        return self.advertised or (self.host, self.port)


Factory = Callable[[], asyncio.BaseProtocol]
Serve = Callable[[Factory, Listener], Awaitable[Server]]


async def serve(factory: Factory, listener: Listener) -> Server:
    """Listen at the listener's address, on the running loop. Raise OSError."""
    await asyncio.sleep(0)  # a server that was closed in this turn of the loop still has the port
    loop = asyncio.get_running_loop()
    return _Server(await loop.create_server(factory, listener.host, listener.port, ssl=listener.ssl))


class _Server:
    """A server that accepts nothing more at once, and is closed when all sockets that it has accepted have transports.

    asyncio makes the transport in the turn of the loop after accept(), and a closed server fails it: nothing closes the
    socket then, and its client waits for responses until the garbage collector finds it.
    """

    def __init__(self, server: asyncio.Server) -> None:
        self._server = server

    @property
    def sockets(self) -> Sequence[socket]:
        return self._server.sockets

    def close(self) -> None:
        loop = asyncio.get_running_loop()
        for listening in self.sockets:
            loop.remove_reader(listening)
        loop.call_soon(self._server.close)
