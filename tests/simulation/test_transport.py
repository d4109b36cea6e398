"""One connection: order, pieces, windows, both ends of its end."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from kclient.simulation.world import World, run
from tests.simulation.support import RecordingBufferedProtocol, RecordingProtocol, connected, plain

SAID = bytes(random.Random(1).randbytes(300_000))


def test_bytes_arrive_in_order_in_pieces_down_to_one_byte() -> None:
    async def main(world: World) -> Any:
        plain(world, split=0.9, jitter=0.01, coalesce=0.3)
        pair = await connected(world)
        for at in range(0, 60_000, 1000):
            pair.a.call(pair.transport.write, SAID[at : at + 1000])
        await asyncio.sleep(5)
        return pair.far

    far = run(1, main).result
    assert far.heard == SAID[:60_000]
    sizes = {len(piece) for piece in far.pieces}
    assert 1 in sizes
    assert len(sizes) > 50
    assert far.times == sorted(set(far.times))


def test_pieces_come_together_too() -> None:
    async def main(world: World) -> Any:
        plain(world, coalesce=1.0)
        pair = await connected(world)
        for _ in range(10):
            pair.a.call(pair.transport.write, b"piece")
        await asyncio.sleep(1)
        return pair.far

    assert run(1, main).result.pieces == [b"piece" * 10]


def test_latency_and_bandwidth() -> None:
    async def main(world: World) -> Any:
        plain(world, latency=0.2, bandwidth=1000.0)
        pair = await connected_after(world, 2.0)
        began = world.loop.time()
        pair.a.call(pair.transport.write, b"x" * 100)
        pair.a.call(pair.transport.write, b"x" * 100)
        await asyncio.sleep(5)
        return [at - began for at in pair.far.times]

    assert run(1, main).result == pytest.approx([0.3, 0.4], abs=1e-4)


async def connected_after(world: World, seconds: float) -> Any:
    task = asyncio.create_task(connected(world))
    await asyncio.sleep(seconds)
    return await task


def test_a_slow_reader_pauses_the_writer() -> None:
    async def main(world: World) -> Any:
        plain(world, window_bytes=100_000)
        pair = await connected(world)
        pair.way.server.freeze()
        pair.a.call(pair.transport.write, SAID)
        await asyncio.sleep(1)
        assert pair.near.events == ["made", "pause"]
        assert pair.transport.get_write_buffer_size() == 200_000
        assert pair.far.pieces == []
        pair.way.server.thaw()
        await asyncio.sleep(1)
        assert pair.near.events == ["made", "pause", "resume"]
        assert pair.transport.get_write_buffer_size() == 0
        return pair.far.heard

    assert run(1, main).result == SAID


def test_a_paused_writer_continues_below_the_low_mark() -> None:
    class Measures(RecordingProtocol):
        def resume_writing(self) -> None:
            self.events.append(str(self.transport.get_write_buffer_size()))

    async def main(world: World) -> Any:
        plain(world, window_bytes=1000)
        pair = await connected(world, Measures())
        pair.transport.set_write_buffer_limits(high=50_000, low=10_000)
        pair.a.call(pair.transport.write, SAID[:100_000])
        await asyncio.sleep(10)
        return pair.near.events

    assert run(1, main).result == ["made", "pause", "10000"]


def test_a_protocol_pauses_reading() -> None:
    async def main(world: World) -> Any:
        plain(world)
        pair = await connected(world)
        pair.b.call(pair.way.server.pause_reading)
        pair.a.call(pair.transport.write, b"one")
        await asyncio.sleep(1)
        assert not pair.way.server.is_reading()
        heard = pair.far.heard
        pair.b.call(pair.way.server.resume_reading)
        await asyncio.sleep(1)
        return heard, pair.far.heard

    assert run(1, main).result == (b"", b"one")


def test_a_buffered_protocol_receives_what_fits_its_buffer() -> None:
    async def main(world: World) -> Any:
        plain(world)
        pair = await connected(world, far=RecordingBufferedProtocol(7))
        pair.a.call(pair.transport.writelines, [b"abcdefg", memoryview(b"hij"), bytearray(b"klm")])
        await asyncio.sleep(1)
        return pair.far.pieces

    assert run(1, main).result == [b"abcdefg", b"hijklm"]


def test_a_buffered_protocol_pauses_in_the_middle_of_a_segment() -> None:
    class Pauses(RecordingBufferedProtocol):
        def buffer_updated(self, nbytes: int) -> None:
            super().buffer_updated(nbytes)
            self.transport.pause_reading()

    async def main(world: World) -> Any:
        plain(world)
        pair = await connected(world, far=Pauses(7))
        pair.a.call(pair.transport.write, b"abcdefghijklm")
        pair.a.call(pair.transport.close)
        await asyncio.sleep(1)
        first, lost = list(pair.far.pieces), pair.far.lost
        pair.b.call(pair.far.transport.resume_reading)
        await asyncio.sleep(1)
        second = list(pair.far.pieces)
        pair.b.call(pair.far.transport.resume_reading)
        await asyncio.sleep(1)
        return first, lost, second, pair.far.lost

    assert run(1, main).result == ([b"abcdefg"], False, [b"abcdefg", b"hijklm"], True)


def test_a_protocol_that_raises_loses_its_connection() -> None:
    def wrong(data: bytes) -> bytes:
        raise ValueError("no answer")

    async def main(world: World) -> Any:
        pair = await connected(world, far=RecordingProtocol(wrong))
        pair.a.call(pair.transport.write, b"question")
        await asyncio.sleep(1)
        return pair.near.events, pair.far.problem

    outcome = run(1, main)
    assert outcome.result[0] == ["made", "eof", "lost"]
    assert isinstance(outcome.result[1], ValueError)
    assert "no answer" in outcome.findings[0]


def test_closing_sends_what_waits_first() -> None:
    async def main(world: World) -> Any:
        plain(world, window_bytes=10_000)
        pair = await connected(world)

        def say_and_close() -> None:
            pair.transport.write(SAID)
            pair.transport.close()
            pair.transport.write(b"too late")

        pair.a.call(say_and_close)
        await asyncio.sleep(5)
        assert not world.network.connections
        return pair

    pair = run(1, main).result
    assert pair.far.heard == SAID
    assert pair.far.events == ["made", "eof", "lost"]
    assert pair.near.problem is None
    assert pair.far.problem is None


def test_aborting_drops_what_waits() -> None:
    async def main(world: World) -> Any:
        plain(world, window_bytes=10_000)
        pair = await connected(world)

        def say_and_abort() -> None:
            pair.transport.write(SAID)
            pair.transport.abort()

        pair.a.call(say_and_abort)
        await asyncio.sleep(5)
        return pair

    pair = run(1, main).result
    assert pair.far.heard == SAID[:10_000]
    assert pair.far.events == ["made", "eof", "lost"]


def test_half_a_connection_continues() -> None:
    async def main(world: World) -> Any:
        pair = await connected(world, far=RecordingProtocol(lambda data: b"answer", keeps_open=True))

        def say_and_end() -> None:
            pair.transport.write(b"question")
            pair.transport.write_eof()

        pair.a.call(say_and_end)
        await asyncio.sleep(1)
        pair.b.call(pair.far.transport.write, b" and more")
        await asyncio.sleep(1)
        pair.b.call(pair.far.transport.close)
        await asyncio.sleep(1)
        return pair

    pair = run(1, main).result
    assert pair.near.heard == b"answer and more"
    assert pair.far.events == pair.near.events == ["made", "eof", "lost"]


def test_what_is_left_unread_makes_closing_a_reset() -> None:
    async def main(world: World) -> Any:
        pair = await connected(world)
        pair.b.call(pair.way.server.pause_reading)
        pair.a.call(pair.transport.write, b"never read")
        await asyncio.sleep(1)
        pair.b.call(pair.way.server.close)
        await asyncio.sleep(1)
        return pair.near.problem

    assert isinstance(run(1, main).result, ConnectionResetError)


def test_writing_to_an_end_that_is_gone_is_answered_by_a_reset() -> None:
    async def main(world: World) -> Any:
        pair = await connected(world, near=RecordingProtocol(keeps_open=True))
        pair.b.call(pair.far.transport.close)
        await asyncio.sleep(1)
        assert pair.near.events == ["made", "eof"]
        pair.a.call(pair.transport.write, b"anyone there?")
        await asyncio.sleep(1)
        return pair.near.problem

    assert isinstance(run(1, main).result, ConnectionResetError)


def test_what_is_under_way_to_an_end_that_closes_is_answered_by_a_reset() -> None:
    async def main(world: World) -> Any:
        pair = await connected(world, near=RecordingProtocol(keeps_open=True))
        pair.a.call(pair.transport.write, b"anyone there?")
        pair.b.call(pair.far.transport.close)
        await asyncio.sleep(1)
        return pair.near.events, pair.near.problem

    events, problem = run(1, main).result
    assert events == ["made", "eof", "lost"]
    assert isinstance(problem, ConnectionResetError)


def test_addresses_and_limits() -> None:
    async def main(world: World) -> None:
        pair = await connected(world)
        assert pair.transport.get_extra_info("peername") == ("10.0.0.2", 9092)
        assert pair.transport.get_extra_info("sockname")[0] == "10.0.0.1"
        assert pair.far.transport.get_extra_info("peername") == pair.transport.get_extra_info("sockname")
        assert pair.transport.get_extra_info("socket") is None
        pair.transport.set_write_buffer_limits(high=100)
        assert pair.transport.get_write_buffer_limits() == (25, 100)
        with pytest.raises(ValueError, match="high"):
            pair.transport.set_write_buffer_limits(high=1, low=2)
        with pytest.raises(TypeError):
            pair.transport.write("text")

    run(1, main)
