"""A decoder plugged in for native code, with its own column types: every path of records goes through it.

The one here fills arrays of C's numbers, as native code would, and notes what it is asked for. What users get is
the same as without it.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kclient import AsyncConsumer, Consumer, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.embedded import NewRecord as Written
from kclient.records import decoder
from kclient.records.columns import Columns
from kclient.records.decoder import PYTHON_DECODER, Decoder
from kclient.records.reader import PartitionReader
from kclient.records.records import Record, Records
from kclient.records.writer import NewRecord, build_batch
from kclient.spark.arrow_batches import default_columns
from kclient.spark.executor import clients, read_range
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink.parquet import DirectTarget, write_range
from kclient.spark.sink.row_layout import RowLayout
from kclient.types import TimestampType

COUNT = 700
NUMBERS = ("offsets", "timestamps", "key_starts", "key_sizes", "value_starts", "value_sizes", "header_starts")
ALL = default_columns(include_headers=True)


@attrs.define(eq=False)
class ArrayColumns(Columns):
    """Columns whose numbers lie in memory as C and Arrow have them."""

    offsets: array[int] = attrs.field(factory=lambda: array("q"))
    timestamps: array[int] = attrs.field(factory=lambda: array("q"))
    key_starts: array[int] = attrs.field(factory=lambda: array("i"))
    key_sizes: array[int] = attrs.field(factory=lambda: array("i"))
    value_starts: array[int] = attrs.field(factory=lambda: array("i"))
    value_sizes: array[int] = attrs.field(factory=lambda: array("i"))
    header_starts: array[int] = attrs.field(factory=lambda: array("i"))

    def stamp(self, start: int, timestamp: int) -> None:
        self.timestamps[start:] = array("q", [timestamp]) * (len(self) - start)


@attrs.define
class Fake:
    """A `Decoder` that lets the pure one work and puts what comes of it into its own columns."""

    asked: list[int] = attrs.field(factory=list)
    columns_type: type[Columns] = ArrayColumns

    def decode(self, columns: Columns, position: int, count: int, **limits: Any) -> int:
        assert type(columns) is ArrayColumns
        found = Columns(columns.data, columns.timestamp_type, columns.leader_epoch)
        self.asked.append(count)
        try:
            return PYTHON_DECODER.decode(found, position, count, **limits)
        finally:
            for name in NUMBERS:
                getattr(columns, name).extend(getattr(found, name))

    @property
    def records(self) -> int:
        return sum(self.asked)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    instead, choice = Fake(), decoder.decoder()
    monkeypatch.setattr(decoder, "_in_use", lambda: (instead, choice))
    return instead


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"t": 1}) as cluster:
        cluster.produce("t", [written(number) for number in range(COUNT)])
        yield cluster
        clients.close()


def written(number: int) -> Written:
    headers = [("h", b"%d" % number), ("h", None)] if number % 5 == 0 else []
    value = (None, b"", b"v" * 100, b"x" * (number % 300))[number % 4]
    return Written(b"k%d" % number if number % 3 else None, value, 1_700_000_000_000 + 7 * number, headers)


# --- every way in which users get records


def polled(kafka: EmbeddedCluster) -> list[Record[Any, Any]]:
    with Consumer(bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("t", 0)])
        return until_all(lambda: consumer.poll(5.0))


def deserialized(kafka: EmbeddedCluster) -> list[Record[Any, Any]]:
    settings: dict[str, Any] = {"value_deserializer": lambda topic, headers, data: len(data)}
    with Consumer(
        bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest", **settings
    ) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        return until_all(lambda: consumer.poll(5.0, max_records=90))


def until_all(poll: Callable[[], Records[Any, Any]]) -> list[Record[Any, Any]]:
    found: list[Record[Any, Any]] = []
    while len(found) < COUNT:
        found += poll()
    return found


def polled_by_a_task(kafka: EmbeddedCluster) -> list[Record[Any, Any]]:
    async def work() -> list[Record[Any, Any]]:
        found: list[Record[Any, Any]] = []
        async with AsyncConsumer(
            bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            await consumer.assign([TopicPartition("t", 0)])
            while len(found) < COUNT:
                found += await consumer.poll(5.0)
        return found

    return asyncio.run(work())


def as_arrow(kafka: EmbeddedCluster) -> list[Any]:
    with Consumer(bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("t", 0)])
        tables: list[pa.Table] = []
        while sum(len(table) for table in tables) < COUNT:
            tables.append(consumer.poll(5.0, max_records=300).to_arrow())
        return pa.concat_tables(tables).to_pylist()  # type: ignore[no-any-return]


def by_a_worker_of_spark(kafka: EmbeddedCluster) -> list[Any]:
    batches = read_range(OffsetRange("t", 0, 3, COUNT - 2), options(kafka), ALL)
    return [row for batch in batches for row in batch.to_pylist()]


def into_parquet(kafka: EmbeddedCluster, folder: Path) -> list[Any]:
    target = DirectTarget(root=str(folder), layout=RowLayout())
    done = write_range(OffsetRange("t", 0, 0, COUNT), options(kafka), target)
    return [row for one in done.files for row in pq.ParquetFile(folder / one.path).read().to_pylist()]


def options(kafka: EmbeddedCluster) -> SourceOptions:
    return SourceOptions.parse(
        {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": "t", "includeHeaders": "true"}
    )


PATHS: dict[str, Callable[[EmbeddedCluster, Path], list[Any]]] = {
    "Consumer.poll": lambda kafka, _: polled(kafka),
    "with a deserializer": lambda kafka, _: deserialized(kafka),
    "AsyncConsumer.poll": lambda kafka, _: polled_by_a_task(kafka),
    "Records.to_arrow": lambda kafka, _: as_arrow(kafka),
    "a worker of Spark": lambda kafka, _: by_a_worker_of_spark(kafka),
    "direct Parquet": into_parquet,
}


@pytest.mark.spec("SP-65", "B.11.1")
@pytest.mark.parametrize("path", PATHS)
def test_every_path_of_records_goes_through_the_decoder_in_use(
    kafka: EmbeddedCluster, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = PATHS[path](kafka, tmp_path / "without")
    instead, choice = Fake(), decoder.decoder()
    monkeypatch.setattr(decoder, "_in_use", lambda: (instead, choice))
    assert PATHS[path](kafka, tmp_path / "with") == without
    assert len(without) >= COUNT - 5
    assert instead.records >= len(without)


@pytest.mark.spec("B.11.1")
def test_a_reader_may_be_given_another_decoder_than_the_one_in_use(fake: Fake) -> None:
    data = build_batch([NewRecord(b"k", b"v")] * 3)
    assert [len(PartitionReader("t", 0, data, 0, decoder=PYTHON_DECODER).take(9)), fake.asked] == [3, []]
    assert [len(PartitionReader("t", 0, data, 0).take(9)), fake.asked] == [3, [3]]


@pytest.mark.spec("B.11.1")
def test_the_brokers_time_and_the_cut_at_an_end_hold_for_columns_of_another_kind(fake: Fake) -> None:
    data = build_batch(
        [NewRecord(b"k", b"v")] * 30, timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp=77
    )
    chunk = PartitionReader("t", 0, data, 4).take(99)
    chunk.cut_at(20)
    assert [(one.offset, one.timestamp) for one in Records[Any, Any]([chunk])] == [
        (n, 77) for n in range(4, 20)
    ]
    assert fake.records == 30


def test_arrow_keeps_nothing_of_the_bytes_that_a_decoder_saw() -> None:
    """A batch of rows is its own; no fetched frame stays in memory for it."""
    other: Decoder = Fake()
    data = build_batch([NewRecord(b"key", b"v" * 50)] * 2_000)
    chunk = PartitionReader("t", 0, data, 0, decoder=other).take(10)
    table = Records[Any, Any]([chunk]).to_arrow()
    sizes = [buffer.size for column in table.columns for buffer in column.chunk(0).buffers() if buffer]
    assert sum(sizes) < 3_000 < len(data)
