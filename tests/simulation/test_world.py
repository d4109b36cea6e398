"""One run: the same seed gives the same history in every process, and nothing real is reached from it."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import secrets
import socket
import threading
import time
import uuid
import warnings
import weakref

import pytest

from kclient.simulation.stuck import SimulationDeadlockError
from kclient.simulation.world import EPOCH, SimulationForbiddenError, World, run
from tests.simulation.support import RecordingProtocol, connected, in_another_process


async def chatter(world: World) -> int:
    """Two ends that answer each other for a minute over a wire that cuts and delays."""
    pair = await connected(
        world,
        RecordingProtocol(lambda data: data[: random.randrange(1, 200)]),
        RecordingProtocol(lambda data: data * 2),
    )
    pair.a.call(pair.transport.write, bytes(range(100)))
    await asyncio.sleep(5.0)
    world.loop.trace("heard", len(pair.near.pieces))
    return len(pair.near.heard)


def test_the_same_seed_gives_the_same_history() -> None:
    one, again, other = (run(seed, chatter, history=True) for seed in (3, 3, 4))
    assert one == again
    assert one.digest != other.digest
    assert any("heard" in line for line in one.history)
    assert run(3, chatter).digest == one.digest
    assert run(3, chatter).history == ()


def test_the_same_seed_gives_the_same_digest_in_every_process() -> None:
    program = "from tests.simulation.test_world import chatter, run; print(run(3, chatter).digest)"
    digests = [in_another_process(program, hash_seed) for hash_seed in ("0", "1")]
    assert digests == [run(3, chatter).digest] * 2


def test_one_byte_more_is_another_digest() -> None:
    def says(words: bytes) -> str:
        async def main(world: World) -> None:
            pair = await connected(world)
            pair.a.call(pair.transport.write, words)
            await asyncio.sleep(1)

        return run(3, main).digest

    assert says(b"12345") == says(b"abcde")
    assert says(b"12345") != says(b"123456")


def test_clocks_are_virtual() -> None:
    async def main(world: World) -> None:
        assert time.time() == pytest.approx(EPOCH)
        await asyncio.sleep(100)
        assert time.time() == pytest.approx(EPOCH + 100)
        assert time.time_ns() == pytest.approx((EPOCH + 100) * 1e9)
        assert time.monotonic() == time.perf_counter() == world.loop.time()
        assert time.monotonic_ns() == pytest.approx(100e9, rel=1e-3)

    real = time.time()
    run(1, main)
    assert 0 <= time.time() - real < 30


def test_randomness_is_the_seeds() -> None:
    async def main(world: World) -> list[object]:
        drawn = [random.random(), os.urandom(8), secrets.token_hex(8), uuid.uuid4()]
        return [
            *drawn,
            world.rng.random(),
            world.runtime("a").random_bytes(8),
            world.runtime("a").random_bytes(8),
        ]

    state = random.getstate()
    one, again, other = (run(seed, main).result for seed in (1, 1, 2))
    assert one == again
    assert not set(map(str, one)) & set(map(str, other))
    assert len(set(map(str, one))) == len(one)
    assert random.getstate() == state


def test_a_wall_clock_may_be_wrong() -> None:
    async def main(world: World) -> float:
        runtime, other = world.runtime("a"), world.runtime("b")
        world.clock("a").skew = -3600.0
        began = runtime.now()
        await asyncio.sleep(10)
        assert runtime.now() - began == pytest.approx(10, abs=1e-3)
        return (other.wall_ms() - runtime.wall_ms()) / 1000

    assert run(1, main).result == pytest.approx(3600, abs=0.01)


@pytest.mark.parametrize(
    "reach",
    [
        lambda: time.sleep(0),
        lambda: threading.Thread(target=int).start(),
        lambda: socket.socket().connect(("", 1)),
    ],
    ids=["sleep", "thread", "socket"],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_nothing_real_may_be_reached(reach: object) -> None:
    async def main(world: World) -> None:
        with pytest.raises(SimulationForbiddenError):
            reach()

    run(1, main)
    time.sleep(0)


def test_a_finally_of_one_run_does_not_reach_the_next() -> None:
    ended: list[str] = []

    async def never(world: World) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append("finally")
            await asyncio.sleep(0)
            ended.append("unreachable")

    async def main(world: World) -> list[str]:
        asyncio.create_task(never(world))  # noqa: RUF006 – left over on purpose
        await asyncio.sleep(1)
        return list(ended)

    outcome = run(1, main)
    assert outcome.result == []
    assert outcome.findings == ()
    assert ended == ["finally"]


def test_what_a_finally_starts_is_closed_without_a_word() -> None:
    async def cleans_up() -> None:
        await asyncio.sleep(1)

    async def main(world: World) -> None:
        async def never() -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                asyncio.create_task(cleans_up())  # noqa: RUF006 – it never runs

        asyncio.create_task(never())  # noqa: RUF006 – left over on purpose
        await asyncio.sleep(1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what other tests left over may warn while it is collected
        gc.collect()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert run(1, main).findings == ()
        gc.collect()
    assert [str(one.message) for one in said] == []


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_of_a_run_is_left(fails: bool) -> None:
    loops = []

    async def main(world: World) -> None:
        loops.append(weakref.ref(world.loop))
        pair = await connected(world)
        pair.b.start(asyncio.sleep(100))
        pair.b.kill()
        if fails:
            await world.loop.create_future()

    if fails:
        with pytest.raises(SimulationDeadlockError):
            run(1, main)
    else:
        run(1, main)
    if fails:
        gc.collect()  # the error held the frames
    assert loops[0]() is None


def test_a_task_that_nothing_holds_is_a_finding() -> None:
    """Outside a simulation the collector would end it at some moment, without a word."""

    async def forgotten(world: World) -> None:
        await world.loop.create_future()

    async def main(world: World) -> None:
        asyncio.create_task(forgotten(world), name="upkeep")  # noqa: RUF006 – that is the mistake
        await asyncio.sleep(1)

    (finding,) = run(1, main).findings
    assert "destroyed but it is pending" in finding


def test_what_goes_wrong_comes_out_with_its_seed() -> None:
    async def main(world: World) -> None:
        await asyncio.sleep(2)
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong") as caught:
        run(42, main)
    assert caught.value.__notes__[0].startswith("seed 42, 2.0")
    assert time.time() > EPOCH
