"""Misuse of a Consumer: signals at any moment, several threads, errors of every kind."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from typing import Any

import pytest

from kclient import Consumer, RebalanceListener, TopicPartition
from kclient.errors import (
    ClosedError,
    ConcurrentUseError,
    DecodeError,
    InternalError,
    ListenerError,
    UsageError,
    WakeupError,
)
from tests.consumer.interrupts import raise_at_random
from tests.consumer.mini_broker import FAST, MiniBroker
from tests.consumer.support import A0
from tests.realtime import within

Partitions = tuple[TopicPartition, ...]


def consumer(broker: MiniBroker, *topics: str, **settings: Any) -> Consumer:
    keys = {"bootstrap_servers": broker.address, "group_id": "g", "auto_offset_reset": "earliest"}
    return Consumer(*topics, **{**FAST, **keys, **settings})


# --- signals


class Interrupt(Exception):
    """A signal handler of the application's may raise anything."""


@pytest.mark.spec("D-77", "S3-14", "S3-17")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # raised where Python drops it
@pytest.mark.parametrize("kind", [KeyboardInterrupt, Interrupt])
def test_200_signals_between_polls_and_commits_lose_and_double_nothing(
    broker: MiniBroker, kind: type[BaseException]
) -> None:
    records = 3_000
    broker.fill("a", 0, *(b"%d" % number for number in range(5, records)))
    seen: list[int] = []
    committed = 0
    with consumer(broker, "a", enable_auto_commit=False) as c, raise_at_random(kind, 0.02) as interrupts:
        ends = time.monotonic() + 40
        while (len(seen) < records or interrupts.count < 200) and time.monotonic() < ends:
            try:
                interrupts.armed = True
                batch = c.poll(0.05, max_records=20)
                interrupts.armed = False
                seen += [record.offset for record in batch]
                interrupts.armed = True
                c.commit()
                interrupts.armed = False
                committed += 1
            except kind:
                continue
        interrupts.armed = False
        c.commit()
    assert interrupts.count >= 200
    assert committed > 0
    assert seen == list(range(records))
    assert broker.committed[A0].offset == records


@pytest.mark.spec("S3-06", "S3-17", "D-77")
def test_after_signals_another_thread_may_use_the_consumer(broker: MiniBroker) -> None:
    found: list[Any] = []
    with consumer(broker, "a") as c:
        c.poll(5)
        with raise_at_random(KeyboardInterrupt, 0.002) as interrupts:
            while interrupts.count < 200:
                try:
                    interrupts.armed = True
                    for _ in range(500):
                        c.assignment()
                except KeyboardInterrupt:
                    continue
        c.assignment()
        thread = threading.Thread(target=lambda: found.append(c.assignment()))
        thread.start()
        thread.join(5)
    assert found == [(A0,)]


@pytest.mark.spec("B.18", "I-24", "D-77")
def test_an_interrupted_close_leaves_nothing_running(broker: MiniBroker) -> None:
    class Waiting(RebalanceListener):
        def on_partitions_revoked(self, partitions: Partitions) -> None:
            raise KeyboardInterrupt

    c = consumer(broker, "a", listener=Waiting())
    c.poll(5)
    with pytest.raises(KeyboardInterrupt):
        c.close()
    with pytest.raises(ClosedError):
        c.poll(0)


# --- errors of the user's code


@pytest.mark.spec("S3-36", "I-25")
@pytest.mark.parametrize("error", [StopIteration, StopAsyncIteration, asyncio.CancelledError, GeneratorExit])
def test_whatever_a_listener_raises_the_call_ends(broker: MiniBroker, error: type[BaseException]) -> None:
    """StopIteration cannot be set on a future, and cancellation means something else on a loop."""

    class Raising(RebalanceListener):
        def on_partitions_assigned(self, partitions: Partitions) -> None:
            raise error

    with consumer(broker, "a", listener=Raising()) as c:
        with pytest.raises((ListenerError, error)):
            c.poll(5)
        assert len(c.poll(5)) == 5


@pytest.mark.spec("U-03", "D-23")
def test_a_deserializer_that_fails_on_every_third_record_stops_no_other(broker: MiniBroker) -> None:
    def decode(topic: str, headers: Any, data: bytes) -> int:
        if int(data) % 3 == 2:
            raise StopIteration(data)
        return int(data)

    broker.fill("a", 0, *(b"%d" % number for number in range(5, 30)))
    good, bad = [], []
    with consumer(broker, "a", value_deserializer=decode) as c:
        while len(good) + len(bad) < 30:
            try:
                good += [record.value for record in c.poll(5)]
            except DecodeError as exc:
                bad.append((exc.offset, c.position(A0)))
                c.seek(A0, exc.offset + 1)
    assert bad == [(offset, offset) for offset in range(2, 30, 3)]
    assert good == [number for number in range(30) if number % 3 != 2]


@pytest.mark.spec("B.18", "I-24")
def test_a_deserializer_may_close_the_consumer(broker: MiniBroker) -> None:
    def decode(topic: str, headers: Any, data: bytes) -> bytes:
        c.close(10)
        return data

    c = consumer(broker, "a", value_deserializer=decode)
    with within(3), pytest.raises(ClosedError):
        c.poll(5)
    assert len(broker.of("LeaveGroupRequest")) == 1


@pytest.mark.spec("B.18", "B.3.1")
def test_deserializers_are_closed_on_the_users_thread(broker: MiniBroker) -> None:
    closed_on: list[threading.Thread] = []

    class Shaped:
        def deserialize(self, topic: str, headers: Any, data: bytes) -> bytes:
            return data

        def close(self) -> None:
            closed_on.append(threading.current_thread())

    with consumer(broker, "a", value_deserializer=Shaped()) as c:
        c.poll(5)
    assert closed_on == [threading.current_thread()]


# --- sys.exit() on the thread that all consumers share


class ExitsOnLoop(logging.Handler):
    """A log handler, and a metric reporter, that calls sys.exit() on kclient's own thread, a few times."""

    exits = 0

    def emit(self, record: logging.LogRecord | None = None) -> None:
        if threading.current_thread().name == "kclient" and self.exits < 3:
            self.exits += 1
            sys.exit("no space left")

    metric_added = metric_removed = emit  # type: ignore[assignment]


def _poll_all(c: Consumer, seen: list[int]) -> None:
    """Poll until five records are there; what ends a task of kclient's is raised by a poll, once."""
    while len(seen) < 5:
        try:
            seen += [record.offset for record in c.poll(1)]
        except (InternalError, SystemExit):
            continue


def _all_polled(*consumers: Consumer) -> list[list[int]]:
    """What each has read, on threads that a test may leave behind."""
    seen: list[list[int]] = [[] for _ in consumers]
    threads = [
        threading.Thread(target=_poll_all, args=pair, daemon=True)
        for pair in zip(consumers, seen, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return seen


@pytest.mark.spec("I-25")
def test_a_metric_reporter_that_exits_is_logged_and_has_no_other_consequence(broker: MiniBroker) -> None:
    reporter = ExitsOnLoop()
    first, other = consumer(broker, "a", metric_reporters=[reporter]), consumer(broker, group_id=None)
    other.assign([A0])
    assert _all_polled(first, other) == [[0, 1, 2, 3, 4]] * 2
    first.close()
    other.close()
    assert reporter.exits == 3


@pytest.mark.spec("I-25")
def test_a_log_handler_that_exits_stops_neither_its_consumer_nor_the_others(
    broker: MiniBroker, caplog: pytest.LogCaptureFixture
) -> None:
    other = consumer(broker, group_id=None)
    other.assign([A0])
    exits, logger = ExitsOnLoop(), logging.getLogger("kclient.connection")
    caplog.set_level(logging.DEBUG, logger.name)
    logger.addHandler(exits)
    try:
        first = consumer(broker, "a")
        assert _all_polled(first, other) == [[0, 1, 2, 3, 4]] * 2
    finally:
        logger.removeHandler(exits)
    first.close()
    other.close()
    assert exits.exits == 3
    assert "raised SystemExit; the consumers of this process continue" in caplog.text


# --- many of everything


@pytest.mark.spec("S1-12", "M-93", "I-25")
def test_a_storm_of_wakeups_from_four_threads_loses_no_record(broker: MiniBroker) -> None:
    broker.fill("a", 0, *(b"%d" % number for number in range(5, 2_000)))
    seen: list[int] = []
    woken, over = 0, threading.Event()

    def storm() -> None:
        while not over.wait(0.0005):
            c.wakeup()

    with consumer(broker, "a", max_poll_records=50) as c:
        threads = [threading.Thread(target=storm) for _ in range(4)]
        for thread in threads:
            thread.start()
        ends = time.monotonic() + 20
        while len(seen) < 2_000 and time.monotonic() < ends:
            try:
                seen += [record.offset for record in c.poll(0.1)]
            except WakeupError:
                woken += 1
        over.set()
        for thread in threads:
            thread.join(5)
        while True:
            try:
                c.poll(0)
                break
            except WakeupError:
                continue
    assert seen == list(range(2_000))
    assert woken > 0


@pytest.mark.spec("S3-06")
def test_two_threads_that_poll_one_consumer_share_its_records_or_are_refused(broker: MiniBroker) -> None:
    broker.fill("a", 0, *(b"%d" % number for number in range(5, 1_000)))
    seen: list[int] = []
    refused = [0, 0]

    def poll(which: int) -> None:
        while len(seen) < 1_000 and time.monotonic() < ends:
            try:
                seen.extend(record.offset for record in c.poll(0.05, max_records=10))
            except ConcurrentUseError:
                refused[which] += 1
                time.sleep(0.0005)

    ends = time.monotonic() + 20
    with consumer(broker, "a") as c:
        threads = [threading.Thread(target=poll, args=(which,)) for which in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(25)
    assert sorted(seen) == list(range(1_000))
    assert sum(refused) > 0


@pytest.mark.spec("D-78")
def test_nested_loops_yield_each_record_once(broker: MiniBroker) -> None:
    broker.fill("a", 0, *(b"%d" % number for number in range(5, 40)))
    seen: list[int] = []
    with consumer(broker, "a", max_poll_records=7) as c:
        for record in c:
            seen.append(record.offset)
            for more in c:
                seen.append(more.offset)
                if more.offset % 3 == 0:
                    break
            if seen[-1] == 39:
                break
    assert seen == list(range(40))
    assert broker.committed[A0].offset == 40


@pytest.mark.spec("B.6.1", "I-24")
def test_flips_between_subscribe_and_assign_end_where_they_should(broker: MiniBroker) -> None:
    with consumer(broker, enable_auto_commit=False) as c:
        for _ in range(15):
            c.subscribe(["a"])
            c.poll(0)
            with pytest.raises(UsageError):
                c.assign([A0])
            c.subscribe([])
            c.assign([A0])
            c.poll(0.001)
            with pytest.raises(UsageError):
                c.subscribe(["a"])
            c.unsubscribe()
        c.subscribe(["a"])
        seen: list[int] = []
        ends = time.monotonic() + 10
        while len(seen) < 5 and time.monotonic() < ends:
            seen += [record.offset for record in c.poll(0.5)]
        assert seen == [0, 1, 2, 3, 4]


@pytest.mark.spec("I-24")
def test_fifty_consumers_share_one_thread_and_leave_none(broker: MiniBroker) -> None:
    consumers = [consumer(broker, group_id=None) for _ in range(50)]
    for c in consumers:
        c.assign([A0])
    assert [len(c.poll(10)) for c in consumers] == [5] * 50
    assert [thread.name for thread in threading.enumerate()].count("kclient") == 1
    for c in consumers:
        c.close()
