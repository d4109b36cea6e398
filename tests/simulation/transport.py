"""SimTransport: one end of a connection in memory, with the manners of asyncio's socket transport.

What it tells its protocol, it tells in the context of its host: a paused host hears later, a dead one never.
`abort` drops what waits; the peer sees FIN, or RST when something was left unread, as from a closed socket.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.hosts import Host
from tests.simulation.pipe import FIN, RST, Bytes, Pipe

if TYPE_CHECKING:
    from tests.simulation.network import Network

HIGH_WATER_BYTES: Final = 65_536


class SimTransport(asyncio.Transport):
    """See the module. `number` is the connection's; `out` and `inward` are its two directions."""

    def __init__(
        self,
        network: Network,
        number: int,
        host: Host | None,
        context: contextvars.Context,
        extra: dict[str, Any],
    ) -> None:
        super().__init__(extra)
        self.number, self.host, self.context = number, host, context
        self.out: Pipe
        self.inward: Pipe
        self.gone = False  # the kernel knows this end no more
        self._network, self._loop = network, network.loop
        self._protocol: asyncio.BaseProtocol | None = None
        self._buffered = False
        self._unread: list[Bytes] = []
        self._reading = True
        self._frozen = False
        self._closing = False
        self._lost_called = False
        self._broken = False  # by the way or the peer, which need not be told
        self._writing_paused = False
        self._eof_sent = False
        self._high, self._low = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4

    def __repr__(self) -> str:
        return f"<SimTransport #{self.number} {self._extra['sockname']} → {self._extra['peername']}>"

    # --- what a protocol calls

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol
        self._buffered = isinstance(protocol, asyncio.BufferedProtocol)

    def get_protocol(self) -> asyncio.BaseProtocol | None:
        return self._protocol

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        if not self._reading and not self._closing:
            self._reading = True
            self._loop.call_soon(self._read, context=self.context)

    def write(self, data: Bytes) -> None:
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"data argument must be a bytes-like object, not {type(data).__name__!r}")
        if self._eof_sent:
            raise RuntimeError("Cannot call write() after write_eof()")
        if not data or self.gone or self._closing:
            return
        self.out.send(data if type(data) is bytes else bytes(data))
        if self.out.waiting_bytes > self._high and not self._writing_paused:
            self._writing_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Iterable[Bytes]) -> None:
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        if not self._closing and not self._eof_sent:
            self._eof_sent = True
            self.out.finish()

    def can_write_eof(self) -> bool:
        return True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high!r}) must be >= low ({low!r}) must be >= 0")
        self._high, self._low = high, low

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

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

    def _force_close(self, exc: BaseException | None) -> None:
        """End at once; what waits is dropped. sslproto calls it by this name too."""
        if self.gone or self._lost_called:
            return
        self.out.waiting.clear()
        self.out.waiting_bytes = 0
        self._closing = True
        self._lost_called = True
        self._loop.call_soon(self._end, exc, context=self.context)

    # --- what the pipes call

    def arrived(self) -> None:
        """The next segment is here."""
        flying = self.inward.flying
        data = flying.popleft()
        if self.gone:
            if data is not RST:
                self.inward._refuse()
            return
        self._loop.trace_of.step(self.number, -1 if data is None else len(data))
        if data is RST:
            self.was_reset()
            return
        self._unread.append(data)
        wire = self.inward.wire
        if flying and data and wire.coalesce and self._network.rng.random() < wire.coalesce:
            return
        self._read()

    def was_reset(self) -> None:
        """The peer's kernel, or something on the way, ended the connection."""
        self.fail(ConnectionResetError(104, "Connection reset by peer"))

    def fail(self, problem: OSError) -> None:
        """The connection broke."""
        self._broken = True
        self._unread.clear()
        self._force_close(problem)

    def wrote(self) -> None:
        """Bytes left the buffer; on a pipe's time, so the protocol hears of it later."""
        if self._writing_paused and self.out.waiting_bytes <= self._low:
            self._writing_paused = False
            self._loop.call_soon(self._resume_writing, context=self.context)
        if self._closing and not self._lost_called and not self.out.waiting:
            self._loop.call_soon(self._end, None, context=self.context)

    # --- what a fault does

    def freeze(self) -> None:
        """Stop reading, as a peer does that is busy with something else (F-16)."""
        self._frozen = True

    def thaw(self) -> None:
        """Read again."""
        self._frozen = False
        self._loop.call_soon(self._read, context=self.context)

    # --- telling the protocol

    def connected(self, waiter: asyncio.Future[None] | None = None) -> None:
        """Say that the connection stands, then let whoever waits go on."""
        self._protocol.connection_made(self)
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _resume_writing(self) -> None:
        if not self.gone:
            self._protocol.resume_writing()

    def _read(self) -> None:
        """Hand over what has arrived."""
        if not self._unread or not self._reading or self._frozen or self._closing:
            return
        unread, self._unread = self._unread, []
        ended = unread[-1] is FIN
        if ended:
            unread.pop()
        data = unread[0] if len(unread) == 1 else b"".join(unread)
        if data:
            try:
                left = self._fill(data) if self._buffered else self._receive(data)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as problem:  # noqa: BLE001 – as asyncio does: fatal for the connection
                self._fatal(problem)
                return
            self.inward.read(len(data) - len(left))
            if left:
                self._unread.insert(0, left)
        if ended and not self._unread and not self._closing:
            self._eof_received()
        elif ended:
            self._unread.append(FIN)

    def _receive(self, data: Bytes) -> Bytes:
        self._protocol.data_received(bytes(data))
        return b""

    def _fill(self, data: Bytes) -> Bytes:
        """Give a BufferedProtocol what it takes; the rest stays unread when it pauses or ends."""
        left = memoryview(data)
        while left and self._reading and not self._closing:
            buffer = self._protocol.get_buffer(-1)
            if not len(buffer):
                raise RuntimeError("get_buffer() returned an empty buffer")
            size = min(len(buffer), len(left))
            buffer[:size] = left[:size]
            self._protocol.buffer_updated(size)
            left = left[size:]
        return left

    def _eof_received(self) -> None:
        if not self._protocol.eof_received():
            self.close()

    def _fatal(self, problem: BaseException) -> None:
        self._loop.call_exception_handler(
            {"message": f"the protocol of {self!r} failed", "exception": problem, "transport": self}
        )
        self._force_close(problem)

    def _end(self, problem: BaseException | None) -> None:
        """Tell the protocol that it is over, then close the socket."""
        if self.gone:
            return
        self._lost_called = True
        try:
            self._protocol.connection_lost(problem)
        finally:
            self.vanish(reset=any(self._unread), tell=not self._broken)

    def vanish(self, *, reset: bool, tell: bool) -> None:
        """Let the kernel forget this end; the peer hears of it unless the connection was broken already."""
        if self.gone:
            return
        self.gone = True
        self.hush()
        self._network.closed(self)
        if tell and reset:
            self.out.reset()
        elif tell and not self._eof_sent:
            self.out.finish()

    def hush(self) -> None:
        """Let nothing that finds it later complain that nobody closed it."""
        self._closing = True
        over_tls = getattr(self._protocol, "_app_transport", None)
        if over_tls is not None:
            over_tls._closed = True
