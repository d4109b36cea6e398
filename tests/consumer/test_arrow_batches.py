"""arrow_batches(): rows of several polls in batches of the asked size, and Records for other Arrow libraries."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from kclient import AsyncConsumer, Consumer, TopicPartition
from kclient.errors import ArgumentError, DecodeError, TopicAuthorizationError, WakeupError
from kclient.protocol.errors import TOPIC_AUTHORIZATION_FAILED
from kclient.records.arrow import SCHEMA
from tests.consumer.mini_broker import FAST, MiniBroker, in_a_thread

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
RECORDS = 1_000
# A Fetch brings about 100 records: one batch takes several of them.
SETTINGS: dict[str, Any] = {
    **FAST,
    "group_id": "g",
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 3_000,
    "enable_auto_commit": False,
}


@pytest.fixture
def two() -> Iterator[MiniBroker]:
    broker = MiniBroker(topics={"a": 2})
    for partition in (0, 1):
        broker.fill("a", partition, *(b"%d" % number for number in range(RECORDS)))
    with in_a_thread(broker):
        yield broker


def consumer(broker: MiniBroker, **settings: Any) -> Consumer:
    c = Consumer(bootstrap_servers=broker.address, **{**SETTINGS, **settings})
    c.assign([A0, A1])
    return c


def offsets_of(batch: pa.RecordBatch, partition: int) -> list[int]:
    columns = batch.to_pydict()
    return [
        offset
        for offset, its in zip(columns["offset"], columns["partition"], strict=True)
        if its == partition
    ]


def test_batches_have_the_asked_rows_and_the_offsets_after_them(two: MiniBroker) -> None:
    seen: dict[int, list[int]] = {0: [], 1: []}
    with consumer(two, max_poll_records=10) as c:
        for batch, offsets in c.arrow_batches(rows=250, timeout=60):
            assert batch.schema == SCHEMA
            for partition in seen:
                seen[partition] += offsets_of(batch, partition)
            for tp, offset in offsets.items():
                assert offset.offset == seen[tp.partition][-1] + 1 == c.position(tp)
            c.commit(offsets)
            assert {tp: two.committed[tp].offset for tp in offsets} == {
                tp: offset.offset for tp, offset in offsets.items()
            }
            assert batch.num_rows == 250
            if sum(map(len, seen.values())) == 2 * RECORDS:
                break
    assert seen == {0: list(range(RECORDS)), 1: list(range(RECORDS))}


def test_a_batch_is_over_after_the_timeout_also_without_rows(two: MiniBroker) -> None:
    with consumer(two) as c:
        assert next(c.arrow_batches(rows=2 * RECORDS, timeout=60)).batch.num_rows == 2 * RECORDS
        batches = c.arrow_batches(rows=10_000, timeout=0.3, columns=["offset"])
        began = time.monotonic()
        batch, offsets = next(batches)
        assert (batch.num_rows, batch.schema.names, offsets) == (0, ["offset"], {})
        assert time.monotonic() - began >= 0.3


def test_bytes_end_a_batch_too(two: MiniBroker) -> None:
    with consumer(two) as c:
        batch, _ = next(c.arrow_batches(bytes=1, timeout=5))
        assert 0 < batch.num_rows <= 2 * RECORDS


def test_what_waits_for_a_batch_counts_as_not_returned(two: MiniBroker) -> None:
    """An interrupted wait keeps it for the next batch; a seek drops what it had of its partition."""
    with consumer(two) as c:
        interrupted(c)
        assert {c.position(A0), c.position(A1)} == {0}
        assert c.committed([A0]) == {A0: None}
        c.seek(A1, 990)
        batch, offsets = next(c.arrow_batches(rows=1_010, timeout=5))
        assert offsets_of(batch, 0) == list(range(RECORDS))
        assert offsets_of(batch, 1) == list(range(990, RECORDS))
        assert {tp: offset.offset for tp, offset in offsets.items()} == {A0: RECORDS, A1: RECORDS}


def interrupted(c: Consumer) -> None:
    """Gather all records for a batch, and be interrupted."""
    waker = threading.Thread(target=wake_up_when_gathered, args=(c, 2 * RECORDS))
    waker.start()
    with pytest.raises(WakeupError):
        next(c.arrow_batches(rows=10_000, timeout=60))
    waker.join(10)


def test_a_batch_has_no_more_rows_than_asked_although_more_were_gathered_before(two: MiniBroker) -> None:
    with consumer(two) as c:
        interrupted(c)
        batch, _ = next(c.arrow_batches(rows=100, timeout=60))
        assert batch.num_rows == 100
        assert (offsets_of(batch, 0) + offsets_of(batch, 1))[0] == 0


def test_interceptors_see_records_that_were_gathered_before_the_loop(two: MiniBroker) -> None:
    seen: list[int] = []

    def on_consume(records: Any) -> Any:
        seen.extend(record.offset for record in records)
        return records

    with consumer(two, interceptors=[SimpleNamespace(on_consume=on_consume)]) as c:
        interrupted(c)
        assert seen == []
        assert [next(iter(c)).offset, seen[0]] == [0, 0]


def wake_up_when_gathered(c: Consumer, count: int) -> None:
    while c._inner.delivered.ahead.count < count:
        time.sleep(0.01)
    c.wakeup()


def test_rows_before_an_error_come_first(two: MiniBroker) -> None:
    def refuse(topic: str, headers: object, data: bytes) -> bytes:
        if data == b"500":
            raise ValueError
        return data

    with consumer(two, value_deserializer=refuse) as c:
        c.assign([A0])
        assert offsets_of(next(c.arrow_batches(rows=600, timeout=3)).batch, 0) == list(range(500))
        with pytest.raises(DecodeError):
            next(c.arrow_batches(rows=600, timeout=30))
        assert c.position(A0) == 500
        c.seek(A0, 501)
        assert offsets_of(next(c.arrow_batches(rows=99, timeout=5)).batch, 0) == list(range(501, 600))


def test_rows_before_the_error_of_another_partition_come_first(two: MiniBroker) -> None:
    with consumer(two) as c:
        c.pause([A1])
        assert next(c.arrow_batches(rows=100, timeout=5)).batch.num_rows == 100
        two.fetch_errors[A1] = TOPIC_AUTHORIZATION_FAILED
        c.resume([A1])
        core = c._inner._core
        while not (waiting := core.buffer.queue(A1)) or not waiting[0].error_code:
            time.sleep(0.01)
        assert len(core.buffer.queue(A0)) > 0
        batch, _ = next(c.arrow_batches(rows=5_000, timeout=3))
        assert offsets_of(batch, 0) == list(range(100, RECORDS))
        with pytest.raises(TopicAuthorizationError):
            next(c.arrow_batches(rows=5_000, timeout=5))


def test_a_batch_that_cannot_be_made_is_not_lost(two: MiniBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise MemoryError

    with consumer(two) as c:
        with monkeypatch.context() as patch:
            patch.setattr("kclient.records.arrow_batch.arrow_batch", fail)
            with pytest.raises(MemoryError):
                next(c.arrow_batches(rows=10, timeout=5))
        assert next(c.arrow_batches(rows=2 * RECORDS, timeout=5)).batch.num_rows == 2 * RECORDS


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"rows": 0}, "rows is a whole number, 1 or more, not 0"),
        ({"rows": True}, "rows is a whole number"),
        ({"bytes": 0}, "bytes is a whole number, from 1 to 1,073,741,824, not 0"),
        ({"bytes": 2**31}, "bytes is a whole number"),
        ({"columns": ["colour"]}, "no column 'colour'"),
        ({"timeout": -1}, "timeout"),
    ],
)
def test_sizes_are_checked_before_the_first_batch(two: MiniBroker, sizes: dict[str, Any], text: str) -> None:
    with consumer(two) as c, pytest.raises(ArgumentError, match=text):
        c.arrow_batches(**sizes)


def test_the_async_consumer_has_the_same_batches(two: MiniBroker) -> None:
    async def read() -> list[tuple[int, dict[TopicPartition, int]]]:
        found = []
        async with AsyncConsumer(bootstrap_servers=two.address, **SETTINGS) as c:
            await c.assign([A0, A1])
            async for batch, offsets in c.arrow_batches(rows=500, timeout=60):
                found.append((batch.num_rows, {tp: offset.offset for tp, offset in offsets.items()}))
                await c.commit(offsets)
                if sum(rows for rows, _ in found) == 2 * RECORDS:
                    return found
        return found

    found = asyncio.run(asyncio.wait_for(read(), 30))
    assert [rows for rows, _ in found] == [500] * 4
    assert {tp: offset.offset for tp, offset in two.committed.items()} == {A0: RECORDS, A1: RECORDS}


def test_other_libraries_take_records_by_the_capsule_interface(two: MiniBroker) -> None:
    with consumer(two) as c:
        records = c.poll(5)
        while not len(records):
            records = c.poll(5)
        table = pa.table(records)
        assert table.equals(records.to_arrow())
        assert pa.RecordBatchReader.from_stream(records).read_all().equals(table)
        with closing(duckdb.connect()) as connection:
            count = connection.sql("select count(*) from records").fetchall()
        assert count == [(len(records),)]
