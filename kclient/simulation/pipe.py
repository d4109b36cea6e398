"""One direction of a connection: what was sent arrives in its order, or never.

    waiting   written, beyond the window         flying   on the wire, each with a timer for its arrival
    held      sent while the way is cut          unacked  bytes that the peer has not read yet

A sender that gets no acknowledgement for `retransmit_seconds`, because either way is cut, gives up with ETIMEDOUT.
One that sends to an end which is gone is reset. Arrival times strictly increase.
"""

from __future__ import annotations

import asyncio
import contextvars
import enum
import errno
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Final, Protocol, TypeAlias

import attrs

from kclient.simulation.loop import SimLoop
from kclient.simulation.process import KERNEL

Bytes: TypeAlias = bytes | bytearray | memoryview
FIN: Final = b""  # no data: the end of the stream
RST: Final = None
Segment: TypeAlias = Bytes | None
TICK: Final = 1e-9
LARGEST_SEGMENT_BYTES: Final = 65_536


@attrs.define
class Wire:
    """Settings of one direction; shared by its connections, so a change counts at once. Times in seconds."""

    latency: float = 0.001
    jitter: float = 0.0005  # added to the latency, drawn for each segment
    bandwidth: float = float("inf")  # bytes/s of each connection
    split: float = (
        0.02  # how likely a segment is cut at a random byte; of the cuts, a quarter leaves one byte
    )
    coalesce: float = 0.1  # how likely an arrived segment waits for the one after it
    window_bytes: int = (
        262_144  # sent and not yet read by the peer; what is written beyond waits at the sender
    )
    retransmit_seconds: float = 60.0  # how long a sender goes on without an acknowledgement

    def segment_bytes(self, size: int, rng: Random) -> int:
        """Return how much of `size` bytes the next segment takes."""
        size = min(size, LARGEST_SEGMENT_BYTES)
        if size > 1 and self.split and rng.random() < self.split:
            return 1 if rng.random() < 0.25 else rng.randrange(1, size)
        return size

    def delay(self, rng: Random) -> float:
        """Return the seconds from the end of sending to the arrival."""
        return self.latency + self.jitter * rng.random()


class Act(enum.Enum):
    """What a tripped connection does. Both ends lose it with FIN and RST; they keep it with the other two."""

    FIN = "fin"  # the reader sees an orderly end in mid-frame, the sender a reset
    RST = "rst"  # both see a reset
    STALL = "stall"  # this direction waits for some seconds
    SILENCE = "silence"  # nothing passes in this direction any more


@attrs.define
class Trip:
    """Do `act` once `after_bytes` more bytes have been sent in a direction."""

    act: Act
    after_bytes: int
    seconds: float = 0.0


class PipeEnd(Protocol):
    """What a pipe needs of the ends of its connection."""

    number: int
    context: contextvars.Context
    gone: bool

    def arrived(self) -> None:
        """Take the next segment of `flying`."""

    def wrote(self) -> None:
        """Learn that bytes left the buffer."""

    def was_reset(self) -> None:
        """Learn that the peer's kernel answered RST."""

    def fail(self, problem: OSError) -> None:
        """Learn that the connection broke."""


class RetransmitTimer:
    """Ends the source of a pipe that gets no acknowledgement. On its host's time: a dead host never gives up."""

    of_the_network: bool = True  # its timers are not those of a program

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Something is sent without an acknowledgement from now on."""
        if self._timer is None:
            source, limit = self._pipe.source, self._pipe.wire.retransmit_seconds
            self._timer = self._pipe.loop.call_later(limit, self._expired, context=source.context)

    def stop_if_acknowledged(self) -> None:
        """Stop if both ways are free again."""
        if self._timer is not None and not self._pipe.acks_cut:
            self._timer.cancel()
            self._timer = None

    def _expired(self) -> None:
        self._timer = None
        if self._pipe.acks_cut and self._pipe.awaits_ack:
            self._pipe.source.fail(TimeoutError(errno.ETIMEDOUT, "Connection timed out"))


class Pipe:
    """See the module. `back` is the other direction."""

    def __init__(self, loop: SimLoop, rng: Random, wire: Wire, source: PipeEnd, target: PipeEnd) -> None:
        self.loop: SimLoop = loop
        self.wire: Wire = wire
        self.source: PipeEnd = source
        self.target: PipeEnd = target
        self.back: Pipe = self
        self.cut: bool = False  # nothing passes now
        self.silent: bool = False  # nothing will ever pass: tripped
        self.trip: Trip | None = None
        self.mangle: Callable[[Bytes], Bytes] | None = None  # damage on the way; the size stays
        self.ending: bool = False  # FIN follows what waits
        self.waiting: deque[Bytes] = deque()
        self.waiting_bytes: int = 0
        self.flying: deque[Segment] = deque()
        self.held: list[Segment] = []
        self.unacked: int = 0
        self._rng = rng
        self._lost_acks = 0
        self._free_at = self._last_at = 0.0
        self._pump_due = False
        self._retransmits = RetransmitTimer(self)

    @property
    def acks_cut(self) -> bool:
        """Whether no acknowledgement can come: one of the ways is cut."""
        return self.cut or self.back.cut

    @property
    def awaits_ack(self) -> bool:
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
            self.refuse()
        elif self.cut:
            self.held.append(data)
            self._retransmits.start()
        else:
            self._fly(data, size)

    def _fly(self, data: Segment, size: int) -> None:
        if size and self.mangle is not None and data is not None:
            data = self.mangle(data)
        self._free_at = max(self._free_at, self.loop.time()) + size / self.wire.bandwidth
        arrival = self._free_at + self.wire.delay(self._rng)
        self._last_at = max(arrival, self._last_at + TICK)
        self.flying.append(data)
        self.loop.call_at(self._last_at, self.target.arrived, context=self.target.context)

    def refuse(self) -> None:
        """Reset the sender: the other end does not know this connection, so its kernel answers RST."""
        self.loop.call_later(2 * self.wire.latency, self.source.was_reset, context=self.source.context)

    # --- acknowledging

    def acknowledge(self, size: int) -> None:
        """The peer has read that much: the window opens, as soon as the sender learns of it."""
        if self.back.cut:
            self._lost_acks += size
            self._retransmits.start()
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
                self._retransmits.start()
            if self.back.unacked:
                self.back._retransmits.start()
            return
        self._retransmit()
        self.back._receive_lost_acks()

    def stall(self, seconds: float) -> None:
        """Let what is sent from now on arrive no earlier than after that long."""
        self._last_at = max(self._last_at, self.loop.time() + seconds)

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
            self.refuse()
            self.silent = self.cut = True

    def _retransmit(self) -> None:
        self._retransmits.stop_if_acknowledged()
        held, self.held = self.held, []
        pause = self._rng.random() * min(1.0, self.wire.retransmit_seconds)
        if self.target.gone:
            if held or self.unacked:
                self.refuse()
            return
        if held:
            self.stall(pause)
        for data in held:
            self._fly(data, 0 if data is None else len(data))

    def _receive_lost_acks(self) -> None:
        self._retransmits.stop_if_acknowledged()
        size, self._lost_acks = self._lost_acks, 0
        if size:
            self.acknowledge(size)
