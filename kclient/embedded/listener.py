"""Where a broker listens, and how clients have to speak there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from ssl import SSLContext

import attrs


@attrs.define(eq=False)
class Listener:
    """A named address of one broker. Port 0 becomes the one that the system chose, for all later starts.

    `advertised` is what clients are told where it differs; `mechanisms` are the SASL mechanisms, none for no SASL.
    """

    name: str
    host: str
    port: int
    ssl: SSLContext | None = None
    mechanisms: tuple[str, ...] = ()
    advertised: tuple[str, int] | None = None
    server: asyncio.Server | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that clients are told."""
        return self.advertised or (self.host, self.port)


Factory = Callable[[], asyncio.BaseProtocol]
Serve = Callable[[Factory, Listener], Awaitable[asyncio.Server]]


async def serve(factory: Factory, listener: Listener) -> asyncio.Server:
    """Listen at the listener's address, on the running loop. Raises OSError."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(factory, listener.host, listener.port, ssl=listener.ssl)
