"""The broker's end of a connection: requests in, responses out, one at a time and in order.

While one request is handled the next ones wait, as with a real broker: a parked JoinGroup delays every later request of
its connection. The handler continues when the client disconnects, because what it started (a member that joins) stays
started; its response is dropped. Requests that were received completely before the client closed the connection are
handled too, those before a reset are not.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

from kclient.change_signal import ChangeSignal
from kclient.embedded.auth import Authentication
from kclient.embedded.clock import Timer
from kclient.embedded.listener import Listener
from kclient.embedded.state import BrokerState
from kclient.errors import ProtocolDecodeError
from kclient.log import get_logger
from kclient.network.transport import FrameProtocol

logger: Final = get_logger("kclient.embedded")

WAITING_FRAMES: Final = 100  # beyond it the connection is not read
ANONYMOUS: Final = "User:ANONYMOUS"
SHORT: Final = {
    "commonName": "CN",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
}


class ServerConnection(FrameProtocol):
    """One client at one listener of one broker. `raw` takes frames without a request header (SASL of old clients).

    `handle` is awaited with each request; `connections` are those of the broker, this one included while it is served.
    """

    def __init__(
        self,
        broker: BrokerState,
        listener: Listener,
        connections: list[ServerConnection],
        handle: Callable[[ServerConnection, memoryview], Awaitable[None]],
    ) -> None:
        super().__init__(broker.state.settings.socket_request_max_bytes, self._on_request, self._on_gone)
        self.broker = broker
        self._connections = connections
        self._handle_request = handle
        self.listener = listener
        self.number: Final = broker.state.next_connection()
        self.principal: str = ANONYMOUS
        self.authenticated: bool = not listener.mechanisms
        self.raw: Callable[[memoryview], Awaitable[bytes]] | None = None
        self.client_address: str = ""
        self.mechanism = ""  # the SASL mechanism of its authentication
        self.renewed_at: float | None = None  # when it last re-authenticated
        self.session_ends: float | None = None  # in the cluster's time
        self.sasl: Authentication | None = None  # the SASL exchange in progress
        self.last_response = False  # close the connection after the next response
        self._frames: deque[memoryview] = deque()
        self._more = ChangeSignal()
        self._task: asyncio.Task[None] | None = None
        self._busy = False
        self._active_at = 0.0  # when a request came or was answered, in the cluster's time
        self._idle: Timer | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if not self.broker.running:  # it was accepted while the process died
            self.abort()
            return
        peer = transport.get_extra_info("peername")
        self.client_address = str(peer[0]) if peer else ""
        if shown := transport.get_extra_info("peercert"):
            self.principal = f"User:{_distinguished_name(shown)}"
        self._connections.append(self)
        self._task = asyncio.get_running_loop().create_task(self._serve(), name=f"serve {peer}")
        self._task.add_done_callback(self._served)
        self._active_at = self.broker.state.clock.now()
        self._watch_idleness()

    def kill(self, *, gently: bool = False) -> None:
        """Stop handling and reset the connection; `gently` closes it instead."""
        if self._task is not None:
            self._task.cancel()
        if gently and self._transport is not None:
            self._transport.close()
        else:
            self.abort()

    def send(self, parts: list[bytes | memoryview]) -> None:
        """Write a frame, its size included."""
        size = sum(map(len, parts))
        self.write([size.to_bytes(4, "big"), *parts])

    def send_some(self, parts: list[bytes | memoryview], count: int) -> None:
        """Write the first bytes of a frame, then reset the connection and drop later requests."""
        whole = b"".join([sum(map(len, parts)).to_bytes(4, "big"), *parts])
        self.write([whole[:count]])
        self._frames.clear()
        asyncio.get_running_loop().call_soon(self.abort)

    def abort(self) -> None:
        """Close the connection at once; drop received requests and unsent bytes."""
        self._frames.clear()
        super().abort()

    def _watch_idleness(self) -> None:
        """Close the connection after `connections.max.idle.ms` without a request."""
        limit_ms = self.broker.state.settings.connections_max_idle_ms
        if limit_ms < 0 or self._transport is None:
            return
        now = self.broker.state.clock.now()
        since = now if self._busy else self._active_at
        left = since + limit_ms / 1000 - now
        if left > 0:
            self._idle = self.broker.call_later(left, self._watch_idleness)
        else:
            self._transport.close()

    def _on_request(self, frame: memoryview) -> None:
        self._active_at = self.broker.state.clock.now()
        self._frames.append(frame)
        if len(self._frames) == WAITING_FRAMES and self._transport is not None:
            self._transport.pause_reading()
        self._more.notify()

    def _on_gone(self, reason: Exception | None) -> None:
        if self._idle is not None:
            self._idle.cancel()
        if reason is not None:
            self._frames.clear()
        # The log of requests remembers connections, and needs no buffers for that.
        self._ahead = memoryview(b"")
        self.write_changed.notify()
        self._more.notify()

    async def _serve(self) -> None:
        seen = 0
        while self.connected or self._frames:
            while self._frames:
                self._busy = True
                await self._handle(self._frames.popleft())
                self._active_at, self._busy = self.broker.state.clock.now(), False
            if self.connected:
                seen = await self._more.wait(seen)

    def _served(self, task: asyncio.Task[None]) -> None:
        """Close the connection of a handler that failed unexpectedly; its error is raised when the cluster ends.

        Until here the broker keeps a connection that its client has left, so that killing it ends the handler too.
        """
        if self in self._connections:
            self._connections.remove(self)
        if not task.cancelled() and (bug := task.exception()) is not None:
            logger.error(
                "broker %d failed to answer %s", self.broker.node_id, self.client_address, exc_info=bug
            )
            self.broker.state.bugs.append(bug)
            self.abort()

    async def _handle(self, frame: memoryview) -> None:
        if len(self._frames) == WAITING_FRAMES - 1 and self._transport is not None:
            self._transport.resume_reading()
        try:
            if self.raw is not None:
                self.send([await self.raw(frame)])
            else:
                await self._handle_request(self, frame)
        except ProtocolDecodeError as exc:
            logger.info("broker %d: %s: closed: %s", self.broker.node_id, self.client_address, exc)
            self.abort()
        if self.last_response and self._transport is not None:
            self._frames.clear()
            self._transport.close()
        while self.connected and not self.writable:
            await self.write_changed.wait(self.write_changed.count)


def _distinguished_name(certificate: dict[str, Any]) -> str:
    """The subject as Java writes it, the last part first: CN=client,O=Example."""
    parts = [part for group in certificate.get("subject", ()) for part in group]
    return ",".join(f"{SHORT.get(name, name)}={value}" for name, value in reversed(parts))
