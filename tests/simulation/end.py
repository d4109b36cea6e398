"""One end of a connection as the network sees it: what arrives there, what becomes of it, how it ends.

It calls its protocol in the context of its host: on a paused host the call comes later, on a dead one never.
"""

from __future__ import annotations

import asyncio
import contextvars
from typing import TYPE_CHECKING, Any

from tests.simulation.hosts import HOST, Host
from tests.simulation.inbox import Inbox
from tests.simulation.outbox import Outbox
from tests.simulation.pipe import RST, Pipe

if TYPE_CHECKING:
    from tests.simulation.network import Network


class End(asyncio.Transport):
    """See the module. `number` is the connection's; `out` and `inward` are its two directions."""

    of_the_network = True  # its timers are not those of a program

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
        self._broken = False  # by the network or the peer, which needs no notice
        self._eof_sent = False

    def plug(self, out: Pipe, inward: Pipe) -> None:
        """Get the two directions: what it writes to and what it reads from."""
        self.out, self.inward, self._outbox = out, inward, Outbox(self, out)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} #{self.number} {self._extra['sockname']} → {self._extra['peername']}>"

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
        """Prevent later warnings that it was not closed."""
        self._closing = True
        over_tls = getattr(self._inbox.protocol, "_app_transport", None)
        if over_tls is not None:
            over_tls._closed = True
