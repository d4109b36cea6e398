"""Polls of a Consumer that hand out records which an earlier poll has read ahead, without a change of threads."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from kclient import Consumer, TopicPartition
from kclient.bridge import LoopThread
from kclient.consumer import read_ahead
from kclient.errors import ConcurrentUseError, UsageError, WakeupError
from tests.consumer.interrupts import raise_at_random
from tests.consumer.mini_broker import FAST, MiniBroker, in_a_thread

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
RECORDS = 1_000


@pytest.fixture(autouse=True)
def _valid_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine does not end what a fast one has read ahead."""
    monkeypatch.setattr(read_ahead, "READ_AHEAD_VALID", 60.0)
    monkeypatch.setattr(read_ahead, "READ_AHEAD_SECONDS", 60.0)


@pytest.fixture
def full(broker: MiniBroker) -> MiniBroker:
    broker.fill("a", 0, *(b"%d" % number for number in range(5, RECORDS)))
    return broker


@pytest.fixture
def two() -> Iterator[MiniBroker]:
    broker = MiniBroker(topics={"a": 2})
    for partition in (0, 1):
        broker.fill("a", partition, *(b"%d" % number for number in range(RECORDS)))
    with in_a_thread(broker):
        yield broker


def until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def consumer(broker: MiniBroker, *topics: str, **settings: Any) -> Consumer:
    keys = {"bootstrap_servers": broker.address, "group_id": "g", "auto_offset_reset": "earliest"}
    keys["heartbeat_interval_ms"] = 3_000
    return Consumer(*topics, **{**FAST, **keys, **settings})


@contextmanager
def counted_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """The calls that change threads."""
    run, calls = LoopThread.run, list[object]()

    def counted(thread: LoopThread, function: Any) -> Any:
        calls.append(function)
        return run(thread, function)

    monkeypatch.setattr(LoopThread, "run", counted)
    yield calls


def assigned(broker: MiniBroker, **settings: Any) -> Consumer:
    """A consumer whose first poll has returned ten records and read the others ahead."""
    c = consumer(broker, group_id="g", enable_auto_commit=False, **settings)
    c.assign([A0])
    offsets: list[int] = []
    while not offsets:
        offsets = offsets_of(c.poll(5, max_records=10))
    assert offsets == list(range(10))
    return c


def offsets_of(records: Any) -> list[int]:
    return [record.offset for record in records]


def test_polls_of_records_read_ahead_stay_on_their_thread(
    full: MiniBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with assigned(full) as c, counted_calls(monkeypatch) as calls:
        seen = [offset for _ in range(99) for offset in offsets_of(c.poll(5, max_records=10))]
        assert calls == []
    assert seen == list(range(10, RECORDS))


def test_iteration_reads_ahead_too(full: MiniBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    with consumer(full, "a", max_poll_records=10) as c, counted_calls(monkeypatch) as calls:
        records = iter(c)
        seen = [next(records).offset for _ in range(RECORDS)]
    assert seen == list(range(RECORDS))
    assert len(calls) < RECORDS / 10 / 2


def test_a_poll_for_more_records_gets_what_fits(full: MiniBroker) -> None:
    with assigned(full) as c:
        assert offsets_of(c.poll(5, max_records=35)) == list(range(10, 40))
        assert offsets_of(c.poll(5, max_records=10)) == list(range(40, 50))


def test_a_poll_for_fewer_records_gets_no_more(full: MiniBroker) -> None:
    with assigned(full) as c:
        seen: list[int] = []
        while len(seen) < 21:
            records = c.poll(5, max_records=7)
            assert len(records) <= 7
            seen += offsets_of(records)
        assert seen == list(range(10, 31))


def test_positions_and_commits_are_after_what_was_returned(full: MiniBroker) -> None:
    with assigned(full) as c:
        for end in (20, 30, 40):
            c.poll(5, max_records=10)
            assert c.position(A0) == end
            c.commit()
            assert full.committed[A0].offset == end
        c.poll(5, max_records=10)
        assert c.current_lag(A0) in (None, RECORDS - 50)
        assert str(c.explain(ask=False)).count("ready: offset 50 was read ahead for the next poll()") == 1


def test_an_automatic_commit_covers_what_the_next_poll_shows_to_be_processed(full: MiniBroker) -> None:
    with consumer(full, "a", max_poll_records=10, auto_commit_interval_ms=1) as c:
        polled = 0
        while polled < 300:
            polled += len(c.poll(5))
            assert not full.committed or full.committed[A0].offset <= polled
        until(lambda: bool(c.poll(0.1)) or full.committed[A0].offset >= polled)
    assert full.committed[A0].offset <= RECORDS


def test_seek_pause_and_assign_drop_what_was_read_ahead(full: MiniBroker) -> None:
    with assigned(full) as c:
        c.seek(A0, 500)
        assert c.poll(5, max_records=10).next_offsets()[A0].offset == 510
        c.pause([A0])
        assert len(c.poll(0.05, max_records=10)) == 0
        assert c.position(A0) == 510
        c.resume([A0])
        assert offsets_of(c.poll(5, max_records=10)) == list(range(510, 520))
        c.seek_to_beginning([A0])
        assert offsets_of(c.poll(5, max_records=10)) == list(range(10))
        c.unsubscribe()
        with pytest.raises(UsageError):
            c.poll(0)


def test_wakeup_ends_the_next_poll(full: MiniBroker) -> None:
    with assigned(full) as c:
        c.wakeup()
        with pytest.raises(WakeupError):
            c.poll(5, max_records=10)
        assert offsets_of(c.poll(5, max_records=10)) == list(range(10, 20))


def test_a_callback_runs_in_the_poll_after_its_commit(full: MiniBroker) -> None:
    """It has something due, so that this poll does not skip the steps before its records."""
    done: list[object] = []
    with assigned(full) as c:
        c.commit_async(callback=lambda offsets, error: done.append(error))
        until(lambda: len(full.commits) > 0)
        seen = 10
        while not done:
            records = c.poll(5, max_records=10)
            seen += len(records)
            assert seen < RECORDS, "no poll has run the callback"
            time.sleep(0.005)
        assert done == [None]


def test_due_work_ends_the_validity(full: MiniBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "READ_AHEAD_VALID", 0.01)
    with assigned(full) as c, counted_calls(monkeypatch) as calls:
        time.sleep(0.02)
        assert offsets_of(c.poll(5, max_records=10)) == list(range(10, 20))
        assert len(calls) == 1  # and it drops nothing that was read ahead
        assert len(full.of("FetchRequest")) <= 3


def same(topic: str, headers: object, data: bytes) -> bytes:
    return data


@pytest.mark.parametrize(
    "settings",
    [
        {"value_deserializer": same},
        {"key_deserializer": same},
        {"interceptors": [SimpleNamespace(on_consume=lambda records: records)]},
    ],
)
def test_user_code_runs_in_the_poll_of_its_records(
    full: MiniBroker, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with assigned(full, **settings) as c, counted_calls(monkeypatch) as calls:
        assert len(c.poll(5, max_records=10)) == 10
        assert len(calls) == 1


def test_another_thread_is_refused_as_before(full: MiniBroker) -> None:
    refused: list[object] = []

    def poll() -> None:
        try:
            c.poll(0)
        except ConcurrentUseError as exc:
            refused.append(exc.inside)

    with assigned(full) as c:
        c._inside["thread"] = threading.main_thread()
        thread = threading.Thread(target=poll)
        thread.start()
        thread.join(10)
        c._inside.clear()
        assert refused == [threading.main_thread().name]
        assert offsets_of(c.poll(5, max_records=10)) == list(range(10, 20))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # one may hit a destructor
def test_interrupts_at_any_moment_of_polls_lose_nothing(full: MiniBroker) -> None:
    seen: list[int] = []
    with consumer(full, "a", max_poll_records=3) as c, raise_at_random(KeyboardInterrupt, 0.01) as interrupts:
        while not seen or seen[-1] != RECORDS - 1:
            with suppress(KeyboardInterrupt):
                interrupts.armed = interrupts.count < 200  # each interrupt takes another Fetch
                batch = c.poll(5)
                interrupts.armed = False
                seen += offsets_of(batch)
            interrupts.armed = False
    assert sorted(dict.fromkeys(seen)) == list(range(RECORDS))


def test_an_interrupt_before_the_records_arrive_delivers_them_again(
    full: MiniBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with assigned(full) as c:
        with monkeypatch.context() as patch:
            patch.setattr(c._processing, "taken", interrupt)
            with pytest.raises(KeyboardInterrupt):
                c.poll(5, max_records=10)
        assert c.position(A0) == 10
        assert offsets_of(c.poll(5, max_records=10)) == list(range(10, 20))


@pytest.mark.parametrize("seed", range(4))
def test_calls_in_any_order_skip_and_repeat_nothing(two: MiniBroker, seed: int) -> None:
    """The loop thread commits, sends heartbeats and reads metrics meanwhile; threads change as often as they can."""
    choice, over = random.Random(seed), threading.Event()
    next_offsets = {A0: 0, A1: 0}
    settings = {"auto_commit_interval_ms": 3, "heartbeat_interval_ms": 5, "max_poll_records": 7}
    before = sys.getswitchinterval()
    with consumer(two, **settings) as c:
        sys.setswitchinterval(1e-5)
        c.assign([A0, A1])
        waker = threading.Thread(target=wake_up, args=(c, over, random.Random(seed)))
        waker.start()
        try:
            for _ in range(400):
                with suppress(WakeupError):
                    step(c, choice, next_offsets)
                committed = {tp: offset.offset for tp, offset in two.committed.items()}
                assert all(committed.get(tp, 0) <= RECORDS for tp in next_offsets)
        finally:
            over.set()
            waker.join(10)
            sys.setswitchinterval(before)


def wake_up(c: Consumer, over: threading.Event, choice: random.Random) -> None:
    while not over.wait(choice.uniform(0.001, 0.02)):
        c.wakeup()


def step(c: Consumer, choice: random.Random, next_offsets: dict[TopicPartition, int]) -> None:
    """One call, and what it has to give: records follow each other, positions are after those returned."""
    tp = choice.choice([A0, A1])
    match choice.choice(["poll"] * 12 + ["seek", "pause", "commit", "position", "metrics", "loop"]):
        case "poll":
            for record in c.poll(0.05, max_records=choice.choice([3, 7, 20])):
                expect(record, next_offsets)
        case "loop":
            for count, record in enumerate(c):
                expect(record, next_offsets)
                if count == choice.randrange(20) or min(next_offsets.values()) > RECORDS - 50:
                    break
        case "seek":
            target = choice.randrange(RECORDS - 100)
            c.seek(tp, target)
            next_offsets[tp] = target
        case "pause":
            c.pause([tp])
            assert all(
                record.topic == "a" and record.partition != tp.partition for record in polled(c, next_offsets)
            )
            c.resume([tp])
        case "commit":
            c.commit()
        case "position":
            assert c.position(tp) == next_offsets[tp]
        case "metrics":
            c.metrics()


def polled(c: Consumer, next_offsets: dict[TopicPartition, int]) -> list[Any]:
    try:
        records = list(c.poll(0.01))
    except WakeupError:
        return []
    for record in records:
        expect(record, next_offsets)
    return records


def expect(record: Any, next_offsets: dict[TopicPartition, int]) -> None:
    tp = TopicPartition(record.topic, record.partition)
    assert record.offset == next_offsets[tp]
    next_offsets[tp] = record.offset + 1
