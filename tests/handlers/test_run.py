"""kclient.handlers.run: handlers on threads, signals, and what is refused."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from kclient import Consumer, handlers
from kclient.embedded import EmbeddedCluster
from kclient.errors import ArgumentError, HandlerError, KclientError, UsageError
from kclient.records.records import Record
from kclient.types import TopicPartition

T0 = TopicPartition("orders", 0)
RECORDS = 200


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1, topics={"orders": 1}) as embedded:
        embedded.produce("orders", [(f"key {number % 7}", str(number)) for number in range(RECORDS)])
        yield embedded


def consumer_of(cluster: EmbeddedCluster, **settings: Any) -> Consumer:
    """A member of the group "billing"."""
    keys: dict[str, Any] = {
        "bootstrap_servers": cluster.bootstrap_servers,
        "group_id": "billing",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
    }
    return Consumer("orders", **(keys | settings))


def committed(cluster: EmbeddedCluster) -> int:
    """The committed offset of the one partition."""
    return cluster.committed("billing").get(T0, 0)


def test_records_of_a_key_are_handled_in_order_and_many_keys_at_once(cluster: EmbeddedCluster) -> None:
    handled: dict[Any, list[int]] = defaultdict(list)
    together = threading.Barrier(7, timeout=10.0)

    def handle(record: Record[Any, Any]) -> None:
        if record.offset < 7:
            together.wait()  # passes only if seven handlers are in it at the same time
        handled[record.key].append(int(record.value))
        if record.offset == RECORDS - 1:
            consumer.wakeup()

    with consumer_of(cluster) as consumer:
        report = handlers.run(consumer, handle)
    assert report.handled == sum(map(len, handled.values()))
    assert all(numbers == sorted(numbers) for numbers in handled.values())
    assert len(handled) == 7
    assert committed(cluster) >= max(numbers[0] for numbers in handled.values())


def test_a_partition_in_order_has_one_handler_at_a_time(cluster: EmbeddedCluster) -> None:
    running: list[int] = []
    most: list[int] = []
    handled: list[int] = []

    def handle(record: Record[Any, Any]) -> None:
        running.append(record.offset)
        most.append(len(running))
        handled.append(record.offset)
        running.remove(record.offset)
        if record.offset == RECORDS - 1:
            consumer.wakeup()

    with consumer_of(cluster) as consumer:
        handlers.run(consumer, handle, ordered_by="partition")
    assert handled == [*range(RECORDS)]
    assert max(most) == 1
    assert committed(cluster) == RECORDS


def test_sigterm_lets_running_handlers_finish_and_leaves_the_rest(cluster: EmbeddedCluster) -> None:
    handled: list[int] = []
    before = signal.getsignal(signal.SIGTERM)

    def handle(record: Record[Any, Any]) -> None:
        if record.offset == 3:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.3)  # still runs when the signal has been handled
        handled.append(record.offset)

    with consumer_of(cluster) as consumer:
        handlers.run(consumer, handle, concurrency=1, ordered_by="partition")
        assert handled == [0, 1, 2, 3]
        assert committed(cluster) == 4
        assert consumer.position(T0) == 4
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_interrupt_commits_what_has_finished_and_the_next_poll_returns_the_rest(
    cluster: EmbeddedCluster,
) -> None:
    released = threading.Event()

    def handle(record: Record[Any, Any]) -> None:
        if record.offset == 3:
            os.kill(os.getpid(), signal.SIGINT)
            released.wait(10.0)  # a thread cannot be interrupted

    with consumer_of(cluster) as consumer:
        with pytest.raises(KeyboardInterrupt):
            handlers.run(consumer, handle, ordered_by="partition", commit_interval=60.0, signals=())
        released.set()
        assert committed(cluster) == 3
        assert next(iter(consumer.poll(10.0))).offset == 3


def test_a_handler_that_fails_for_good_ends_the_run_and_the_next_one_begins_with_its_record(
    cluster: EmbeddedCluster,
) -> None:
    handled: list[int] = []
    calls: list[int] = []
    broken = True

    def handle(record: Record[Any, Any]) -> None:
        calls.append(record.offset)
        if record.offset == 5 and broken:
            raise ValueError("no such customer")
        handled.append(record.offset)
        if record.offset == RECORDS - 1:
            consumer.wakeup()

    with consumer_of(cluster) as consumer:
        with pytest.raises(HandlerError) as caught:
            handlers.run(consumer, handle, retries=2, retry_backoff_ms=1, ordered_by="partition")
        assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("orders", 0, 5)
        assert caught.value.attempts == calls.count(5) == 3
        assert isinstance(caught.value.__cause__, ValueError)
        assert "no such customer" not in str(caught.value)
        assert committed(cluster) == 5
        broken = False
        handlers.run(consumer, handle, ordered_by="partition")
    assert handled == [*range(RECORDS)]
    assert committed(cluster) == RECORDS


def test_other_keys_go_on_while_a_record_is_tried_again_and_nothing_after_it_is_committed(
    cluster: EmbeddedCluster,
) -> None:
    others: list[int] = []
    seen: dict[str, Any] = {}

    def handle(record: Record[Any, Any]) -> None:
        if record.key == b"key 0":
            raise OSError
        others.append(record.offset)
        if len(others) == 150:
            seen["progress"] = handlers.progress(consumer)
            time.sleep(0.3)
            seen["committed"] = committed(cluster)
            consumer.wakeup()

    with consumer_of(cluster) as consumer:
        handlers.run(
            consumer, handle, commit_interval=0.05, retry_backoff_ms=60_000, retry_backoff_max_ms=60_000
        )
    assert seen["committed"] == 0
    progress = seen["progress"]
    assert (progress.handled, progress.backing_off, progress.retries) == (149, 1, 1)
    oldest = progress.partitions[T0]
    assert (oldest.oldest, oldest.attempts, oldest.failure) == (0, 1, "OSError")
    assert "oldest offset 0" in str(progress)
    assert handlers.progress(consumer) is None


def test_sys_exit_in_a_handler_ends_the_run_and_leaves_its_record(cluster: EmbeddedCluster) -> None:
    def handle(record: Record[Any, Any]) -> None:
        if record.offset == 5:
            sys.exit(3)

    with consumer_of(cluster) as consumer:
        with pytest.raises(SystemExit) as caught:
            handlers.run(consumer, handle, ordered_by="partition")
        assert caught.value.code == 3
        assert committed(cluster) == 5
        assert next(iter(consumer.poll(10.0))).offset == 5


def test_a_dead_letter_has_finished(cluster: EmbeddedCluster) -> None:
    kept: list[tuple[int, Exception]] = []

    def handle(record: Record[Any, Any]) -> None:
        if record.offset == 5:
            raise ValueError
        if record.offset == RECORDS - 1:
            consumer.wakeup()

    with consumer_of(cluster) as consumer:
        report = handlers.run(
            consumer,
            handle,
            retries=0,
            ordered_by="partition",
            dead_letter=lambda record, exc: kept.append((record.offset, exc)),
        )
    assert [(offset, type(exc)) for offset, exc in kept] == [(5, ValueError)]
    assert report.dead_letters == 1
    assert committed(cluster) == RECORDS


def test_a_dead_letter_that_cannot_be_kept_ends_the_run(cluster: EmbeddedCluster) -> None:
    def refuse(record: Record[Any, Any], exc: Exception) -> None:
        raise OSError

    def handle(record: Record[Any, Any]) -> None:
        raise ValueError

    with consumer_of(cluster) as consumer, pytest.raises(HandlerError, match="dead_letter") as caught:
        handlers.run(consumer, handle, retries=0, dead_letter=refuse)
    assert isinstance(caught.value.__cause__, OSError)
    assert committed(cluster) == 0


def test_a_slow_handler_costs_neither_the_membership_nor_more_records_in_flight(
    cluster: EmbeddedCluster,
) -> None:
    in_flight: list[int] = []

    def handle(record: Record[Any, Any]) -> None:
        progress = handlers.progress(consumer)
        in_flight.append(0 if progress is None else progress.in_flight)
        if record.offset == 0:
            time.sleep(2.5)
        if record.offset == 20:
            consumer.wakeup()

    with consumer_of(cluster, max_poll_interval_ms=1_000) as consumer:
        handlers.run(consumer, handle, concurrency=2, max_in_flight=10, ordered_by="partition")
        assert max(in_flight) == 10
        assert consumer.group_metadata().generation_id == 1


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"ordered_by": "topic"}, "ordered_by"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": 8, "max_in_flight": 7}, "max_in_flight"),
        ({"concurrency": 1.5}, "concurrency"),
        ({"concurrency": "16"}, "concurrency"),
        ({"retries": -1}, "retries"),
        ({"retries": float("inf")}, "retries"),
        ({"signals": (signal.SIGTERM, signal.SIGKILL)}, "SIGKILL"),
        ({"signals": (signal.SIGTERM, 999)}, "999"),
        ({"drain_timeout": float("nan")}, "drain_timeout"),
        (
            {"dead_letter": "letters.jsonl"},
            "dead_letter is a function of the record and the exception, not 'letters",
        ),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(
    cluster: EmbeddedCluster, options: dict[str, Any], named: str
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with consumer_of(cluster) as consumer, pytest.raises(ArgumentError, match=named):
        handlers.run(consumer, print, **options)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_handler_that_raises_stop_iteration_has_failed_as_any_other(cluster: EmbeddedCluster) -> None:
    """A future of asyncio cannot hold it, before Python 3.12: nothing would ever wake the lane."""
    with consumer_of(cluster) as consumer, pytest.raises(HandlerError) as caught:
        handlers.run(consumer, lambda record: next(iter(())), retries=1, retry_backoff_ms=1)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert isinstance(caught.value.__cause__.__cause__, StopIteration)


def test_what_would_break_the_promise_is_refused(cluster: EmbeddedCluster) -> None:
    async def coroutine(record: Record[Any, Any]) -> None: ...

    def plain(record: Record[Any, Any]) -> Any:
        return coroutine(record)

    with consumer_of(cluster) as consumer:
        with pytest.raises(ArgumentError, match="coroutine function"):
            handlers.run(consumer, coroutine)
        letters: list[Any] = []
        with pytest.raises(HandlerError) as caught:
            handlers.run(consumer, plain, dead_letter=lambda record, exc: letters.append(record))
        assert isinstance(caught.value.__cause__, UsageError)
        assert caught.value.attempts == 1
        assert letters == []  # the program is wrong, and no record
        assert committed(cluster) == 0
    with consumer_of(cluster, enable_auto_commit=True) as consumer, pytest.raises(UsageError, match="=False"):
        handlers.run(consumer, print)
    with Consumer(bootstrap_servers=cluster.bootstrap_servers, enable_auto_commit=False) as alone:
        alone.assign([T0])
        with pytest.raises(KclientError, match="group"):
            handlers.run(alone, print)


def test_a_key_that_cannot_be_ordered_by_is_refused_and_its_records_are_not_lost(
    cluster: EmbeddedCluster,
) -> None:
    with consumer_of(cluster, key_deserializer=lambda topic, headers, data: [data]) as consumer:
        with pytest.raises(UsageError, match="hashable"):
            handlers.run(consumer, print)
        assert next(iter(consumer.poll(10.0))).offset == 0


def test_in_another_thread_signals_are_left_alone(cluster: EmbeddedCluster) -> None:
    before = signal.getsignal(signal.SIGTERM)
    found: list[Any] = []

    def work() -> None:
        with consumer_of(cluster) as consumer:
            with pytest.raises(UsageError, match="main thread"):
                handlers.run(consumer, print, signals=(signal.SIGTERM,))

            def handle(record: Record[Any, Any]) -> None:
                found.append(signal.getsignal(signal.SIGTERM))
                consumer.wakeup()

            handlers.run(consumer, handle)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(20.0)
    assert found
    assert set(found) == {before}
