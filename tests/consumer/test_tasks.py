"""CallbackQueue, CallTimeouts and BackgroundTasks alone: callbacks of the user, timeouts of calls, background tasks."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

import pytest

from kclient.change_signal import ChangeSignal
from kclient.consumer.callbacks import CallbackQueue
from kclient.consumer.tasks import BackgroundTasks, CallTimeouts
from kclient.errors import ArgumentError, ClosedError, DeadlineError, InternalError, WakeupError
from kclient.timeouts import checked_timeout


def on_a_loop(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 10))


# --- callbacks of the user


def test_work_waits_for_a_call_and_its_result_goes_back_to_the_flow() -> None:
    async def scenario() -> None:
        posted = ChangeSignal()
        work = CallbackQueue(posted)

        async def answer() -> int:
            return 7

        flow = asyncio.create_task(work.call(answer))
        await posted.wait(0)
        assert not flow.done()
        await work.run()
        assert await flow == 7

    on_a_loop(scenario)


def test_what_work_raises_goes_to_the_user_and_the_flow_continues() -> None:
    async def scenario() -> None:
        work = CallbackQueue(ChangeSignal())

        async def broken() -> int:
            raise LookupError

        flow = asyncio.create_task(work.call(broken))
        await asyncio.sleep(0)
        with pytest.raises(LookupError):
            await work.run()
        assert await flow is None
        await work.run()

    on_a_loop(scenario)


def test_a_flow_that_is_cancelled_takes_its_work_with_it() -> None:
    async def scenario() -> None:
        work, ran = CallbackQueue(ChangeSignal()), []

        async def never() -> None:
            ran.append(1)

        flow = asyncio.create_task(work.call(never))
        await asyncio.sleep(0)
        flow.cancel()
        await asyncio.wait({flow})
        await work.run()
        assert (ran, len(work)) == ([], 0)

    on_a_loop(scenario)


def test_work_does_not_run_inside_of_work() -> None:
    async def scenario() -> None:
        work, ran = CallbackQueue(ChangeSignal()), []

        async def outer() -> None:
            work.enqueue(inner)
            await work.run()
            ran.append("outer")

        async def inner() -> None:
            ran.append("inner")

        work.enqueue(outer)
        await work.run()
        assert ran == ["outer", "inner"]

    on_a_loop(scenario)


# --- timeouts of calls


def test_a_wait_ends_with_its_timeout_a_wakeup_or_close() -> None:
    async def scenario() -> None:
        waits = CallTimeouts(ChangeSignal())

        async def wait(seconds: float) -> None:
            async with waits.limit(seconds, "something"):
                await asyncio.sleep(60)

        with pytest.raises(DeadlineError, match="something") as caught:
            await wait(0.01)
        assert (caught.value.waiting_for, caught.value.timeout) == ("something", 0.01)
        waiting = asyncio.create_task(wait(60))
        await asyncio.sleep(0)
        waits.wakeup()
        with pytest.raises(WakeupError):
            await waiting
        waiting = asyncio.create_task(wait(60))
        await asyncio.sleep(0)
        waits.close()
        with pytest.raises(ClosedError):
            await waiting

    on_a_loop(scenario)


def test_a_wakeup_before_the_wait_is_not_lost_and_counts_once() -> None:
    """M-93."""

    async def scenario() -> None:
        waits = CallTimeouts(ChangeSignal())
        waits.wakeup()
        with pytest.raises(WakeupError):
            async with waits.limit(1, "something"):
                pass
        async with waits.limit(1, "something"):
            pass

    on_a_loop(scenario)


def test_a_deadline_of_something_inside_passes_unchanged() -> None:
    async def scenario() -> None:
        with pytest.raises(DeadlineError, match="inner"):
            async with CallTimeouts(ChangeSignal()).limit(1, "outer"):
                raise DeadlineError("inner")

    on_a_loop(scenario)


@pytest.mark.parametrize("wrong", [-1, float("nan"), "1", None, True])
def test_what_is_no_timeout(wrong: float) -> None:
    with pytest.raises(ArgumentError, match="seconds"):
        checked_timeout(wrong)


@pytest.mark.parametrize("endless", [10**400, math.inf], ids=["10**400", "inf"])
def test_a_timeout_beyond_all_numbers_is_for_ever(endless: float) -> None:
    assert checked_timeout(endless) == math.inf


# --- background tasks


def test_a_flow_that_fails_ends_no_other_and_starts_again_when_its_error_is_taken() -> None:
    """M-108."""

    async def scenario() -> None:
        failed = ChangeSignal()
        flows = BackgroundTasks(failed)
        starts: list[str] = []

        async def fragile() -> None:
            starts.append("fragile")
            if len(starts) == 2:
                raise ZeroDivisionError("planned")
            await asyncio.sleep(60)

        async def sturdy() -> None:
            starts.append("sturdy")
            await asyncio.sleep(60)

        flows.start("sturdy", sturdy)
        flows.start("fragile", fragile)
        await failed.wait(0)
        error = flows.take_error()
        assert isinstance(error, InternalError)
        assert isinstance(error.__cause__, ZeroDivisionError)
        assert flows.take_error() is None
        await asyncio.sleep(0)
        assert starts == ["sturdy", "fragile", "fragile"]
        await flows.stop()
        assert [task for task in asyncio.all_tasks() if task.get_name().startswith("kclient")] == []

    on_a_loop(scenario)
