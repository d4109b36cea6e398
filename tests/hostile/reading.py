"""What a child of `run_bounded` reads, by every way that leads from the bytes of a Fetch to a user.

The cluster with the batches is in the process of the test, where memory does not count. Each way returns what a user
saw.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import kclient.consumer.core  # noqa: F401 – its import belongs to the first consumer, not to the data that it reads
from kclient import AsyncConsumer, TopicPartition
from kclient.errors import CorruptDataError, TooManyHeadersError
from kclient.records.reader import PartitionReader
from kclient.records.records import Records
from kclient.types import IsolationLevel

TP = TopicPartition("t", 0)
Seen = dict[str, Any]


@asynccontextmanager
async def consumer_of(servers: str) -> AsyncIterator[AsyncConsumer[Any, Any]]:
    """A consumer at the beginning of the partition."""
    async with AsyncConsumer(bootstrap_servers=servers) as consumer:
        await consumer.assign([TP])
        consumer.seek_to_beginning([TP])
        yield consumer


def error_report(exc: CorruptDataError, seen: list[int]) -> Seen:
    """What a user needs of an error."""
    return {"offsets": seen, "error": type(exc).__name__, "text": str(exc), **vars(exc)}


def take(data: str, isolation: str = "READ_UNCOMMITTED") -> Seen:
    """By the reader of a partition, as `poll` and Spark use it; the field of a Fetch comes as hex."""
    level = IsolationLevel[isolation]
    reader, seen = PartitionReader(*TP, bytes.fromhex(data), 0, isolation_level=level), []
    try:
        while not reader.exhausted:
            seen += [record.offset for record in Records([reader.take(500)])]
    except CorruptDataError as exc:
        return error_report(exc, seen)
    return {"offsets": seen}


async def poll_and_go_past(servers: str) -> Seen:
    """By polls; past a bad batch as its error says."""
    offsets: list[int] = []
    async with consumer_of(servers) as consumer:
        try:
            while True:
                offsets += [record.offset for record in await consumer.poll(timeout=10)]
        except TooManyHeadersError as exc:
            consumer.seek(TP, exc.next_offset)
            after = [record.offset for record in await consumer.poll(timeout=10)]
            return {**error_report(exc, offsets), "after": after}


async def poll_columns(servers: str, count: int) -> Seen:
    """By polls, without an object for any record."""
    offsets: list[int] = []
    async with consumer_of(servers) as consumer:
        while len(offsets) < count:
            records = await consumer.poll(timeout=10)
            offsets += [offset for chunk in records.chunks for run in chunk.runs for offset in run.offsets]
    return {"offsets": offsets}


async def poll_columns_once(servers: str) -> Seen:
    """By one poll, without an object for any record."""
    return await poll_columns(servers, 1)


async def poll_values(servers: str, count: int) -> Seen:
    """By polls; the number of headers and the size of the value of each record, in the order in which they came."""
    headers: list[int] = []
    sizes: list[int] = []
    async with consumer_of(servers) as consumer:
        while len(sizes) < count:
            for record in await consumer.poll(timeout=10):
                headers.append(len(record.headers))
                sizes.append(len(record.value))
    return {"sizes": sizes, "headers": headers}


async def poll_arrow(servers: str, count: int) -> Seen:
    """By polls as tables."""
    import pyarrow.compute as pc

    sizes: list[int] = []
    async with consumer_of(servers) as consumer:
        while len(sizes) < count:
            table = (await consumer.poll(timeout=10)).to_arrow()
            sizes += pc.binary_length(table.column("value")).to_pylist()
    return {"sizes": sizes}


def read_with_spark(servers: str, end: int) -> Seen:
    """As a task of Spark reads the values of a range."""
    import pyarrow.compute as pc

    from kclient.spark.executor import clients, read_range
    from kclient.spark.ranges import OffsetRange

    sizes: list[int] = []
    try:
        for batch in read_range(OffsetRange(*TP, 0, end), options_for(servers), ["value"]):
            sizes += pc.binary_length(batch.column(0)).to_pylist()
    except CorruptDataError as exc:
        return error_report(exc, sizes)
    finally:
        clients.close()
    return {"sizes": sizes}


def ingest(servers: str, end: int) -> Seen:
    """As a task of the ingest job writes a range to Parquet."""
    import pyarrow.parquet as pq

    from kclient.spark.executor import clients
    from kclient.spark.ranges import OffsetRange
    from kclient.spark.sink.parquet import DirectTarget, write_range

    with TemporaryDirectory() as root:
        written = write_range(OffsetRange(*TP, 0, end), options_for(servers), DirectTarget(root=root))
        clients.close()
        rows = sum(pq.ParquetFile(Path(root) / file.path).metadata.num_rows for file in written.files)
    return {"rows": rows}


def options_for(servers: str) -> Any:
    """The options of a source of that topic."""
    from kclient.spark.options import SourceOptions

    return SourceOptions.parse({"kafka.bootstrap.servers": servers, "subscribe": TP.topic})
