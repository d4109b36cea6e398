"""What a child of `run_bounded` reads, by every way that leads from the bytes of a Fetch to a user.

The batches come as hex, for they are made where memory does not count. Each way returns what a user saw.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kclient import AsyncConsumer, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.embedded.appending import append_all
from kclient.embedded.control import leaders
from kclient.errors import CorruptDataError, TooManyHeadersError
from kclient.records.batch import read_batches
from kclient.records.reader import PartitionReader
from kclient.records.records import Records
from kclient.spark.plan import OffsetRange
from kclient.spark.worker import clients, read_range
from tests.spark.ranges import options_for

TP = TopicPartition("t", 0)
Seen = dict[str, Any]


def store(cluster: EmbeddedCluster, data: str) -> None:
    """Append batches as they are."""
    field = bytes.fromhex(data)
    batches = [field[one.start : one.end] for one in read_batches(field)]
    append_all(cluster.state, leaders.find(cluster.state, *TP), batches)


@asynccontextmanager
async def consumer_of(data: str, **settings: Any) -> AsyncIterator[AsyncConsumer[Any, Any]]:
    """A consumer at the beginning of a partition that holds the batches."""
    async with (
        EmbeddedCluster(topics={TP.topic: 1}) as cluster,
        AsyncConsumer(bootstrap_servers=cluster.bootstrap_servers, **settings) as consumer,
    ):
        store(cluster, data)
        await consumer.assign([TP])
        consumer.seek_to_beginning([TP])
        yield consumer


def take(data: str) -> Seen:
    """By the reader of a partition, as `poll` and Spark use it."""
    reader, seen = PartitionReader(*TP, bytes.fromhex(data), 0), []
    try:
        while not reader.exhausted:
            seen += [record.offset for record in Records([reader.take(500)])]
    except CorruptDataError as exc:
        return told(exc, seen)
    return {"offsets": seen}


def told(exc: CorruptDataError, seen: list[int]) -> Seen:
    """What a user needs of an error."""
    return {"offsets": seen, "error": type(exc).__name__, "text": str(exc), **vars(exc)}


async def poll_and_go_past(data: str) -> Seen:
    """By polls; past a bad batch as its error says."""
    offsets: list[int] = []
    async with consumer_of(data) as consumer:
        try:
            while True:
                offsets += [record.offset for record in await consumer.poll(timeout=10)]
        except TooManyHeadersError as exc:
            consumer.seek(TP, exc.next_offset)
            after = [record.offset for record in await consumer.poll(timeout=10)]
            return {**told(exc, offsets), "after": after}


async def poll_all(data: str, count: int, with_headers: bool = False) -> Seen:
    """By polls of up to 500 records; `headers` counts those that were looked at."""
    offsets: list[int] = []
    headers = 0
    async with consumer_of(data) as consumer:
        while len(offsets) < count:
            records = await consumer.poll(timeout=10)
            offsets += [offset for chunk in records.chunks for run in chunk.runs for offset in run.offsets]
            if with_headers:
                headers += sum(len(record.headers) for record in records)
    return {"offsets": offsets, "headers": headers}


def read_with_spark(data: str, columns: list[str], end: int, **options: str) -> Seen:
    """As a task of Spark reads a range."""
    offsets: list[int] = []
    with EmbeddedCluster(topics={TP.topic: 1}) as cluster:
        cluster.home.call(lambda: store(cluster, data))
        try:
            wanted = OffsetRange(*TP, 0, end)
            for batch in read_range(wanted, options_for(cluster, **options), ["offset", *columns]):
                offsets += batch.column(0).to_pylist()
        except CorruptDataError as exc:
            return told(exc, offsets)
        finally:
            clients.close()
    return {"offsets": offsets}
