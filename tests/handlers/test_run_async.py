"""kclient.handlers.run_async, with virtual time: rebalances, cancellation, explain(), errors of poll()."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient import AsyncConsumer, RebalanceListener, handlers
from kclient.errors import ClosedError, DecodeError, UsageError
from kclient.records.records import Record
from kclient.types import TopicPartition
from tests.scenarios.simulated import Place, simulate

T0 = TopicPartition("t", 0)
RECORDS = 20
GROUP: dict[str, Any] = {"group_id": "g", "partition_assignment_strategy": ("range",)}


def consumer_of(place: Place, **settings: Any) -> AsyncConsumer:
    """A member of the group g; there are 20 records in t-0."""
    place.cluster.produce("t", [f"{number}" for number in range(RECORDS)], partition=0)
    return place.consumer("t", **GROUP, **settings)


def committed(place: Place) -> int:
    """The committed offset of t-0."""
    return place.cluster.committed("g").get(T0, 0)


async def running(
    place: Place,
    consumer: AsyncConsumer,
    handler: Callable[[Record[Any, Any]], Awaitable[None]],
    **options: Any,
) -> asyncio.Task[Any]:
    """A run on the member's host."""
    work = handlers.run_async(consumer, handler, signals=(), **options)
    return asyncio.create_task(place.on_member(work))


def test_revocation_waits_for_running_handlers_and_commits_what_they_finish() -> None:
    async def scenario(place: Place) -> None:
        events: list[str] = []

        class Listener(RebalanceListener):
            def on_partitions_revoked(self, partitions: Any) -> None:
                events.append(f"revoked, committed {committed(place)}")

        async def handle(record: Record[Any, Any]) -> None:
            await asyncio.sleep(3.0)
            events.append(f"finished {record.offset}")

        place.cluster.produce("t", [f"{number}" for number in range(RECORDS)], partition=0)
        consumer = place.consumer(**GROUP)
        await place.on_member(consumer.subscribe(["t"], listener=Listener()))
        run = await running(place, consumer, handle, concurrency=1, ordered_by="partition")
        await asyncio.sleep(5.0)
        consumer.enforce_rebalance()
        await asyncio.sleep(4.0)
        assert events == ["finished 0", "finished 1", "revoked, committed 2"]
        await asyncio.sleep(4.0)
        assert events[3:4] == ["finished 2"]
        run.cancel()
        await asyncio.wait([run])

    simulate(scenario, topics={"t": 1})


def test_revocation_waits_no_longer_than_the_drain_timeout() -> None:
    async def scenario(place: Place) -> None:
        cancelled: list[int] = []

        async def handle(record: Record[Any, Any]) -> None:
            try:
                await asyncio.sleep(1_000.0)
            except asyncio.CancelledError:
                cancelled.append(record.offset)
                raise

        consumer = consumer_of(place)
        run = await running(place, consumer, handle, concurrency=1, ordered_by="partition", drain_timeout=2.0)
        await asyncio.sleep(5.0)
        consumer.enforce_rebalance()
        await asyncio.sleep(1.0)
        assert cancelled == []
        await asyncio.sleep(2.0)
        assert cancelled == [0]
        run.cancel()
        await asyncio.wait([run])
        assert committed(place) == 0

    simulate(scenario, topics={"t": 1})


def test_cancelling_the_run_cancels_handlers_and_commits_what_has_finished() -> None:
    async def scenario(place: Place) -> None:
        async def handle(record: Record[Any, Any]) -> None:
            await asyncio.sleep(1_000.0 if record.offset == 7 else 0.0)

        consumer = consumer_of(place)
        run = await running(place, consumer, handle, commit_interval=1_000.0)
        await asyncio.sleep(5.0)
        run.cancel()
        began = place.now
        await asyncio.wait([run])
        assert run.cancelled()
        assert place.now - began < 1.0
        assert committed(place) == 7
        [record] = await place.on_member(consumer.poll(5.0, max_records=1))
        assert record.offset == 7

    simulate(scenario, topics={"t": 1})


def test_wakeup_ends_the_run_when_running_handlers_have_finished() -> None:
    async def scenario(place: Place) -> None:
        finished: list[int] = []

        async def handle(record: Record[Any, Any]) -> None:
            await asyncio.sleep(2.0)
            finished.append(record.offset)

        consumer = consumer_of(place)
        run = await running(place, consumer, handle, concurrency=1, ordered_by="partition")
        await asyncio.sleep(5.0)
        consumer.wakeup()
        report = await run
        assert report.handled == len(finished) == committed(place) == 3

    simulate(scenario, topics={"t": 1})


def test_explain_says_what_is_in_flight() -> None:
    async def scenario(place: Place) -> None:
        async def handle(record: Record[Any, Any]) -> None:
            await asyncio.sleep(1_000.0 if record.offset == 2 else 0.0)

        consumer = consumer_of(place)
        run = await running(place, consumer, handle, max_in_flight=1, concurrency=1)
        await asyncio.sleep(10.0)
        explanation = await place.on_member(consumer.explain(ask=False))
        assert "1 record in flight (1 running, 0 waiting" in explanation.consumer
        assert explanation[T0].startswith("paused by the handlers")
        assert "1 unfinished, oldest offset 2 for" in explanation[T0]
        run.cancel()
        await asyncio.wait([run])
        explanation = await place.on_member(consumer.explain(ask=False))
        assert "handlers" not in str(explanation)

    simulate(scenario, topics={"t": 1})


def test_a_partition_that_the_user_pauses_stays_paused() -> None:
    """Also if the run had paused it before, and would resume it now."""

    async def scenario(place: Place) -> None:
        handled: list[int] = []
        goes_on = asyncio.Event()

        async def handle(record: Record[Any, Any]) -> None:
            await goes_on.wait()
            handled.append(record.offset)

        consumer = consumer_of(place)
        run = await running(place, consumer, handle, max_in_flight=3, concurrency=1, ordered_by="partition")
        await asyncio.sleep(5.0)
        assert consumer.paused() == (T0,)  # by the run
        consumer.pause([T0])
        goes_on.set()
        await asyncio.sleep(30.0)
        assert (consumer.paused(), handled) == ((T0,), [0, 1, 2])
        consumer.resume([T0])
        await asyncio.sleep(30.0)
        assert (consumer.paused(), handled) == ((), list(range(RECORDS)))
        consumer.wakeup()
        await run

    simulate(scenario, topics={"t": 1})


def test_what_the_user_resumes_while_enough_is_in_flight_is_paused_again() -> None:
    async def scenario(place: Place) -> None:
        async def handle(record: Record[Any, Any]) -> None:
            await asyncio.sleep(1_000.0)

        consumer = consumer_of(place)
        run = await running(place, consumer, handle, max_in_flight=3, concurrency=1, ordered_by="partition")
        await asyncio.sleep(5.0)
        for _ in range(5):
            consumer.resume([T0])
            await asyncio.sleep(5.0)
        assert consumer.paused() == (T0,)
        progress = handlers.progress(consumer)
        assert progress is not None
        assert progress.in_flight == 3
        run.cancel()
        await asyncio.wait([run])

    simulate(scenario, topics={"t": 1})


def test_dead_letters_are_logged_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(place: Place) -> None:
        letters: list[int] = []

        async def handle(record: Record[Any, Any]) -> None:
            await asyncio.sleep(1.0)
            raise ValueError("no")

        consumer = consumer_of(place)
        keep = lambda record, exception: letters.append(record.offset)  # noqa: E731
        run = await running(
            place, consumer, handle, concurrency=1, ordered_by="partition", retries=0, dead_letter=keep
        )
        await asyncio.sleep(60.0)
        assert len(letters) == RECORDS
        consumer.wakeup()
        await run

    with caplog.at_level("WARNING", logger="kclient.handlers"):
        simulate(scenario, topics={"t": 1})
    lines = [line.getMessage() for line in caplog.records if "is a dead letter" in line.getMessage()]
    assert 2 <= len(lines) <= 3
    assert lines[0] == "t-0 offset 0 is a dead letter: its handler raised ValueError in 1 attempt"
    assert lines[1].endswith("times more since the last such line)")


def test_one_run_at_a_time_and_its_end_when_the_consumer_closes() -> None:
    async def scenario(place: Place) -> None:
        async def handle(record: Record[Any, Any]) -> None:
            await asyncio.sleep(0.5)

        consumer = consumer_of(place)
        run = await running(place, consumer, handle)
        await asyncio.sleep(5.0)
        with pytest.raises(UsageError, match="already"):
            await place.on_member(handlers.run_async(consumer, handle, signals=()))
        await place.on_member(consumer.close())
        with pytest.raises(ClosedError):
            await run
        assert committed(place) == RECORDS

    simulate(scenario, topics={"t": 1})


def test_an_outage_is_waited_out_and_what_another_try_cannot_mend_is_raised() -> None:
    async def scenario(place: Place) -> None:
        handled: list[int] = []

        async def handle(record: Record[Any, Any]) -> None:
            handled.append(record.value)

        consumer = consumer_of(place, value_deserializer=lambda topic, headers, data: int(data))
        run = await running(place, consumer, handle)
        await asyncio.sleep(5.0)
        place.cluster.kill(1)
        await asyncio.sleep(120.0)
        place.cluster.restart(1)
        await asyncio.sleep(10.0)
        place.cluster.produce("t", ["20"], partition=0)
        await asyncio.sleep(60.0)
        assert handled[-1] == RECORDS
        assert not run.done()
        place.cluster.produce("t", ["not a number"], partition=0)
        with pytest.raises(DecodeError):
            await run

    simulate(scenario, topics={"t": 1})


def test_a_plain_function_that_returns_a_coroutine_is_awaited() -> None:
    async def scenario(place: Place) -> None:
        consumer = consumer_of(place)

        async def handle(record: Record[Any, Any]) -> None:
            consumer.wakeup()

        def plain(record: Record[Any, Any]) -> Any:
            return handle(record)

        with pytest.MonkeyPatch.context() as patch:  # threads do not start under virtual time
            patch.setattr(asyncio.get_running_loop(), "run_in_executor", _call_here, raising=False)
            run = await running(place, consumer, plain, concurrency=1)
            report = await run
        assert report.handled >= 1

    simulate(scenario, topics={"t": 1})


async def _call_here(executor: object, function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)
