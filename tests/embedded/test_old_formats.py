"""Formats 0 and 1: what releases before 0.11 store, what old Produce versions bring, what old Fetch versions get."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient import AsyncConsumer, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.embedded.old_formats import message_set
from kclient.protocol.errors import NONE, UNSUPPORTED_COMPRESSION_TYPE
from kclient.records.batch import read_batches
from kclient.records.sections import columns_for, open_batch
from kclient.records.writer import NewRecord
from kclient.types import TimestampType
from tests.embedded.one_topic import NOW, OneTopic, batch, records
from tests.embedded.raw_client import RawClient

Test = Callable[[EmbeddedCluster, OneTopic], Awaitable[None]]


def run(test: Test, *, config: dict[str, str] | None = None, **options: Any) -> None:
    async def main() -> None:
        async with EmbeddedCluster(**options) as cluster, RawClient(cluster) as raw_client:
            cluster.create_topic("orders", 1, config=config)
            await test(cluster, OneTopic(cluster, raw_client, "orders"))

    asyncio.run(main())


def messages(magic: int, codec: int, count: int = 3) -> bytes:
    """A message set as an old producer sends it."""
    rows = [NewRecord(b"key", b"value %d" % n, NOW + n, offset=n) for n in range(count)]
    return b"".join(message_set(rows, magic, codec))


def timestamps(data: Any) -> list[int]:
    found: list[int] = []
    for header in read_batches(data):
        section = open_batch(header)
        columns = columns_for(section)
        section.read_into(columns, 1000)
        found += columns.timestamps
    return found


@pytest.mark.spec("B.11.4")
@pytest.mark.parametrize("codec", range(4))
@pytest.mark.parametrize(("magic", "version"), [(0, 0), (0, 1), (1, 2)])
def test_a_broker_of_0_10_keeps_format_1(magic: int, version: int, codec: int) -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        for base in (0, 3):
            row = await on.produce(messages(magic, codec), version=version)
            assert (row.error_code, row.base_offset) == (NONE, base)
        row = await on.fetch(0, version=2)
        assert [(offset, value) for offset, _, value in records(row.records)] == [
            (n, b"value %d" % (n % 3)) for n in range(6)
        ]
        assert timestamps(row.records) == ([NOW, NOW + 1, NOW + 2] * 2 if magic else [-1] * 6)
        for header in read_batches(row.records):
            assert (header.magic, header.compression) == (1, codec)
            header.check_crc()

    run(test, release="0.10.0")


@pytest.mark.spec("B.11.4")
@pytest.mark.parametrize("codec", range(4))
def test_a_topic_may_keep_format_0(codec: int) -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        await on.produce(messages(0, codec), version=1)
        await on.produce(batch(b"a", b"b", compression=codec))
        row = await on.fetch(0)
        assert [offset for offset, _, _ in records(row.records)] == [0, 1, 2, 3, 4]
        assert {header.magic for header in read_batches(row.records)} == {0}

    run(test, release="2.8", config={"message.format.version": "0.9.0"})


@pytest.mark.parametrize("codec", range(4))
@pytest.mark.parametrize(("magic", "version"), [(0, 0), (1, 2)])
def test_old_producers_are_understood_since_0_11(magic: int, version: int, codec: int) -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        assert (await on.produce(messages(magic, codec), version=version)).base_offset == 0
        assert (await on.produce(messages(magic, codec), version=version)).base_offset == 3
        row = await on.fetch(0)
        headers = list(read_batches(row.records))
        assert [(one.magic, one.base_offset, one.count, one.compression) for one in headers] == [
            *((2, 0, 3, codec), (2, 3, 3, codec)),
        ]
        assert timestamps(row.records)[:3] == ([NOW, NOW + 1, NOW + 2] if magic else [-1] * 3)

    run(test, release="2.8")


@pytest.mark.spec("C.2.1")
@pytest.mark.parametrize("codec", range(4))
@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2)])
def test_old_consumers_get_what_they_can_read(version: int, magic: int, codec: int) -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        await on.produce(batch(b"a" * 200, b"b" * 200, timestamp=NOW, compression=codec))
        await on.produce(batch(b"c" * 200, timestamp=NOW + 5, compression=codec))
        row = await on.fetch(0, version=version)
        assert [(offset, (value or b"")[:1]) for offset, _, value in records(row.records)] == [
            *((0, b"a"), (1, b"b"), (2, b"c")),
        ]
        assert timestamps(row.records) == ([NOW, NOW, NOW + 5] if magic else [-1] * 3)
        for header in read_batches(row.records):
            assert (header.magic, header.compression) == (magic, codec)
            header.check_crc()
        again = await on.fetch(2, version=version)
        assert [offset for offset, _, _ in records(again.records)] == [2]

    run(test, release="2.8")


def test_the_time_of_the_broker_survives_conversion() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        for data, version in ((messages(1, 1), 2), (messages(1, 0, 1), 2), (batch(b"a"), 3)):
            row = await on.produce(data, version=version)
            assert row.log_append_time_ms > 0
        for header in read_batches((await on.fetch(0, version=3)).records):
            assert header.timestamp_type is TimestampType.LOG_APPEND_TIME

    run(test, release="2.8", config={"message.timestamp.type": "LogAppendTime"})


@pytest.mark.spec("B.11.5")
def test_zstd_cannot_be_made_older() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        await on.produce(batch(b"a", compression=4))
        codes = [(await on.fetch(0, version=version)).error_code for version in (1, 3, 4, 10)]
        assert codes == [UNSUPPORTED_COMPRESSION_TYPE, UNSUPPORTED_COMPRESSION_TYPE, NONE, NONE]

    run(test, release="2.8")


@pytest.mark.spec("B.11.5")
@pytest.mark.parametrize(
    ("release", "codes"), [("2.8", [UNSUPPORTED_COMPRESSION_TYPE, NONE]), ("4.3", [NONE, NONE])]
)
def test_a_topic_that_is_zstd_wants_clients_that_know_it_before_4_0(release: str, codes: list[int]) -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        await on.produce(batch(b"a"))
        assert [(await on.fetch(0, version=version)).error_code for version in (9, 10)] == codes

    run(test, release=release, config={"compression.type": "zstd"})


@pytest.mark.spec("B.10.8")
@pytest.mark.parametrize(("version", "whole"), [(0, False), (2, False), (3, True), (4, True)])
def test_before_version_3_the_first_message_may_be_cut_off(version: int, whole: bool) -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        await on.produce(batch(b"a" * 500))
        row = await on.fetch(0, version=version, max_bytes=100)
        assert bool(records(row.records)) is whole
        assert whole or len(row.records) == 100

    run(test, release="2.8")


@pytest.mark.parametrize("release", ["0.10.0", "0.10.2", "0.11.0", "1.1", "2.0", "2.3"])
def test_our_consumer_reads_from_old_releases(release: str) -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        newest = 2 if release.startswith("0.10") else 3
        for codec in range(4):
            data = (
                messages(1, codec)
                if newest == 2
                else batch(b"value 0", b"value 1", b"value 2", compression=codec)
            )
            await on.produce(data, version=newest)
        async with AsyncConsumer(
            bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            await consumer.assign([TopicPartition("orders", 0)])
            read: list[Any] = []
            while len(read) < 12:
                read += [(record.offset, record.value) for record in await consumer.poll(timeout=5)]
        assert read == [(n, b"value %d" % (n % 3)) for n in range(12)]

    run(test, release=release)
