"""Where a broker listens, and how clients have to speak there."""

from __future__ import annotations

import asyncio
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
