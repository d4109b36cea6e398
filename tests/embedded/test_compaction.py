"""What cleaners and retention leave: gaps, empty batches, tombstones for a while, a log start that moved."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from math import ceil
from typing import Any

import pytest

from kclient import AsyncConsumer, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.embedded.observer import Observer
from kclient.embedded.partition import Partition
from kclient.embedded.replication import append
from kclient.protocol.errors import NONE, OFFSET_OUT_OF_RANGE
from kclient.records.batch import read_batches
from kclient.records.writer import NewRecord, build_batch, build_marker
from tests.embedded.one_topic import NOW, OneTopic, batch, records
from tests.embedded.raw_client import RawClient

COMPACT = {"cleanup.policy": "compact", "delete.retention.ms": "60000"}
Test = Callable[[EmbeddedCluster, OneTopic], Awaitable[None]]


class Watcher(Observer):
    """Records the offsets that compaction removed, and the new log start offsets."""

    def __init__(self) -> None:
        self.removed: list[int] = []
        self.starts: list[int] = []

    def compacted(self, partition: Partition, removed: list[int]) -> None:
        self.removed += removed

    def log_start_moved(self, partition: Partition, to: int) -> None:
        self.starts.append(to)


def run(test: Test, config: dict[str, str], **options: Any) -> None:
    async def main() -> None:
        async with EmbeddedCluster(**options) as cluster, RawClient(cluster) as raw_client:
            cluster.create_topic("orders", 1, config=config)
            await test(cluster, OneTopic(cluster, raw_client, "orders"))

    asyncio.run(main())


def keyed(*pairs: tuple[str, str | None], **options: Any) -> bytes:
    rows = [
        NewRecord(key.encode(), value and value.encode(), NOW + n) for n, (key, value) in enumerate(pairs)
    ]
    return build_batch(rows, **options)


@pytest.mark.spec("F-42", "B.11.1")
@pytest.mark.parametrize("codec", range(5))
def test_the_newest_record_of_a_key_stays_where_it_was(codec: int) -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        watcher = Watcher()
        cluster.state.observers.append(watcher)
        await on.produce(keyed(("a", "1"), ("b", "2"), ("a", "3"), compression=codec))
        await on.produce(keyed(("c", "4"), ("a", "5"), compression=codec))
        cluster.compact("orders", 0)
        row = await on.fetch(0)
        assert records(row.records) == [(1, b"b", b"2"), (3, b"c", b"4"), (4, b"a", b"5")]
        first, second = read_batches(row.records)
        first.check_crc()
        assert (first.base_offset, first.last_offset, first.count, first.compression) == (0, 2, 1, codec)
        assert (second.base_offset, second.last_offset, second.count) == (3, 4, 2)
        assert watcher.removed == [0, 2]
        assert (row.high_watermark, row.log_start_offset) == (5, 0)

    run(test, COMPACT)


@pytest.mark.spec("F-42")
def test_a_batch_without_records_goes_unless_its_sequences_are_needed() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        for producer_id, sequence in ((1, 0), (1, 1), (2, 0)):
            options = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
            await on.produce(keyed(("a", "v"), **options))
        await on.produce(keyed(("a", "v")))
        cluster.compact("orders", 0)
        found = [
            (one.base_offset, one.count, one.base_sequence)
            for one in read_batches((await on.fetch(0)).records)
        ]
        assert found == [(1, 0, 1), (2, 0, 0), (3, 1, -1)]

    run(test, COMPACT)


@pytest.mark.spec("F-42")
def test_a_tombstone_stays_until_its_horizon() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        await on.produce(keyed(("a", "1"), ("a", None), ("b", "2")))
        cluster.compact("orders", 0)
        row = await on.fetch(0)
        assert records(row.records) == [(1, b"a", None), (2, b"b", b"2")]
        (header,) = read_batches(row.records)
        assert header.delete_horizon_ms is not None
        cluster.clock.advance(59)
        cluster.compact("orders", 0)
        assert len(records((await on.fetch(0)).records)) == 2
        cluster.clock.advance(2)
        cluster.compact("orders", 0)
        assert records((await on.fetch(0)).records) == [(2, b"b", b"2")]

    run(test, COMPACT)


@pytest.mark.spec("F-42", "F-43")
def test_what_is_open_stays_and_what_was_aborted_counts_for_nothing() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        def write(data: bytes) -> None:
            append(cluster.state, on.partition(), data)

        mine = {"producer_id": 1, "producer_epoch": 0, "is_transactional": True}
        write(keyed(("a", "1")))  # 0
        write(keyed(("a", "2"), base_sequence=0, **mine))  # 1, aborted
        write(build_marker(commit=False, offset=0, producer_id=1, producer_epoch=0))  # 2
        write(keyed(("b", "3")))  # 3
        write(keyed(("b", "4"), base_sequence=1, **mine))  # 4, open
        write(keyed(("b", "5")))  # 5
        cluster.compact("orders", 0)
        assert records((await on.fetch(0)).records) == [
            (0, b"a", b"1"),
            (3, b"b", b"3"),
            (4, b"b", b"4"),
            (5, b"b", b"5"),
        ]

    run(test, COMPACT)


@pytest.mark.spec("F-42", "B.10.10")
def test_a_consumer_gets_over_holes_of_any_shape() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        for _ in range(4):
            await on.produce(batch(b"x", b"y", b"z"))
        cluster.remove_records("orders", 0, {0, 1, 3, 4, 5, 7, 11})
        async with AsyncConsumer(
            bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            tp = TopicPartition("orders", 0)
            await consumer.assign([tp])
            read: list[int] = []
            while await consumer.position(tp) < 12:
                read += [record.offset for record in await consumer.poll(timeout=5)]
            assert read == [2, 6, 8, 9, 10]

    run(test, {})


@pytest.mark.spec("F-42")
def test_messages_of_old_formats_are_taken_out_too() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        await on.produce(batch(b"x", b"y", b"z", compression=1), version=3)
        await on.produce(batch(b"x", b"y"), version=3)
        cluster.remove_records("orders", 0, {1, 3})
        row = await on.fetch(0, version=2)
        assert [offset for offset, _, _ in records(row.records)] == [0, 2, 4]
        assert {one.magic for one in read_batches(row.records)} == {1}

    run(test, {"message.format.version": "0.10.2"}, release="2.8")


@pytest.mark.spec("F-38")
def test_old_records_go_after_their_retention() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        watcher = Watcher()
        cluster.state.observers.append(watcher)
        now = int(time.time() * 1000)  # not when this file was read: the tests before may take minutes
        for age in (7_000_000, 3_000_000, 0):
            await on.produce(batch(b"v", timestamp=now - age))
        cluster.clock.advance(31)
        assert watcher.starts == [1]
        assert (await on.fetch(0)).error_code == OFFSET_OUT_OF_RANGE
        row = await on.fetch(1)
        assert (row.error_code, row.log_start_offset) == (NONE, 1)
        cluster.clock.advance(3600)
        assert watcher.starts == [1, 2, 3]

    run(test, {"retention.ms": "3600000"})


@pytest.mark.spec("F-38")
def test_a_log_keeps_no_more_than_its_bytes_and_a_compacted_one_all() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        one = batch(b"v" * 100)
        for _ in range(5):
            await on.produce(one)
        cluster.expire("orders")
        size = len(one)
        assert on.partition().log.start == (0 if on.partition().topic.compacted else 5 - ceil(250 / size))

    run(test, {"retention.bytes": "250"})
    run(test, {"retention.bytes": "250", "cleanup.policy": "compact"})
