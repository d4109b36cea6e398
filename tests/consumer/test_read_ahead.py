"""Iteration over a Consumer delivers records which an earlier poll has read ahead, without a change of threads."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient import AsyncConsumer, Consumer, TopicPartition
from kclient.bridge import LoopThread
from kclient.consumer import read_ahead
from kclient.consumer.delivered import DeliveredRecords
from kclient.consumer.poll import Poll
from kclient.consumer.read_ahead import divided
from kclient.errors import ConcurrentUseError, UsageError, UsedAfterForkError, WakeupError
from kclient.records import decoder
from kclient.records.columns import Columns
from kclient.records.reader import Chunk
from kclient.records.records import Records
from kclient.types import TimestampType
from tests import waiting
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
    """A consumer whose loop has delivered ten records, and whose poll for them has read the others ahead."""
    c = consumer(broker, group_id="g", enable_auto_commit=False, max_poll_records=10, **settings)
    c.assign([A0])
    assert take(c, 10) == list(range(10))
    return c


def take(c: Consumer, count: int) -> list[int]:
    """The offsets of the next records of the loop over the consumer."""
    return [record.offset for record in islice(c, count)]


def offsets_of(records: Any) -> list[int]:
    return [record.offset for record in records]


def test_iteration_over_records_read_ahead_stays_on_its_thread(
    full: MiniBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with assigned(full) as c:
        records = iter(c)
        with counted_calls(monkeypatch) as calls:
            seen = [next(records).offset for _ in range(10, RECORDS)]
            assert calls == []
    assert seen == list(range(10, RECORDS))


def test_a_poll_begins_at_the_first_record_that_the_loop_has_not_yielded(full: MiniBroker) -> None:
    with assigned(full) as c:
        assert offsets_of(c.poll(5, max_records=35)) == list(range(10, 45))
        assert take(c, 3) == [45, 46, 47]
        assert offsets_of(c.poll(5, max_records=3)) == [48, 49, 50]


def test_poll_reads_nothing_ahead(full: MiniBroker) -> None:
    """What it does not return stays in the buffer: a pause does not fetch it again."""
    with consumer(full, enable_auto_commit=False) as c:
        c.assign([A0])
        assert offsets_of(c.poll(5, max_records=10)) == list(range(10))
        c.pause([A0])
        assert len(c.poll(0.05)) == 0
        c.resume([A0])
        assert offsets_of(c.poll(5, max_records=990)) == list(range(10, RECORDS))
        starts = [
            partition.fetch_offset for request in full.of("FetchRequest") for partition in partitions(request)
        ]
        assert sorted(set(starts)) == [0, RECORDS]


def partitions(request: Any) -> list[Any]:
    return [partition for topic in request.topics for partition in topic.partitions]


def test_positions_and_commits_follow_the_returned_records(full: MiniBroker) -> None:
    with assigned(full) as c:
        for end in (20, 30, 40):
            take(c, 10)
            assert c.position(A0) == end
            c.commit()
            assert full.committed[A0].offset == end
        take(c, 10)
        assert c.current_lag(A0) in (None, RECORDS - 50)
        assert "ready: offset 50 is next in the loop over this consumer" in str(c.explain(ask=False))


def test_an_automatic_commit_covers_what_the_loop_has_asked_beyond(full: MiniBroker) -> None:
    with consumer(full, "a", max_poll_records=10, auto_commit_interval_ms=1) as c:
        for record in c:
            assert not full.committed or full.committed[A0].offset <= record.offset
            if record.offset == 300:
                break
        until(lambda: bool(take(c, 1)) and A0 in full.committed and full.committed[A0].offset >= 300)
    assert full.committed[A0].offset <= RECORDS


def test_seek_pause_and_assign_drop_what_was_read_ahead(full: MiniBroker) -> None:
    with assigned(full) as c:
        c.seek(A0, 500)
        assert take(c, 10) == list(range(500, 510))
        c.pause([A0])
        assert len(c.poll(0.05)) == 0
        assert c.position(A0) == 510
        c.resume([A0])
        assert take(c, 10) == list(range(510, 520))
        c.seek_to_beginning([A0])
        assert take(c, 10) == list(range(10))
        c.unsubscribe()
        with pytest.raises(UsageError):
            c.poll(0)


def test_wakeup_ends_the_wait_for_the_next_records(full: MiniBroker) -> None:
    with assigned(full) as c:
        c.wakeup()
        with pytest.raises(WakeupError):
            take(c, 1)
        assert take(c, 10) == list(range(10, 20))


def test_a_callback_runs_in_the_poll_after_its_commit(full: MiniBroker) -> None:
    """It has something due, so that this poll does not skip the steps before its records."""
    done: list[object] = []
    with assigned(full) as c:
        c.commit_async(callback=lambda offsets, error: done.append(error))
        until(lambda: len(full.commits) > 0)
        seen = 10
        while not done:
            seen += len(take(c, 10))
            assert seen < RECORDS, "no poll has run the callback"
            time.sleep(0.005)
        assert done == [None]


def test_due_work_ends_the_validity(full: MiniBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "READ_AHEAD_VALID", 0.01)
    with assigned(full) as c:
        records = iter(c)
        with counted_calls(monkeypatch) as calls:
            time.sleep(0.02)
            assert [next(records).offset for _ in range(10)] == list(range(10, 20))
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
    with assigned(full, **settings) as c:
        records = iter(c)
        with counted_calls(monkeypatch) as calls:
            assert [next(records).offset for _ in range(10)] == list(range(10, 20))
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
        assert take(c, 10) == list(range(10, 20))


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
    match choice.choice(["loop"] * 12 + ["seek", "pause", "commit", "position", "metrics", "poll"]):
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


def test_a_signal_handler_that_moves_a_position_drops_what_is_being_handed_out(
    two: MiniBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it runs after the check of what has changed."""
    with consumer(two, enable_auto_commit=False, max_poll_records=10) as c:
        c.assign([A0, A1])
        following, core = DeliveredRecords.following, c._inner._core
        assert len(c.poll(5, max_records=1))
        until(lambda: set(core.buffer.partitions()) == {A0, A1})
        c.seek_to_beginning()
        c.poll(0)
        until(lambda: set(core.buffer.partitions()) == {A0, A1})
        seen = [(record.partition, record.offset) for record in islice(c, 1)]
        seen += [(record.partition, record.offset) for record in c._inner.delivered]

        def interrupted(delivered: DeliveredRecords) -> DeliveredRecords:
            found = following(delivered)
            core.assigned.return_undelivered([A0])
            return found

        with monkeypatch.context() as handler:
            handler.setattr(core.read_ahead, "_changes", lambda: core.read_ahead._changes_seen)
            handler.setattr(DeliveredRecords, "following", interrupted)
            assert not c._inner.hand_out_ahead()
        seen += [(record.partition, record.offset) for record in islice(c, 2 * RECORDS - len(seen))]
        assert len({*seen}) == len(seen)


def test_reading_ahead_ends_with_its_time(full: MiniBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "READ_AHEAD_SECONDS", 0.0)
    with assigned(full) as c:
        assert c._inner.delivered.ahead.count == 0


# --- the async consumer


def read_ahead_async(broker: MiniBroker, scenario: Callable[[AsyncConsumer], Awaitable[None]]) -> None:
    """Run the scenario with a consumer that has returned ten records to its loop and has read the others ahead."""

    async def run() -> None:
        settings = {**FAST, "bootstrap_servers": broker.address, "auto_offset_reset": "earliest"}
        async with AsyncConsumer(**settings, max_poll_records=10) as c:
            await c.assign([A0])
            assert await take_async(c, 10) == list(range(10))
            await scenario(c)

    asyncio.run(asyncio.wait_for(run(), 30))


async def take_async(c: AsyncConsumer, count: int) -> list[int]:
    return [(await anext(c)).offset for _ in range(count)]


def test_async_iteration_skips_polls_and_still_lets_other_tasks_run(
    full: MiniBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    polls, turns, poll = 0, 0, Poll.poll

    async def counted(self: Poll, *args: Any, **settings: Any) -> Any:
        nonlocal polls
        polls += 1
        return await poll(self, *args, **settings)

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def scenario(c: AsyncConsumer) -> None:
        monkeypatch.setattr(Poll, "poll", counted)
        task = asyncio.create_task(other())
        assert await take_async(c, RECORDS - 10) == list(range(10, RECORDS))
        task.cancel()
        assert (polls, turns >= RECORDS / 10 - 1) == (0, True)

    read_ahead_async(full, scenario)


def test_seek_and_pause_of_an_async_consumer_drop_what_was_read_ahead(full: MiniBroker) -> None:
    async def scenario(c: AsyncConsumer) -> None:
        c.seek(A0, 500)
        assert await take_async(c, 3) == [500, 501, 502]
        c.pause([A0])
        assert len(await c.poll(0.05)) == 0
        c.resume([A0])
        assert await take_async(c, 2) == [503, 504]

    read_ahead_async(full, scenario)


def test_wakeup_ends_async_iteration_over_records_read_ahead(full: MiniBroker) -> None:
    async def scenario(c: AsyncConsumer) -> None:
        c.wakeup()
        with pytest.raises(WakeupError):
            await anext(c)
        assert await take_async(c, 3) == [10, 11, 12]

    read_ahead_async(full, scenario)


def test_a_task_does_not_take_what_another_gathers(full: MiniBroker) -> None:
    async def scenario(c: AsyncConsumer) -> None:
        gathering = asyncio.create_task(anext(aiter(c.arrow_batches(rows=5 * RECORDS, timeout=0.5))))
        await waiting.until(lambda: c._core.polls.is_under_way)
        with pytest.raises(ConcurrentUseError):
            await anext(c)
        assert (await gathering).batch.num_rows == RECORDS - 10

    read_ahead_async(full, scenario)


@pytest.mark.parametrize("decoder_name", ["native", "python"])
def test_async_iteration_ends_when_the_consumer_is_closed_inside(
    full: MiniBroker, monkeypatch: pytest.MonkeyPatch, decoder_name: str
) -> None:
    if decoder_name == "native":
        pytest.importorskip("kclient.records._native", reason="the native decoder is not built")
    monkeypatch.setattr(decoder, "is_native", lambda: decoder_name == "native")

    async def scenario(c: AsyncConsumer) -> None:
        seen = []
        async for record in c:
            seen.append(record.offset)
            if len(seen) == 5:
                await c.close()
        assert seen == list(range(10, 15))

    read_ahead_async(full, scenario)


def test_a_poll_that_was_cancelled_before_its_last_step_begins_no_validity(full: MiniBroker) -> None:
    async def scenario(c: AsyncConsumer) -> None:
        c._core.callbacks.enqueue(lambda: asyncio.sleep(5))
        c._core.callbacks.enqueue(lambda: asyncio.sleep(5))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(c), 0.05)
        assert not c._hand_out_ahead()

    read_ahead_async(full, scenario)


def test_records_read_ahead_are_not_for_another_loop_or_process(
    full: MiniBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(c: AsyncConsumer) -> None:
        with monkeypatch.context() as forked:
            forked.setattr(os, "getpid", lambda: -1)
            with pytest.raises(UsedAfterForkError):
                await anext(c)
        with pytest.raises(UsageError):
            await asyncio.to_thread(lambda: asyncio.run(take_async(c, 1)))
        assert await take_async(c, 1) == [10]

    read_ahead_async(full, scenario)


# --- the records of one decode, divided into polls


def decoded(partition: TopicPartition, *batches: int) -> Chunk:
    """A chunk with so many records in each of its batches."""
    runs, offset = [], 0
    for count in batches:
        run = Columns(b"", TimestampType.CREATE_TIME, 7, size_bytes=10 * count)
        for column in run.number_columns():
            column.extend([-1] * count)  # no key, value, header
        run.offsets = list(range(offset, offset + count))
        runs.append(run)
        offset += count
    return Chunk(partition, offset + 5, 7, runs)


def sizes(polls: list[Records[Any, Any]]) -> list[list[int]]:
    """The number of records of each run of each poll."""
    return [[len(run) for chunk in poll.chunks for run in chunk.runs] for poll in polls]


def test_decoded_records_are_divided_between_batches_where_that_is_possible() -> None:
    polls = list(divided(Records([decoded(A0, 300, 150, 900)]), 500))
    assert sizes(polls) == [[300, 150], [500], [400]]


def test_small_partitions_share_a_poll() -> None:
    polls = list(divided(Records([decoded(A0, 200), decoded(A1, 200), decoded(A0, 200)]), 500))
    assert [poll.partitions() for poll in polls] == [(A0, A1), (A0,)]


@given(st.lists(st.lists(st.integers(1, 40), min_size=1), min_size=1), st.integers(1, 30))
def test_divided_records_are_the_same_in_the_same_order(batches: list[list[int]], most: int) -> None:
    chunks = [decoded(TopicPartition("a", number), *each) for number, each in enumerate(batches)]
    records = Records[Any, Any](chunks)
    whole, ends, size = list(records), records.next_offsets(), sum(chunk.size_bytes for chunk in chunks)
    polls = list(divided(records, most))
    assert [record for poll in polls for record in poll] == whole
    assert all(0 < len(poll) <= most for poll in polls)
    assert {tp: end for poll in polls for tp, end in poll.next_offsets().items()} == ends
    parts = [chunk for poll in polls for chunk in poll.chunks]
    assert all(
        part.next_offset == part.runs[-1].offsets[-1] + 1
        for part in parts
        if part.next_offset != ends[part.partition].offset
    )
    assert abs(sum(part.size_bytes for part in parts) - size) <= len(parts)
