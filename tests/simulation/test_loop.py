"""Virtual time, the seeded order, and runs that cannot go on."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable

import pytest

from kclient.simulation.loop import CALLBACK_SECONDS, SimLoop
from kclient.simulation.schedule import SimFuture
from kclient.simulation.stuck import SimulationDeadlockError, SimulationLivelockError, SimulationTimeoutError
from kclient.simulation.world import World, run


def test_an_hour_passes_at_once() -> None:
    async def main(world: World) -> float:
        began = world.loop.time()
        await asyncio.sleep(3600)
        return world.loop.time() - began

    outcome = run(1, main, limit=4000)
    assert 3600 <= outcome.result < 3600.001
    assert outcome.callbacks < 10


def test_every_callback_takes_time() -> None:
    """A client that waits for what is left of a timeout comes to its end."""

    async def main(world: World) -> float:
        began = world.loop.time()
        for _ in range(1000):
            await asyncio.sleep(0)
        return world.loop.time() - began

    assert run(1, main).result == pytest.approx(1000 * CALLBACK_SECONDS)


def test_a_lost_wakeup_is_a_deadlock_that_names_who_waits_for_what() -> None:
    async def waits_for_ever(wakeup: asyncio.Event) -> None:
        await wakeup.wait()

    async def main(world: World) -> None:
        host = world.host("member")
        await host.start(waits_for_ever(asyncio.Event()), name="heartbeat")

    with pytest.raises(SimulationDeadlockError) as caught:
        run(77, main)
    text = str(caught.value)
    assert "heartbeat on member (up)" in text
    assert "waits_for_ever (test_loop.py:" in text
    assert "Event.wait (locks.py:" in text
    assert "seed 77" in caught.value.__notes__[0]


def test_a_cancelled_timer_does_not_hide_a_deadlock() -> None:
    async def main(world: World) -> None:
        world.loop.call_later(5.0, print).cancel()
        await world.loop.create_future()

    with pytest.raises(SimulationDeadlockError):
        run(1, main)


def test_a_hang_is_a_timeout() -> None:
    async def main(world: World) -> None:
        while True:  # noqa: ASYNC110 – it is to hang
            await asyncio.sleep(1.0)

    with pytest.raises(SimulationTimeoutError, match=r"60 virtual s(.|\n)*main"):
        run(1, main, limit=60)


@pytest.mark.parametrize("pause", [0.0, 1e-6])
def test_a_hot_loop_is_a_livelock(pause: float) -> None:
    async def spins() -> None:
        while True:  # noqa: ASYNC110 – it is to spin
            await asyncio.sleep(pause)

    async def main(world: World) -> None:
        await asyncio.create_task(spins())

    with pytest.raises(SimulationLivelockError, match=r"spins \(test_loop.py"):
        run(1, main)


def test_work_below_the_limit_is_no_livelock() -> None:
    async def main(world: World) -> str:
        for _ in range(300):
            for _ in range(30):
                await asyncio.sleep(0)
            await asyncio.sleep(0.1)
        return "done"

    assert run(1, main, callbacks_a_second=1000).result == "done"
    with pytest.raises(SimulationLivelockError):
        run(1, main, callbacks_a_second=100)


async def race_by_yielding() -> str:
    """Who comes second wins; in the order of creation that is always the same one."""
    winner = ""

    async def step(name: str) -> None:
        nonlocal winner
        await asyncio.sleep(0)
        winner = name

    await asyncio.gather(step("first"), step("second"))
    return winner


async def race_for_a_future() -> str:
    """As above, for two that are woken together."""
    winner = ""
    start = asyncio.get_running_loop().create_future()

    async def step(name: str) -> None:
        nonlocal winner
        await start
        winner = name

    asyncio.get_running_loop().call_later(0.1, start.set_result, None)
    tasks = [asyncio.create_task(step("first"))]
    await asyncio.sleep(0.01)
    await asyncio.gather(*tasks, step("second"))
    return winner


@pytest.mark.parametrize("race", [race_by_yielding, race_for_a_future])
def test_a_race_that_first_in_first_out_never_shows(race: Callable[[], Awaitable[str]]) -> None:
    in_order = [asyncio.run(race()) for _ in range(10)]
    by_seed = [run(seed, lambda world: race()).result for seed in range(200)]
    assert set(in_order) == {"second"}
    assert 40 < by_seed.count("first") < 160


def test_plain_callbacks_keep_their_order() -> None:
    async def main(world: World) -> list[int]:
        seen: list[int] = []
        for number in range(50):
            world.loop.call_soon(seen.append, number)
        await asyncio.sleep(0.1)
        return seen

    for seed in range(20):
        assert run(seed, main).result == list(range(50))


def test_equal_deadlines_fire_in_any_order() -> None:
    async def main(world: World) -> list[int]:
        seen: list[int] = []
        for number in range(3):
            world.loop.call_at(5.0, seen.append, number)
        world.loop.call_at(4.9, seen.append, -1)
        await asyncio.sleep(6)
        return seen

    orders = {tuple(run(seed, main).result) for seed in range(60)}
    assert len(orders) == 6
    assert {order[0] for order in orders} == {-1}


def test_a_set_of_futures_iterates_alike_in_each_run() -> None:
    def orders() -> list[int]:
        loop = SimLoop()
        futures = [loop.create_future() for _ in range(100)]
        loop.close()
        return [futures.index(future) for future in set(futures)]

    assert orders() == orders()


def test_tasks_and_futures_hash_by_number_and_stay_apart() -> None:
    async def main(world: World) -> None:
        one, two = world.loop.create_future(), world.loop.create_future()
        assert isinstance(one, SimFuture)
        assert one != two
        assert hash(one) != hash(two)
        me = asyncio.current_task()
        assert me in {me, one, two}

    run(1, main)


def test_work_off_the_loop_runs_here_after_a_while() -> None:
    async def main(world: World) -> list[object]:
        before = world.loop.time()
        thread = await asyncio.to_thread(threading.get_ident)
        with pytest.raises(ZeroDivisionError):
            await world.loop.run_in_executor(None, lambda: 1 / 0)
        return [thread, world.loop.time() - before]

    thread, seconds = run(1, main).result
    assert thread == threading.get_ident()
    assert 0 < seconds < 0.1


def test_an_unhandled_error_is_a_finding() -> None:
    async def fails() -> None:
        raise ValueError("unheard")

    async def main(world: World) -> None:
        world.loop.call_soon(int, "x")
        task = asyncio.create_task(fails())
        await asyncio.sleep(1)
        del task

    findings = run(1, main).findings
    assert len(findings) == 2
    assert "invalid literal for int()" in findings[0]
    assert "never retrieved: ValueError('unheard')" in findings[1]


def test_what_hides_in_a_cycle_is_a_finding_too() -> None:
    async def fails() -> None:
        raise ValueError("unheard")

    async def main(world: World) -> None:
        cycle: list[object] = [asyncio.create_task(fails())]
        cycle.append(cycle)
        await asyncio.sleep(1)

    (finding,) = run(1, main).findings
    assert "unheard" in finding


def test_timers_that_are_cancelled_do_not_pile_up() -> None:
    async def main(world: World) -> int:
        for _ in range(5000):
            world.loop.call_later(1000.0, print).cancel()
        return len(world.loop.timers)

    assert run(1, main).result < 500


def test_a_timer_that_has_fired_may_be_cancelled() -> None:
    async def main(world: World) -> None:
        timers = [world.loop.call_later(0.1, int) for _ in range(300)]
        await asyncio.sleep(1)
        for timer in timers:
            timer.cancel()
        await asyncio.sleep(1)

    assert run(1, main).findings == ()


def test_collecting_is_off_while_a_seed_runs() -> None:
    async def main(world: World) -> bool:
        return gc.isenabled()

    assert gc.isenabled()
    assert run(1, main).result is False
    assert gc.isenabled()
