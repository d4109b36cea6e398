"""SimTransport: one end of a connection, as its protocol sees it and as the network sees it.

It calls its protocol in the context of its host: on a paused host the call comes later, on a dead one never. `abort`
drops what waits; the peer sees FIN, or RST when something was left unread, as from a closed socket.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Iterable
from random import Random
from typing import Any, Final, Protocol

from kclient.simulation.loop import SimLoop
from kclient.simulation.pipe import FIN, RST, Bytes, Pipe
from kclient.simulation.process import CURRENT_PROCESS, Process

HIGH_WATER_BYTES: Final = 65_536


class TransportOwner(Protocol):
    """What an end needs of its network."""

    loop: SimLoop
    rng: Random

    def closed(self, end: SimTransport) -> None:
        """Learn that an end is gone."""


class SimTransport(asyncio.Transport):
    """See the module. `number` is the connection's; `out` and `inward` are its two directions."""

    of_the_network: bool = True  # its timers are not those of a program

    def __init__(
        self,
        network: TransportOwner,
        number: int,
        host: Process | None,
        context: contextvars.Context,
        extra: dict[str, Any],
    ) -> None:
        super().__init__(extra)
        self.number: int = number
        self.host: Process | None = host
        self.context: contextvars.Context = context
        self.out: Pipe
        self.inward: Pipe
        self.gone: bool = False  # the kernel knows this end no more
        self._address = f"{extra['sockname']} → {extra['peername']}"
        self._network, self._loop = network, network.loop
        self._inbox = Inbox(self)
        self._closing = False
        self._lost_called = False
        self._broken = False  # by the network or the peer, which needs no notice
        self._eof_sent = False

    def attach(self, out: Pipe, inward: Pipe) -> None:
        """Take the two directions: what it writes to and what it reads from."""
        self.out, self.inward, self._outbox = out, inward, Outbox(self, out)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} #{self.number} {self._address}>"

    @property
    def runs_elsewhere(self) -> bool:
        """Whether its program runs on no host, and only listens at the address of this one."""
        return self.context.get(CURRENT_PROCESS) is not self.host

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

    # --- what the pipes call

    def arrived(self) -> None:
        """The next segment is here."""
        flying = self.inward.flying
        data = flying.popleft()
        if self.gone:
            if data is not RST:
                self.inward.refuse()
            return
        self._loop.history.step(self.number, -1 if data is None else len(data))
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
        self._force_close(problem)

    def wrote(self) -> None:
        """Bytes left the buffer; on a pipe's time, so the protocol is called later."""
        if self._outbox.drained():
            self._loop.call_soon(self._resume_writing, context=self.context)
        if self._closing and not self._lost_called and not self.out.waiting:
            self._loop.call_soon(self._end, None, context=self.context)

    # --- what a fault does

    def freeze(self) -> None:
        """Stop reading, as a peer does that is busy with something else."""
        self._inbox.frozen = True

    def thaw(self) -> None:
        """Read again."""
        self._inbox.frozen = False
        self._loop.call_soon(self._read, context=self.context)

    # --- calling the protocol

    def connected(self, waiter: asyncio.Future[None] | None = None) -> None:
        """Report the connection, then wake the task that waits for it."""
        self._inbox.protocol.connection_made(self)
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _resume_writing(self) -> None:
        if not self.gone:
            self._inbox.protocol.resume_writing()

    def _read(self) -> None:
        try:
            self._inbox.read()
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as exc:  # noqa: BLE001 – as asyncio does: fatal for the connection
            self._fatal(exc)

    def eof_received(self) -> None:
        """The peer sends no more; a protocol that says nothing else ends as well."""
        if not self._inbox.protocol.eof_received():
            self.close()

    def _fatal(self, problem: BaseException) -> None:
        self._loop.call_exception_handler(
            {"message": f"the protocol of {self!r} failed", "exception": problem, "transport": self}
        )
        self._force_close(problem)

    def _force_close(self, exc: BaseException | None) -> None:
        """End at once; what waits is dropped. sslproto calls it by this name too."""
        if self.gone or self._lost_called:
            return
        self.out.waiting.clear()
        self.out.waiting_bytes = 0
        self._closing = True
        self._lost_called = True
        self._loop.call_soon(self._end, exc, context=self.context)

    def _end(self, problem: BaseException | None) -> None:
        """Call connection_lost of the protocol, then close the socket."""
        if self.gone:
            return
        self._lost_called = True
        try:
            self._inbox.protocol.connection_lost(problem)
        finally:
            self.vanish(reset=self._inbox.holds_data, notify=not self._broken)

    def host_ended(self, *, silently: bool) -> None:
        """Its host died or lost power. A program that runs elsewhere lives on, and learns of a death."""
        if not self.runs_elsewhere:
            self.vanish(reset=True, notify=not silently)
        elif not silently:
            self.out.reset()
            self.was_reset()

    def vanish(self, *, reset: bool, notify: bool) -> None:
        """Let the kernel forget this end, and notify the peer unless the connection was broken already."""
        if self.gone:
            return
        self.gone = True
        self.mark_closed()
        self._network.closed(self)
        if notify and reset:
            self.out.reset()
        elif notify and not self._eof_sent:
            self.out.finish()

    def mark_closed(self) -> None:
        """Prevent later warnings that it was not closed."""
        self._closing = True
        over_tls = getattr(self._inbox.protocol, "_app_transport", None)
        if over_tls is not None:
            over_tls._closed = True


class Inbox:
    """What has arrived at one end and was not read yet. `paused` by the protocol, `frozen` by a fault.

    The sender's window opens by what was read, so a reader that stops makes the writer stop.
    """

    def __init__(self, end: SimTransport) -> None:
        self.paused: bool = False
        self.frozen: bool = False
        self.protocol: Any = None
        self._buffered = False
        self._end = end
        self._unread: list[Bytes] = []

    @property
    def holds_data(self) -> bool:
        """Whether something but an end was left unread."""
        return any(self._unread)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Call this protocol from now on."""
        self.protocol = protocol
        self._buffered = isinstance(protocol, asyncio.BufferedProtocol)

    def add(self, data: Bytes) -> None:
        """Take what arrived; `read` hands it over."""
        self._unread.append(data)

    def read(self) -> None:
        """Hand over what is here, in one piece. Raise what the protocol raises."""
        if not self._unread or not self._open:
            return
        unread, self._unread = self._unread, []
        ended = unread[-1] is FIN
        if ended:
            unread.pop()
        data = unread[0] if len(unread) == 1 else b"".join(unread)
        if data:
            left = self._fill(data) if self._buffered else self._give(data)
            self._end.inward.acknowledge(len(data) - len(left))
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


class Outbox:
    """What a protocol has written and the wire has not taken. Above a limit, asyncio's, `pause_writing` is called."""

    def __init__(self, end: SimTransport, pipe: Pipe) -> None:
        self.pipe: Pipe = pipe
        self.high: int = HIGH_WATER_BYTES
        self.low: int = HIGH_WATER_BYTES // 4
        self._end = end
        self._paused = False

    def write(self, data: Bytes) -> None:
        """Send; above the high mark the protocol is paused."""
        self.pipe.send(data if type(data) is bytes else bytes(data))
        if self.pipe.waiting_bytes > self.high and not self._paused:
            self._paused = True
            self._end.get_protocol().pause_writing()

    def drained(self) -> bool:
        """Return whether a paused protocol may go on; asked once for each pause."""
        if self._paused and self.pipe.waiting_bytes <= self.low:
            self._paused = False
            return True
        return False

    def set_limits(self, high: int | None, low: int | None) -> None:
        """See `asyncio.WriteTransport.set_write_buffer_limits`. Raise ValueError."""
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high!r}) must be >= low ({low!r}) must be >= 0")
        self.high, self.low = high, low
