"""The cluster's clock: time that a test lets pass, in order, from any thread; and how durations are written."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest

from kclient import Consumer
from kclient.embedded import EmbeddedCluster
from kclient.embedded.clock import Clock, Duration, to_seconds
from kclient.errors import ArgumentError, InternalError
from kclient.runtime import Runtime


@pytest.mark.parametrize(
    ("duration", "expected"),
    [("10m", 600), ("1h30m", 5400), ("250ms", 0.25), ("2d", 172_800), ("1.5s", 1.5), (3, 3), (0.5, 0.5)],
)
def test_durations_are_written_as_people_do(duration: Duration, expected: float) -> None:
    assert to_seconds(duration) == expected
    assert to_seconds(timedelta(seconds=expected)) == expected


@pytest.mark.parametrize("text", ["", "10", "m", "ten minutes", "10m!", "1h 30x"])
def test_a_text_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="is not a duration"):
        to_seconds(text)


def test_what_is_due_on_the_way_is_called_in_its_order_and_at_its_time() -> None:
    async def main() -> list[tuple[str, int]]:
        clock, rang = Clock(Runtime()), list[tuple[str, int]]()
        begun = clock.now()

        def ring(name: str) -> None:
            rang.append((name, round(clock.now() - begun)))
            if name == "first":
                clock.call_later(5, lambda: ring("made on the way"))

        clock.call_later(600, lambda: ring("too late"))
        clock.call_later(30, lambda: ring("second"))
        clock.call_later(10, lambda: ring("first"))
        clock.call_later(20, lambda: ring("cancelled")).cancel()
        clock.advance(60)
        assert round(clock.now() - begun) == 60
        return rang

    assert asyncio.run(main()) == [("first", 10), ("made on the way", 15), ("second", 30)]


def test_it_rings_automatically_too() -> None:
    async def main() -> None:
        clock = Clock(Runtime())
        async with asyncio.timeout(5):
            await clock.sleep(0.01)

    asyncio.run(main())


def test_time_passes_for_any_caller_on_whatever_thread() -> None:
    with EmbeddedCluster() as cluster:
        before, wall = cluster.clock.now(), cluster.clock.wall_ms()
        thread = threading.Thread(target=cluster.clock.advance, args=("10m",))
        thread.start()
        thread.join()
        assert cluster.clock.now() - before == pytest.approx(600, abs=5)
        assert cluster.clock.wall_ms() - wall == pytest.approx(600_000, abs=5_000)
        with pytest.raises(ArgumentError, match="cannot go back"):
            cluster.clock.advance(-1)
        with pytest.raises(ArgumentError, match="by 1000 days at once, and not by 3650"):
            cluster.clock.advance("3650d")


@pytest.mark.spec("U-25")
def test_members_expire_when_ten_minutes_pass_and_come_again() -> None:
    with EmbeddedCluster(topics={"orders": 1}) as cluster:
        settings = {"group_id": "billing", "heartbeat_interval_ms": 50}
        with Consumer("orders", bootstrap_servers=cluster.bootstrap_servers, **settings) as consumer:
            while not (before := consumer.group_metadata()).member_id:
                consumer.poll(timeout=0.1)
            cluster.clock.advance("10m")
            while consumer.group_metadata().member_id in ("", before.member_id):
                consumer.poll(timeout=0.1)


def test_a_callback_that_fails_keeps_no_other_from_ringing() -> None:
    async def main() -> list[str]:
        clock, rang, errors = Clock(Runtime()), list[str](), list[object]()
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: errors.append(context["exception"])
        )
        done = asyncio.Event()

        def fail() -> None:
            raise ValueError("a bug")

        clock.call_later(0.001, fail)
        clock.call_later(0.002, done.set)
        async with asyncio.timeout(5):
            await done.wait()
        assert [str(one) for one in errors] == ["a bug"]
        clock.call_later(10, fail)
        clock.call_later(20, lambda: rang.append("later"))
        with pytest.raises(ValueError, match="a bug"):
            clock.advance(15)
        clock.advance(5)
        return rang

    assert asyncio.run(main()) == ["later"]


def test_timers_that_were_cancelled_do_not_pile_up() -> None:
    async def main() -> int:
        clock = Clock(Runtime())
        lasting = [clock.call_later(30, lambda: None) for _ in range(10)]
        for _ in range(20_000):  # as many heartbeats, each of which begins the session again
            clock.call_later(45, lambda: None).cancel()
        assert all(timer.callback is not None for timer in lasting)
        return len(clock._timers)

    assert asyncio.run(main()) <= 1_010


def test_a_timer_of_a_broker_that_fails_is_reported_when_the_cluster_ends() -> None:
    def fail() -> None:
        raise ValueError("a bug")

    async def main() -> None:
        async with EmbeddedCluster() as cluster:
            cluster.state.brokers[1].call_later(10, fail)
            with pytest.raises(ValueError, match="a bug"):
                cluster.clock.advance(10)

    with pytest.raises(InternalError, match="a bug"):
        asyncio.run(main())


def test_a_timer_that_came_due_in_a_pause_and_was_cancelled_before_its_end_never_rings() -> None:
    async def main() -> None:
        async with EmbeddedCluster() as cluster:
            rung: list[str] = []
            broker = cluster.state.brokers[1]
            broker.call_later(1.0, lambda: rung.append("kept"))
            cancelled = broker.call_later(1.0, lambda: rung.append("cancelled"))
            cluster.pause(1)
            cluster.clock.advance("2s")
            cancelled.cancel()
            assert rung == []
            cluster.resume(1)
            assert rung == ["kept"]

    asyncio.run(main())
