"""SimTransport: one end of a connection in memory, with the manners of asyncio's socket transport.

What it tells its protocol, it tells in the context of its host: a paused host hears later, a dead one never.
`abort` drops what waits; the peer sees FIN, or RST when something was left unread, as from a closed socket.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tests.simulation.hosts import HOST, Host
from tests.simulation.inbox import Inbox
from tests.simulation.outbox import Outbox
from tests.simulation.pipe import RST, Bytes, Pipe

if TYPE_CHECKING:
    from tests.simulation.network import Network


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
        self.gone = False  # the kernel knows this end no more
        self._network, self._loop = network, network.loop
        self._inbox = Inbox(self)
        self._closing = False
        self._lost_called = False
        self._broken = False  # by the way or the peer, which need not be told
        self._eof_sent = False

    def plug(self, out: Pipe, inward: Pipe) -> None:
        """Get the two directions: what it writes to and what it reads from."""
        self.out, self.inward, self._outbox = out, inward, Outbox(self, out)

    def __repr__(self) -> str:
        return f"<SimTransport #{self.number} {self._extra['sockname']} → {self._extra['peername']}>"

    # --- what a protocol calls

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

    def _force_close(self, exc: BaseException | None) -> None:
        """End at once; what waits is dropped. sslproto calls it by this name too."""
        if self.gone or self._lost_called:
            return
        self.out.waiting.clear()
        self.out.waiting_bytes = 0
        self._closing = True
        self._lost_called = True
        self._loop.call_soon(self._end, exc, context=self.context)

    @property
    def lent(self) -> bool:
        """Whether the program behind runs elsewhere: on no host, behind a host's address."""
        return self.context.get(HOST) is not self.host

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
        self._inbox.add(data)
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
        self._inbox.clear()
        self._force_close(problem)

    def wrote(self) -> None:
        """Bytes left the buffer; on a pipe's time, so the protocol hears of it later."""
        if self._outbox.drained():
            self._loop.call_soon(self._resume_writing, context=self.context)
        if self._closing and not self._lost_called and not self.out.waiting:
            self._loop.call_soon(self._end, None, context=self.context)

    # --- what a fault does

    def freeze(self) -> None:
        """Stop reading, as a peer does that is busy with something else (F-16)."""
        self._inbox.frozen = True

    def thaw(self) -> None:
        """Read again."""
        self._inbox.frozen = False
        self._loop.call_soon(self._read, context=self.context)

    # --- telling the protocol

    def connected(self, waiter: asyncio.Future[None] | None = None) -> None:
        """Say that the connection stands, then let whoever waits go on."""
        self.get_protocol().connection_made(self)
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _resume_writing(self) -> None:
        if not self.gone:
            self.get_protocol().resume_writing()

    def _read(self) -> None:
        try:
            self._inbox.read()
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as problem:  # noqa: BLE001 – as asyncio does: fatal for the connection
            self._fatal(problem)

    def eof_received(self) -> None:
        """The peer sends no more; a protocol that says nothing else ends as well."""
        if not self.get_protocol().eof_received():
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
            self.get_protocol().connection_lost(problem)
        finally:
            self.vanish(reset=self._inbox.holds_data, tell=not self._broken)

    def host_ended(self, *, silently: bool) -> None:
        """Its host died or lost power. A program that runs elsewhere lives on, and hears of a death."""
        if not self.lent:
            self.vanish(reset=True, tell=not silently)
        elif not silently:
            self.out.reset()
            self.was_reset()

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
        over_tls = getattr(self.get_protocol(), "_app_transport", None)
        if over_tls is not None:
            over_tls._closed = True
