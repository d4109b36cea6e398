"""One direction of a connection: what was sent arrives in its order, or never.

    waiting   written, beyond the window         flying   on the wire, each with a timer for its arrival
    held      sent while the way is cut          unacked  bytes that the peer has not read yet

A sender that hears no acknowledgement for `retransmit_seconds`, because either way is cut, gives up with ETIMEDOUT.
One that sends to an end which is gone is reset. Arrival times strictly increase.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from tests.simulation.hosts import KERNEL
from tests.simulation.patience import Patience
from tests.simulation.wire import Act, Trip, Wire

if TYPE_CHECKING:
    from tests.simulation.end import End
    from tests.simulation.network import Network

Bytes: TypeAlias = bytes | bytearray | memoryview
FIN: Final = b""  # no data: the end of the stream
RST: Final = None
Segment: TypeAlias = Bytes | None
TICK: Final = 1e-9


class Pipe:
    """See the module. `back` is the other direction."""

    def __init__(self, network: Network, wire: Wire, source: End, target: End) -> None:
        self.loop, self._rng = network.loop, network.rng
        self.wire, self.source, self.target = wire, source, target
        self.back: Pipe = self
        self.cut = False  # nothing passes now
        self.silent = False  # nothing will ever pass: tripped
        self.trip: Trip | None = None
        self.mangle: Callable[[Bytes], Bytes] | None = None  # damage on the way; the size stays
        self.ending = False  # FIN follows what waits
        self.waiting: deque[Bytes] = deque()
        self.waiting_bytes = 0
        self.flying: deque[Segment] = deque()
        self.held: list[Segment] = []
        self.unacked = 0
        self._lost_acks = 0
        self._free_at = self._last_at = 0.0
        self._pump_due = False
        self._patience = Patience(self)

    @property
    def deaf(self) -> bool:
        """Whether no acknowledgement can come: one of the ways is cut."""
        return self.cut or self.back.cut

    @property
    def unheard(self) -> bool:
        """Whether the sender waits for an acknowledgement."""
        return bool(self.unacked or self.held or self._lost_acks)

    # --- sending

    def send(self, data: Bytes) -> None:
        """Take what was written; whatever the window has no room for waits."""
        self.waiting.append(data)
        self.waiting_bytes += len(data)
        self.pump()

    def finish(self) -> None:
        """Send FIN after everything that was written."""
        self.ending = True
        self.pump()

    def reset(self) -> None:
        """Send RST. It is not sent again if it gets lost."""
        self.waiting.clear()
        self.waiting_bytes = 0
        self.held.clear()
        if not self.cut:
            self._fly(RST, 0)

    def pump(self) -> None:
        """Put on the wire what the window has room for."""
        self._pump_due = False
        waiting, window = self.waiting, self.wire.window_bytes
        while waiting and self.unacked < window:
            data = waiting.popleft()
            size = self.wire.segment_bytes(min(len(data), window - self.unacked), self._rng)
            if self.trip is not None:
                size = min(size, max(1, self.trip.after_bytes))
            if size < len(data):
                view = memoryview(data)
                waiting.appendleft(view[size:])
                data = view[:size]
            self.waiting_bytes -= size
            self.unacked += size
            self._transmit(data, size)
            if self.trip is not None:
                self._count_down(self.trip, size)
        if self.ending and not waiting:
            self.ending = False
            self._transmit(FIN, 0)
        self.source.wrote()

    def _transmit(self, data: Segment, size: int) -> None:
        if self.target.gone and not self.cut:
            self._refuse()
        elif self.cut:
            self.held.append(data)
            self._patience.wear()
        else:
            self._fly(data, size)

    def _fly(self, data: Segment, size: int) -> None:
        if size and self.mangle is not None:
            data = self.mangle(data)
        self._free_at = max(self._free_at, self.loop._now) + size / self.wire.bandwidth
        arrival = self._free_at + self.wire.delay(self._rng)
        self._last_at = max(arrival, self._last_at + TICK)
        self.flying.append(data)
        self.loop.call_at(self._last_at, self.target.arrived, context=self.target.context)

    def _refuse(self) -> None:
        """The other end does not know this connection: its kernel answers RST."""
        self.loop.call_later(2 * self.wire.latency, self.source.was_reset, context=self.source.context)

    # --- acknowledging

    def read(self, size: int) -> None:
        """The peer has read that much: the window opens, as soon as the sender hears of it."""
        if self.back.cut:
            self._lost_acks += size
            self._patience.wear()
            return
        self.unacked -= size
        if (self.waiting or self.ending) and not self._pump_due:
            self._pump_due = True
            self.loop.call_later(self.back.wire.latency, self.pump, context=KERNEL)

    # --- faults

    def set_cut(self, cut: bool) -> None:
        """Let nothing pass, or let it pass again: then what was held is sent after a retransmission pause."""
        cut = cut or self.silent
        if cut == self.cut:
            return
        self.cut = cut
        if cut:
            if self.unacked:
                self._patience.wear()
            if self.back.unacked:
                self.back._patience.wear()
            return
        self._retransmit()
        self.back._hear_acks()

    def stall(self, seconds: float) -> None:
        """Let what is sent from now on arrive no earlier than after that long."""
        self._last_at = max(self._last_at, self.loop._now + seconds)

    def silence(self) -> None:
        """Let nothing pass in this direction any more."""
        self.silent = True
        self.set_cut(True)

    def _count_down(self, trip: Trip, size: int) -> None:
        trip.after_bytes -= size
        if trip.after_bytes > 0:
            return
        self.trip = None
        self.loop.trace("trip", self.source.number, trip.act.value)
        if trip.act is Act.STALL:
            self.stall(trip.seconds)
        elif trip.act is Act.SILENCE:
            self.silence()
        else:
            self._fly(FIN if trip.act is Act.FIN else RST, 0)
            self._refuse()
            self.silent = self.cut = True

    def _retransmit(self) -> None:
        self._patience.renew()
        held, self.held = self.held, []
        pause = self._rng.random() * min(1.0, self.wire.retransmit_seconds)
        if self.target.gone:
            if held or self.unacked:
                self._refuse()
            return
        if held:
            self.stall(pause)
        for data in held:
            self._fly(data, 0 if data is None else len(data))

    def _hear_acks(self) -> None:
        self._patience.renew()
        size, self._lost_acks = self._lost_acks, 0
        if size:
            self.read(size)
