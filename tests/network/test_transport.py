"""Frames, fed as literal bytes."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Iterable

import pytest

from kclient.errors import InvalidFrameError
from kclient.network import transport
from kclient.network.transport import FIRST_BYTES, GROWTH, FrameProtocol, ReceiveBudget


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.protocol: FrameProtocol | None = None
        self.aborted = self.paused = False

    def writelines(self, parts: Iterable[bytes | bytearray | memoryview]) -> None:
        self.written += b"".join(parts)

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


class Receiver:
    """A protocol on such a transport, and the calls that its owner got."""

    def __init__(self, limit: int = 1000, budget: ReceiveBudget | None = None) -> None:
        self.frames: list[memoryview] = []
        self.lost: list[Exception | None] = []
        self.wire = Wire()
        self.protocol = FrameProtocol(limit, self.frames.append, self.lost.append, budget)
        self.protocol.connection_made(self.wire)

    def feed(self, data: bytes, step: int = 0) -> None:
        """Hand bytes over as a transport does, in pieces of at most `step`."""
        step = step or len(data)
        while data and not self.wire.aborted:
            room = self.protocol.get_buffer(-1)
            assert len(room) > 0
            count = min(step, len(room), len(data))
            room[:count] = data[:count]
            data = data[count:]
            self.protocol.buffer_updated(count)

    def received(self) -> list[bytes]:
        return [bytes(frame) for frame in self.frames]


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


BODIES = [b"abcd", b"x" * 5, bytes(range(256)) * 3, b"last"]


@pytest.mark.spec("B.4.14")
@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 7, 100, 0])
def test_frames_come_out_whole_however_the_bytes_are_cut(step: int) -> None:
    receiver = Receiver()
    receiver.feed(b"".join(map(frame, BODIES)), step)
    assert receiver.received() == BODIES


def test_a_frame_longer_than_the_read_ahead_is_received_into_its_own_buffer() -> None:
    receiver = Receiver(limit=1_000_000)
    long = bytes(range(251)) * 1200  # 301,200 bytes
    receiver.feed(frame(b"abcd") + frame(long) + frame(b"efgh"))
    assert receiver.received() == [b"abcd", long, b"efgh"]


def test_frames_stay_as_they_are_while_more_arrives() -> None:
    receiver = Receiver()
    receiver.feed(frame(b"first frame"))
    view = receiver.frames[0]
    receiver.feed(frame(b"another one, which must not overwrite the first"))
    assert bytes(view) == b"first frame"
    assert view.readonly


@pytest.mark.spec("H-01", "B.4.14")
@pytest.mark.parametrize("size", [-1, -(2**31), 0, 3, 1001, 2**31 - 1])
def test_an_impossible_size_closes_the_connection_and_allocates_nothing(size: int) -> None:
    receiver = Receiver(limit=1000)
    before = receiver.protocol.get_buffer(-1).nbytes
    receiver.feed(size.to_bytes(4, "big", signed=True) + b"whatever follows")
    assert receiver.wire.aborted
    assert receiver.protocol.get_buffer(-1).nbytes < before  # still the read-ahead buffer, no frame's own
    receiver.protocol.connection_lost(None)
    (error,) = receiver.lost
    assert isinstance(error, InvalidFrameError)
    assert (error.size, error.limit) == (size, 1000)
    assert receiver.frames == []


@pytest.mark.spec("H-01")
def test_the_largest_and_the_smallest_frame_pass() -> None:
    receiver = Receiver(limit=1000)
    receiver.feed(frame(b"y" * 1000) + frame(b"tiny"))
    assert receiver.received() == [b"y" * 1000, b"tiny"]


def test_nothing_is_returned_after_the_owner_gave_up() -> None:
    frames: list[memoryview] = []
    wire = Wire()
    protocol = FrameProtocol(1000, lambda got: (frames.append(got), protocol.abort()), lambda _: None)
    protocol.connection_made(wire)
    data = frame(b"wrong") + frame(b"later")
    protocol.get_buffer(-1)[: len(data)] = data
    protocol.buffer_updated(len(data))
    assert [bytes(one) for one in frames] == [b"wrong"]


def test_parts_go_out_one_after_the_other() -> None:
    receiver = Receiver()
    receiver.protocol.write([b"\0\0\0\5", memoryview(b"he"), bytearray(b"llo")])
    assert receiver.wire.written == b"\0\0\0\5hello"


def test_a_full_socket_is_reported_and_its_end_too() -> None:
    receiver = Receiver()
    receiver.protocol.pause_writing()
    assert not receiver.protocol.writable
    receiver.protocol.resume_writing()
    assert receiver.protocol.writable
    assert receiver.protocol.write_changed.count == 1


def test_the_end_of_the_connection_carries_its_cause() -> None:
    receiver = Receiver()
    cause = ConnectionResetError("reset")
    receiver.protocol.connection_lost(cause)
    assert receiver.lost == [cause]
    assert not receiver.protocol.connected


def test_many_frames_come_with_one_read() -> None:
    receiver = Receiver()
    small = frame(b"0123")
    count = transport.READ_AHEAD_BYTES // len(small)
    receiver.feed(small * count)
    assert len(receiver.frames) == count


def test_the_buffer_of_a_frame_grows_with_what_has_come() -> None:
    receiver = Receiver(limit=100_000_000)
    receiver.feed((100_000_000).to_bytes(4, "big") + b"start")
    assert len(receiver.protocol.get_buffer(-1)) <= FIRST_BYTES
    receiver.feed(bytes(FIRST_BYTES))
    assert len(receiver.protocol.get_buffer(-1)) <= GROWTH * FIRST_BYTES


def test_a_frame_that_outgrows_its_buffer_comes_out_whole() -> None:
    receiver = Receiver(limit=100_000_000)
    long = bytes(range(256)) * 80_000  # 20 MB
    receiver.feed(frame(long) + frame(b"next"), 100_000)
    assert receiver.received() == [long, b"next"]


def test_long_frames_wait_for_the_budget_of_all_connections() -> None:
    budget = ReceiveBudget(2 * FIRST_BYTES)
    first, second, third = (Receiver(limit=100_000_000, budget=budget) for _ in range(3))
    body = bytes(FIRST_BYTES + 100)
    for receiver in (first, second, third):
        receiver.feed(frame(body)[: 4 + FIRST_BYTES])
    assert [each.wire.paused for each in (first, second, third)] == [False, True, True]
    third.protocol.connection_lost(None)
    first.feed(body[FIRST_BYTES:])
    assert first.received() == [body]
    assert not second.wire.paused
    second.feed(body[FIRST_BYTES:])
    assert second.received() == [body]
    assert budget.used == 0


def test_a_closed_connection_returns_its_share_of_the_budget() -> None:
    budget = ReceiveBudget(2 * FIRST_BYTES)
    first, second = (Receiver(limit=100_000_000, budget=budget) for _ in range(2))
    for receiver in (first, second):
        receiver.feed(frame(bytes(FIRST_BYTES + 100))[: 4 + FIRST_BYTES])
    first.protocol.connection_lost(None)
    assert not second.wire.paused
    second.protocol.connection_lost(None)
    assert budget.used == 0


LONG = 3 * FIRST_BYTES


def memory_of(receiver: Receiver) -> object:
    """The object that the bytes of an incomplete frame are received into."""
    return receiver.protocol.get_buffer(-1).obj


def begin(receiver: Receiver, body: bytes) -> None:
    receiver.feed(frame(body)[: FIRST_BYTES + 10])


def test_the_memory_of_a_frame_is_used_for_the_next_one_of_any_connection() -> None:
    budget = ReceiveBudget(100 * FIRST_BYTES)
    first, second = (Receiver(limit=LONG, budget=budget) for _ in range(2))
    begin(first, b"a" * LONG)
    used = memory_of(first)
    first.feed(b"a" * (LONG - FIRST_BYTES - 6))
    assert first.received() == [b"a" * LONG]
    first.frames.clear()
    begin(second, b"b" * (LONG - 1))
    assert memory_of(second) is used
    second.feed(b"b" * (LONG - FIRST_BYTES - 7))
    assert second.received() == [b"b" * (LONG - 1)]


def test_the_memory_of_a_frame_is_not_written_while_a_part_of_it_is_in_use() -> None:
    receiver = Receiver(limit=LONG)
    receiver.feed(frame(b"a" * LONG))
    part = receiver.frames.pop()[LONG - 5 :]
    receiver.feed(frame(b"b" * LONG))
    assert bytes(part) == b"aaaaa"
    assert receiver.received() == [b"b" * LONG]


def test_a_frame_in_used_memory_grows_with_what_has_come_and_waits_for_the_budget() -> None:
    budget = ReceiveBudget(LONG)
    first, second = (Receiver(limit=LONG, budget=budget) for _ in range(2))
    first.feed(frame(b"a" * LONG))
    first.frames.clear()
    begin(second, b"c" * LONG)
    first.feed(LONG.to_bytes(4, "big") + b"b")
    assert len(first.protocol.get_buffer(-1)) == FIRST_BYTES - 1
    first.feed(b"b" * (FIRST_BYTES - 1))
    assert first.wire.paused


def test_the_memory_kept_for_next_frames_is_bounded() -> None:
    budget = ReceiveBudget(2**40)
    receiver = Receiver(limit=2 * transport.KEPT_BYTES, budget=budget)
    tracemalloc.start()
    try:
        for size in (LONG, 2 * LONG, transport.KEPT_BYTES + 1, 2 * LONG):
            receiver.feed(frame(bytes(size)))  # none is dropped yet
        receiver.frames.clear()
        assert tracemalloc.get_traced_memory()[0] < transport.KEPT_BYTES + 1_000_000
    finally:
        tracemalloc.stop()


def test_memory_that_is_too_small_is_given_back_before_more_is_allocated() -> None:
    receiver = Receiver(limit=2 * LONG)
    tracemalloc.start()
    try:
        receiver.feed(frame(bytes(LONG)))
        receiver.frames.clear()
        begin(receiver, bytes(2 * LONG))
        receiver.feed(bytes(FIRST_BYTES))
        assert tracemalloc.get_traced_memory()[0] < 2 * LONG + 2_000_000
    finally:
        tracemalloc.stop()


def test_what_is_written_after_the_socket_was_lost_is_dropped() -> None:
    receiver = Receiver()
    receiver.wire.aborted = True
    receiver.protocol.write([b"late"])
    assert receiver.wire.written == b""


def test_a_real_transport_drops_it_in_every_python() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        made = FrameProtocol(1000, lambda frame: None, lambda exc: None)
        transport, protocol = await loop.create_connection(lambda: made, *address[:2])
        transport.abort()  # connection_lost follows in the loop's next turn
        protocol.write([b"late", b"too"])
        server.close()

    asyncio.run(scenario())
