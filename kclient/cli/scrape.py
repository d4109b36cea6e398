"""One page of text over HTTP, for Prometheus: `GET /metrics`, one answer a connection.

It runs on kclient's loop thread beside whatever else is there. A peer gets a few seconds and a few kilobytes to ask.
"""

from __future__ import annotations

import asyncio
from typing import Final

from kclient.bridge import LoopThread
from kclient.errors import ConfigError

ASKING_SECONDS: Final = 5.0
LONGEST_REQUEST: Final = 8_192
END: Final = b"\r\n\r\n"


class ScrapeServer:
    """Serves `page` until it is closed."""

    def __init__(self, host: str, port: int) -> None:
        """Listen; port 0 takes a free one. Raises ConfigError where that cannot be."""
        self.page = ""
        self._user = object()
        self._thread = LoopThread.join(self._user)
        try:
            self._server: asyncio.Server = self._thread.run(lambda: self._listen(host, port))
        except OSError as exc:
            self._thread.leave(self._user)
            raise ConfigError(
                f"--metrics prometheus:{host}:{port} cannot listen there: {exc.strerror}. Give another port."
            ) from exc
        self.port: int = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Listen no more."""
        self._thread.run(self._server.close)
        self._thread.leave(self._user)

    async def _listen(self, host: str, port: int) -> asyncio.Server:
        return await asyncio.start_server(self._serve, host, port, limit=LONGEST_REQUEST)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(ASKING_SECONDS):
                request = await reader.readuntil(END)
                writer.write(self._answer(request))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # who asks in such a way is not answered
        finally:
            writer.close()

    def _answer(self, request: bytes) -> bytes:
        method, _, rest = request.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", "only GET\n")
        if path != b"/metrics":
            return _response("404 Not Found", "see /metrics\n")
        return _response("200 OK", self.page, head=method == b"HEAD")


def _response(status: str, text: str, *, head: bool = False) -> bytes:
    body = text.encode()
    lines = (
        f"HTTP/1.1 {status}",
        "Content-Type: text/plain; version=0.0.4; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join(lines).encode() + END + (b"" if head else body)
