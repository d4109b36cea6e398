"""Receive frames and send bytes. Knows the 4-byte size before each frame, and nothing else of Kafka.

A size is compared with the limit before memory is allocated. Small frames are copied out of one read-ahead buffer, so
that one read can receive many of them. A frame that is longer than the bytes read ahead gets memory of its own, and the
rest is received directly into it. Each frame is a read-only memoryview. Its memory is not written while a view of it
exists, so records may stay views.

The peer can announce any size, so the memory grows with the bytes received: from FIRST_BYTES, by a factor of GROWTH
whenever it is full, up to the size. Beyond FIRST_BYTES, the frame reserves its size in the budget that all connections
share (ReceiveBudget); until that is granted, the connection reads nothing.

    announced  100 MiB       memory  2 MiB → 16 MiB → 100 MiB

The memory of a frame is used for the next one, where it is large enough: new memory for each response of 6 MB costs
more (it is zeroed, enters the process page by page, and is copied when it grows) than receiving the bytes.
"""

from __future__ import annotations

import asyncio
import struct
import sys
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, cast

import attrs

from kclient.change_signal import ChangeSignal
from kclient.errors import InvalidFrameError

SIZE = struct.Struct(">i")
SMALLEST_FRAME = 4  # a response is at least its correlation id
READ_AHEAD_BYTES = 65_536
FIRST_BYTES = 2_097_152  # most responses to Fetch are shorter
GROWTH = 8
KEPT_BYTES = 16_777_216  # of memory that waits for the next frames, for all connections together
ROUND_BYTES = (
    1_048_576  # responses to Fetch differ a little in size, and shall fit into the memory of each other
)

Bytes = bytes | bytearray | memoryview


class FrameProtocol(asyncio.BufferedProtocol):
    """Reads and writes one connection. Calls `on_frame` for each frame and `on_lost` once at the end."""

    def __init__(
        self,
        limit: int,
        on_frame: Callable[[memoryview], None],
        on_lost: Callable[[Exception | None], None],
        budget: ReceiveBudget | None = None,
    ) -> None:
        self.limit = limit
        self.smallest = SMALLEST_FRAME
        self.writable: bool = True
        self.write_changed: Final = ChangeSignal()
        self.bytes_received: int = 0
        self._transport: asyncio.Transport | None = None
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._refused: InvalidFrameError | None = None
        self._ahead = memoryview(bytearray(READ_AHEAD_BYTES))
        self._ahead_end = 0
        self._memory = bytearray()  # of the long frame that is being received; may be longer
        self._frame: memoryview | None = None  # that frame, as far as it may be filled now
        self._filled = 0
        self._size = 0  # of the long frame, as announced
        self._budget = ReceiveBudget(sys.maxsize) if budget is None else budget
        self._claim: Reservation | None = None

    # --- reading

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._frame is not None:
            return self._frame[self._filled :]
        return self._ahead[self._ahead_end :]

    def buffer_updated(self, nbytes: int) -> None:
        self.bytes_received += nbytes
        if self._frame is None:
            self._ahead_end += nbytes
            self._take_frames()
            return
        self._filled += nbytes
        if self._filled == self._size:
            frame, self._frame = self._frame, None
            self._budget.keep(self._memory)
            self._memory = bytearray()
            self._release()
            self._on_frame(frame.toreadonly())
        elif self._filled == len(self._frame):
            self._grow()

    def _take_frames(self) -> None:
        at, end = 0, self._ahead_end
        while end - at >= SIZE.size:
            (size,) = SIZE.unpack_from(self._ahead, at)
            if not self.smallest <= size <= self.limit:
                self._refuse(size)
                return
            at += SIZE.size
            if end - at < size:
                at = self._start_frame(size, at)
                break
            frame = memoryview(bytes(self._ahead[at : at + size]))
            at += size
            self._on_frame(frame)
            if self._transport is None or self._transport.is_closing():
                return
        self._keep_from(at)

    def _start_frame(self, size: int, at: int) -> int:
        """Find memory for an incomplete frame and copy the bytes that have been received."""
        self._size = size
        first = min(size, FIRST_BYTES)
        self._memory = self._budget.unused_memory(size) or _new_memory(first)
        self._frame = memoryview(self._memory)[:first]
        self._filled = self._ahead_end - at
        self._frame[: self._filled] = self._ahead[at : self._ahead_end]
        return self._ahead_end

    def _grow(self) -> None:
        """Continue in more memory if the budget grants the whole frame, else stop reading until it does."""
        if self._claim is None:
            self._claim = self._budget.claim(self._size, self._granted)
        if self._claim.is_granted:
            self._enlarge()
        elif self._transport is not None:
            self._transport.pause_reading()

    def _granted(self) -> None:
        self._enlarge()
        if self._transport is not None:
            self._transport.resume_reading()

    def _enlarge(self) -> None:
        if self._frame is not None:
            size = min(self._size, GROWTH * len(self._frame))
            if size > len(self._memory):
                self._budget.drop_unused()
                self._memory = _new_memory(-(-size // ROUND_BYTES) * ROUND_BYTES)
            larger = memoryview(self._memory)[:size]
            if larger.obj is not self._frame.obj:
                larger[: self._filled] = self._frame
            self._frame = larger

    def _release(self) -> None:
        if self._claim is not None:
            claim, self._claim = self._claim, None
            self._budget.release(claim)

    def _keep_from(self, at: int) -> None:
        """Move the bytes of an incomplete size field to the front of the buffer."""
        left = self._ahead_end - at
        self._ahead[:left] = bytes(self._ahead[at : self._ahead_end])
        self._ahead_end = left

    def _refuse(self, size: int) -> None:
        self._refused = InvalidFrameError(
            f"the peer announced a frame of {size} bytes; between {self.smallest} and {self.limit} are possible. "
            "Either it does not speak Kafka's protocol or the stream is damaged. "
            "Check the address; for responses that are really this large raise max_frame_bytes.",
            size=size,
            limit=self.limit,
        )
        self.abort()

    # --- writing

    def write(self, parts: Iterable[Bytes]) -> None:
        """Send the parts in their order. Check `writable` first: otherwise a slow peer fills the memory."""
        # A transport that has lost its socket calls connection_lost later. Until then it drops what is written in
        # Python 3.11, and raises a TypeError in 3.12 and newer.
        if self._transport is not None and not self._transport.is_closing():
            self._transport.writelines(parts)

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        self.write_changed.notify()

    # --- the connection itself

    @property
    def connected(self) -> bool:
        """Whether the transport is open."""
        return self._transport is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # No isinstance: the transports of uvloop have these methods, and not this base class.
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._frame = None
        self._memory = bytearray()
        self._release()
        self._on_lost(self._refused or exc)

    def abort(self) -> None:
        """Close the connection at once; bytes that were not sent are dropped."""
        if self._transport is not None:
            self._transport.abort()


@attrs.define(eq=False)
class Reservation:
    """The bytes of one response: granted, or waiting, with `on_granted` to be called later."""

    size: int
    on_granted: Callable[[], None]
    is_granted: bool = False


class ReceiveBudget:
    """Limits the bytes of long responses that all connections of a client receive at the same time.

    At most `limit` bytes are granted, and always at least one response. A connection reserves the whole response at
    once, so two half-received responses never wait for each other.

    It keeps the memory of up to KEPT_BYTES of them, in use or not, for the next ones.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used: int = 0
        self._waiting: deque[Reservation] = deque()
        self._kept: list[bytearray] = []

    def unused_memory(self, size: int) -> bytearray | None:
        """Return kept memory of at least `size` bytes that nothing refers to any more; its content is old."""
        fitting = (memory for memory in self._kept if len(memory) >= size)
        return next((memory for memory in fitting if not _is_viewed(memory)), None)

    def keep(self, memory: bytearray) -> None:
        """Keep the memory of a response that was received, instead of smaller memory if there is no room."""
        if len(memory) > KEPT_BYTES or any(kept is memory for kept in self._kept):
            return
        self._kept.append(memory)
        self._kept.sort(key=len)
        while sum(map(len, self._kept)) > KEPT_BYTES:
            del self._kept[0]

    def drop_unused(self) -> None:
        """Give back kept memory that nothing refers to: a response needs more, and so may the next ones."""
        self._kept = [memory for memory in self._kept if _is_viewed(memory)]

    def claim(self, size: int, on_granted: Callable[[], None]) -> Reservation:
        """Reserve `size` bytes. If they are not granted now, `on_granted` is called later. Always call `release`."""
        claim = Reservation(size, on_granted)
        if not self._waiting and self._fits(claim):
            self._grant(claim)
        else:
            self._waiting.append(claim)
        return claim

    def release(self, claim: Reservation) -> None:
        """Return the bytes, because the response is complete or its connection has ended."""
        if not claim.is_granted:
            self._waiting.remove(claim)
            return
        self.used -= claim.size
        while self._waiting and self._fits(self._waiting[0]):
            first = self._waiting.popleft()
            self._grant(first)
            first.on_granted()

    def _fits(self, claim: Reservation) -> bool:
        return not self.used or self.used + claim.size <= self.limit

    def _grant(self, claim: Reservation) -> None:
        claim.is_granted = True
        self.used += claim.size


def _new_memory(size: int) -> bytearray:
    """Return so much memory with room for one byte more, so that `_is_viewed` moves nothing."""
    memory = bytearray(size + 1)
    memory.pop()
    return memory


def _is_viewed(memory: bytearray) -> bool:
    """Return whether there is a memoryview of it: then Python refuses to change the size of a bytearray."""
    try:
        memory.append(0)
    except BufferError:
        return True
    memory.pop()
    return False
