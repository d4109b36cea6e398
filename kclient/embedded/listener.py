"""The listeners of a broker: where clients connect, and with which security."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from socket import socket  # noqa: TID251 a broker is the other end of connections
from ssl import SSLContext
from typing import Final, Protocol

import attrs

from kclient.errors import ArgumentError
from kclient.log import get_logger
from kclient.security import SCRAM_DIGESTS

logger: Final = get_logger("kclient.embedded")

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

BACKLOG: Final = 100  # connections that wait to be accepted


async def serve(factory: Factory, listener: Listener) -> Server:
    """Listen at the listener's address, on the running loop. Raise OSError."""
    loop = asyncio.get_running_loop()
    bound = await loop.create_server(factory, listener.host, listener.port, start_serving=False)
    sockets = [socket(fileno=os.dup(each.fileno())) for each in bound.sockets]
    bound.close()
    return _Server(sockets, factory, listener.ssl)


class _Server:
    """Accepts connections until it is closed; those that it has accepted have their protocols called.

    An `asyncio.Server` makes the transport of an accepted socket one turn of the loop later, and fails if it was closed
    meanwhile: nothing closes the socket then, and its client waits until the garbage collector finds it.
    """

    def __init__(self, sockets: Sequence[socket], factory: Factory, tls: SSLContext | None) -> None:
        self.sockets: Sequence[socket] = sockets
        self._factory = factory
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[None]] = set()  # the loop only keeps weak references
        for listening in sockets:
            listening.setblocking(False)
            listening.listen(BACKLOG)
            self._loop.add_reader(listening, self._accept, listening)

    def close(self) -> None:
        for listening in self.sockets:
            self._loop.remove_reader(listening)
            listening.close()
        self.sockets = ()

    def _accept(self, listening: socket) -> None:
        for _ in range(BACKLOG):
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            accepted.setblocking(False)
            task = self._loop.create_task(self._open(accepted))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open(self, accepted: socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._factory, accepted, ssl=self._tls)
        except OSError as exc:  # a client that speaks no TLS, or does not trust the certificate
            logger.debug("%s: closed while it was opened: %s", accepted, exc)
            accepted.close()
