"""Processes that stop, die, lose power and come back."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from kclient.simulation.process import ProcessState
from kclient.simulation.world import World, run
from tests.simulation.support import PORT, RecordingProtocol, connected, plain


async def ticks(log: list[float]) -> None:
    loop = asyncio.get_running_loop()
    try:
        while True:
            await asyncio.sleep(1.0)
            log.append(round(loop.time(), 2))
    finally:
        log.append(-1.0)


def test_everything_that_a_host_starts_is_on_it() -> None:
    async def main(world: World) -> list[float]:
        log: list[float] = []
        host = world.host("a")

        async def starts_another() -> None:
            asyncio.get_running_loop().call_later(0.5, lambda: asyncio.create_task(ticks(log), name="child"))

        await host.start(starts_another())
        await asyncio.sleep(4.0)
        host.kill()
        await asyncio.sleep(10.0)
        return list(log)

    assert run(1, main).result == [1.5, 2.5, 3.5]


def test_kill_runs_no_finally() -> None:
    log: list[float] = []

    async def main(world: World) -> list[float]:
        host, other = world.host("a"), world.host("b")
        host.start(ticks(log))
        kept: list[float] = []
        survivor = other.start(ticks(kept))
        await asyncio.sleep(2.5)
        host.kill()
        await asyncio.sleep(2)
        survivor.cancel()
        await asyncio.sleep(1)
        assert kept == [1.0, 2.0, 3.0, 4.0, -1.0]
        return list(log)

    outcome = run(1, main)
    assert outcome.result == [1.0, 2.0]
    assert outcome.findings == ()


def test_what_a_dead_host_waited_for_is_kept_to_the_end() -> None:
    """Nothing else holds that task; were it collected, its `finally` would run."""
    log: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            log.append("finally")

    async def main(world: World) -> list[str]:
        host = world.host("a")
        host.start(waits())
        await asyncio.sleep(1)
        host.kill()
        await asyncio.sleep(1)
        gc.collect()
        return list(log)

    outcome = run(1, main)
    assert outcome.result == []
    assert outcome.findings == ()


def test_a_paused_host_takes_up_where_it_stopped() -> None:
    async def main(world: World) -> list[float]:
        log: list[float] = []
        host = world.host("a")
        host.start(ticks(log))
        await asyncio.sleep(1.5)
        host.pause()
        await asyncio.sleep(10)
        assert host.state is ProcessState.PAUSED
        host.resume()
        await asyncio.sleep(2)
        return list(log)

    assert run(1, main).result == [1.0, 11.5, 12.5]


def test_a_blocked_loop_runs_everything_late_and_in_order() -> None:
    async def main(world: World) -> Any:
        plain(world)
        pair = await connected(world)
        for number in range(20):
            world.loop.call_later(number * 0.5, pair.a.call, pair.transport.write, b"%02d " % number)
        pair.b.block(7.0)
        await asyncio.sleep(20)
        return pair.far

    far = run(1, main).result
    assert far.heard == b"".join(b"%02d " % number for number in range(20))
    assert far.times[0] >= 7.0
    assert far.times == sorted(far.times)
    assert sum(at < 7.2 for at in far.times) in range(13, 16)


@pytest.mark.parametrize("seed", range(30))
def test_resuming_never_overtakes_what_was_parked(seed: int) -> None:
    async def main(world: World) -> list[int]:
        host = world.host("a")
        seen: list[int] = []
        host.pause()
        for number in range(5):
            host.call(seen.append, number)
        await asyncio.sleep(0)
        host.resume()
        for number in range(5, 10):
            host.call(seen.append, number)
        await asyncio.sleep(1)
        return seen

    assert run(seed, main).result == list(range(10))


def test_pauses_add_up() -> None:
    async def main(world: World) -> list[ProcessState]:
        host = world.host("a")
        states = []
        host.pause()
        host.block(5.0)
        await asyncio.sleep(6)
        states.append(host.state)
        host.resume()
        host.resume()
        await asyncio.sleep(0.1)
        return [*states, host.state]

    assert run(1, main).result == [ProcessState.PAUSED, ProcessState.UP]


def test_a_paused_host_still_accepts_and_buffers() -> None:
    async def main(world: World) -> Any:
        far = RecordingProtocol()
        a, b = world.host("a"), world.host("b")
        await b.start(world.loop.create_server(lambda: far, "b", PORT))
        b.pause()
        transport, _ = await a.start(world.loop.create_connection(RecordingProtocol, "b", PORT))
        a.call(transport.write, b"hello")
        await asyncio.sleep(5)
        before = list(far.events)
        b.resume()
        await asyncio.sleep(1)
        return before, far.events, far.heard

    assert run(1, main).result == ([], ["made"], b"hello")


def test_kill_resets_connections_and_closes_ports() -> None:
    async def main(world: World) -> Any:
        pair = await connected(world)
        pair.b.kill()
        await asyncio.sleep(1)
        with pytest.raises(ConnectionRefusedError):
            await pair.a.start(world.loop.create_connection(RecordingProtocol, "b", PORT))
        assert not world.network.connections
        return pair.near.problem, pair.far.events

    problem, far_events = run(1, main).result
    assert isinstance(problem, ConnectionResetError)
    assert far_events == ["made"]


def test_a_reset_that_is_lost_leaves_a_half_open_end() -> None:
    async def main(world: World) -> Any:
        pair = await connected(world)
        world.network.cut_both("a", "b")
        pair.b.kill()
        world.network.heal_all()
        await asyncio.sleep(1000)
        before = list(pair.near.events)
        pair.a.call(pair.transport.write, b"anyone?")
        await asyncio.sleep(1)
        return before, pair.near.problem

    before, problem = run(1, main).result
    assert before == ["made"]
    assert isinstance(problem, ConnectionResetError)


def test_power_loss_is_silence_until_the_sender_gives_up() -> None:
    async def main(world: World) -> Any:
        plain(world, retransmit_seconds=40.0)
        pair = await connected(world)
        pair.b.power_off()
        await asyncio.sleep(100)
        assert pair.near.events == ["made"]
        began = world.loop.time()
        pair.a.call(pair.transport.write, b"anyone?")
        await asyncio.sleep(100)
        world.network.syn_seconds = 10.0
        with pytest.raises(TimeoutError):
            await pair.a.start(world.loop.create_connection(RecordingProtocol, "b", PORT))
        return pair.near.problem, pair.near.lost_at - began

    problem, seconds = run(1, main).result
    assert isinstance(problem, TimeoutError)
    assert seconds == pytest.approx(40, abs=0.1)


def test_after_power_loss_and_restart_old_connections_are_reset() -> None:
    async def main(world: World) -> Any:
        pair = await connected(world)
        pair.b.power_off()
        pair.a.call(pair.transport.write, b"anyone?")
        await asyncio.sleep(5)
        assert pair.near.events == ["made"]
        world.host("b")
        await asyncio.sleep(2)
        return pair.near.problem

    assert isinstance(run(1, main).result, ConnectionResetError)


def test_a_restart_is_a_new_host_that_old_timers_do_not_know() -> None:
    async def main(world: World) -> Any:
        log: list[float] = []
        pair = await connected(world)
        pair.b.start(ticks(log))
        await asyncio.sleep(2.5)
        reborn = world.host("b")
        assert reborn is not pair.b
        assert reborn.addresses == pair.b.addresses
        assert world.network.by_name["b"] is reborn
        ear = RecordingProtocol()
        await reborn.start(world.loop.create_server(lambda: ear, "b", PORT))
        await pair.a.start(world.loop.create_connection(RecordingProtocol, "b", PORT))
        await asyncio.sleep(10)
        return list(log), ear.events, pair.b.state

    log, events, state = run(1, main).result
    assert log == [1.11, 2.11]
    assert events == ["made"]
    assert state is ProcessState.DEAD


def test_a_partition_outlives_a_restart() -> None:
    async def main(world: World) -> None:
        pair = await connected(world)
        world.network.cut_both("a", "b")
        reborn = world.host("b")
        await reborn.start(world.loop.create_server(RecordingProtocol, "b", PORT))
        world.network.syn_seconds = 5.0
        with pytest.raises(TimeoutError):
            await pair.a.start(world.loop.create_connection(RecordingProtocol, "b", PORT))

    run(1, main)


def test_a_host_may_kill_itself() -> None:
    async def main(world: World) -> list[str]:
        host, log = world.host("a"), []

        async def dies() -> None:
            log.append("before")
            host.kill()
            asyncio.create_task(ticks([]))  # noqa: RUF006 – it never runs
            await asyncio.sleep(0)
            log.append("after")

        host.start(dies())
        await asyncio.sleep(1)
        return log

    outcome = run(1, main)
    assert outcome.result == ["before"]
    assert outcome.findings == ()


def test_what_a_host_has_left() -> None:
    async def main(world: World) -> None:
        pair = await connected(world)
        task = pair.a.start(asyncio.sleep(10), name="sleeper")
        await asyncio.sleep(1)
        left = pair.a.leftovers()
        assert len(left) == 3
        assert "task sleeper" in left
        assert any("SimTransport #1" in thing for thing in left)
        task.cancel()
        pair.a.call(pair.transport.close)
        await asyncio.sleep(1)
        assert pair.a.leftovers() == []

    run(1, main)
