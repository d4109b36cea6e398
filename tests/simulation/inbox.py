"""What has arrived at one end of a connection and was not read yet.

Reading goes on until the protocol pauses, the end is frozen (a peer that is busy with something else) or closed. The
sender's window opens by what was read, so a reader that stops makes the writer stop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.simulation.pipe import FIN, Bytes

if TYPE_CHECKING:
    from tests.simulation.end import End


class Inbox:
    """See the module. `paused` by the protocol, `frozen` by a fault."""

    def __init__(self, end: End) -> None:
        self.paused = self.frozen = False
        self.protocol: Any = None
        self._buffered = False
        self._end = end
        self._unread: list[Bytes] = []

    @property
    def holds_data(self) -> bool:
        """Whether something but an end was left unread."""
        return any(self._unread)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Whom to hand things to from now on."""
        self.protocol = protocol
        self._buffered = isinstance(protocol, asyncio.BufferedProtocol)

    def add(self, data: Bytes) -> None:
        """Take what arrived; `read` hands it over."""
        self._unread.append(data)

    def read(self) -> None:
        """Hand over what is here, in one piece. Raises what the protocol raises."""
        if not self._unread or not self._open:
            return
        unread, self._unread = self._unread, []
        ended = unread[-1] is FIN
        if ended:
            unread.pop()
        data = unread[0] if len(unread) == 1 else b"".join(unread)
        if data:
            left = self._fill(data) if self._buffered else self._give(data)
            self._end.inward.read(len(data) - len(left))
            if left:
                self._unread.append(left)
        if ended and not self._unread and self._open:
            self._end.eof_received()
        elif ended:
            self._unread.append(FIN)

    @property
    def _open(self) -> bool:
        return not (self.paused or self.frozen or self._end.is_closing())

    def _give(self, data: Bytes) -> Bytes:
        self.protocol.data_received(bytes(data))
        return b""

    def _fill(self, data: Bytes) -> Bytes:
        """Give a BufferedProtocol what it has room for; the rest stays when it pauses or ends."""
        left = memoryview(data)
        while left and self._open:
            buffer = self.protocol.get_buffer(-1)
            if not len(buffer):
                raise RuntimeError("get_buffer() returned an empty buffer")
            size = min(len(buffer), len(left))
            buffer[:size] = left[:size]
            self.protocol.buffer_updated(size)
            left = left[size:]
        return left
