"""SimTransport: one end of a connection as its protocol sees it, with the manners of asyncio's socket transport.

`abort` drops what waits; the peer sees FIN, or RST when something was left unread, as from a closed socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from tests.simulation.end import End
from tests.simulation.pipe import Bytes


class SimTransport(End):
    """See the module."""

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._inbox.set_protocol(protocol)

    def get_protocol(self) -> Any:
        return self._inbox.protocol

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return not self._inbox.paused and not self._closing

    def pause_reading(self) -> None:
        self._inbox.paused = True

    def resume_reading(self) -> None:
        if self._inbox.paused and not self._closing:
            self._inbox.paused = False
            self._loop.call_soon(self._read, context=self.context)

    def write(self, data: Bytes) -> None:
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"data argument must be a bytes-like object, not {type(data).__name__!r}")
        if self._eof_sent:
            raise RuntimeError("Cannot call write() after write_eof()")
        if not data or self.gone or self._closing:
            return
        self._outbox.write(data)

    def writelines(self, list_of_data: Iterable[Bytes]) -> None:
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        if not self._closing and not self._eof_sent:
            self._eof_sent = True
            self.out.finish()

    def can_write_eof(self) -> bool:
        return True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._outbox.set_limits(high, low)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._outbox.low, self._outbox.high

    def get_write_buffer_size(self) -> int:
        return self.out.waiting_bytes

    def close(self) -> None:
        """Send what waits, then FIN; `connection_lost` follows."""
        if not self._closing:
            self._closing = True
            if not self.out.waiting:
                self._loop.call_soon(self._end, None, context=self.context)

    def abort(self) -> None:
        self._force_close(None)
