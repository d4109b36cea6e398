"""A stream reader driven as Spark drives it, without Spark: offsets go through JSON, ranges through pickle."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import attrs

from kclient import Consumer
from kclient.embedded import EmbeddedCluster
from kclient.spark.decoding import ValueDecoder
from kclient.spark.options import SourceOptions
from kclient.spark.source import ReadLimit, StreamReader
from kclient.types import OffsetAndMetadata, TopicPartition
from localkafka import KafkaCluster

Offset = dict[str, dict[str, int]]
Rows = list[tuple[int, int]]

COLUMNS = ("partition", "offset")

_readers: list[StreamReader] = []


def reader_of(kafka: EmbeddedCluster | KafkaCluster, topic: str = "t", **extra: str) -> StreamReader:
    """A reader of one topic from its beginning; `__` in an option's name stands for a dot."""
    given = {name.replace("__", "."): value for name, value in extra.items()}
    selection = {} if given.keys() & {"subscribePattern", "assign"} else {"subscribe": topic}
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "startingOffsets": "earliest",
        "fetchOffset.retryIntervalMs": "10",
        **selection,
        **given,
    }
    reader = StreamReader(SourceOptions.parse(options, "stream"), COLUMNS, ValueDecoder({}))
    _readers.append(reader)
    return reader


def commit(kafka: EmbeddedCluster, group: str, offsets: dict[int, int], metadata: str = "") -> None:
    """What another program commits for partitions of `t`."""
    with Consumer(bootstrap_servers=kafka.bootstrap_servers, group_id=group) as other:
        other.commit(
            {TopicPartition("t", at): OffsetAndMetadata(to, metadata=metadata) for at, to in offsets.items()}
        )


def stop_readers() -> None:
    """End the clients of a test's readers."""
    while _readers:
        _readers.pop().stop()


@attrs.define
class Query:
    """What Spark keeps of a query: the offset log and the commit log. A restart is another reader with the same log."""

    reader: StreamReader
    log: list[Offset] = attrs.field(factory=list)
    committed: int = 0
    rows: Rows = attrs.field(factory=list)
    old: bool = False  # as Spark before 4.2 calls it: with neither a start offset nor a limit

    def start(self) -> Offset:
        """Where the first batch begins."""
        if not self.log:
            self.log.append(self._through_json(self.reader.initialOffset()))
        return self.log[0]

    def trigger(self, limit: ReadLimit | None = None) -> Rows | None:
        """One trigger: the rows of a batch, or None where there is nothing new. Calls in Spark's order."""
        self.start()
        if self.committed == len(self.log) - 1:
            end = self._through_json(self._latest(limit))
            if json.dumps(end) == json.dumps(self.log[-1]):
                return None
            if self.committed:
                self.reader.commit(self.log[-1])
            self.log.append(end)
        return self.run()

    def _latest(self, limit: ReadLimit | None) -> Offset:
        if self.old:
            return self.reader.latestOffset()
        asked = self.reader.getDefaultReadLimit() if limit is None else limit
        end = self.reader.latestOffset(self.log[-1], asked)
        self.reader.reportLatestOffset()
        return end

    def run(self) -> Rows:
        """The batch that the log names last: for the first time, or again after a crash."""
        start, end = self.log[-2:]
        rows = list(self._read(start, end))
        self.rows += rows
        self.committed = len(self.log) - 1
        return rows

    def drain(self) -> list[int]:
        """Trigger until nothing is left, as availableNow does: the rows of each batch."""
        sizes: list[int] = []
        while (rows := self.trigger()) is not None:
            sizes.append(len(rows))
        return sizes

    def _read(self, start: Offset, end: Offset) -> Iterator[tuple[int, int]]:
        reader = pickle.loads(pickle.dumps(self.reader))
        for planned in self.reader.partitions(self._through_json(start), self._through_json(end)):
            for batch in reader.read(pickle.loads(pickle.dumps(planned))):
                yield from ((row["partition"], row["offset"]) for row in batch.to_pylist())

    @staticmethod
    def _through_json(offset: Offset) -> Offset:
        through: Any = json.loads(json.dumps(offset))
        return dict(through)


def fill(kafka: EmbeddedCluster, *counts: int, topic: str = "t") -> None:
    """So many records into partition 0, 1, …"""
    for partition, count in enumerate(counts):
        kafka.produce(topic, [b"x"] * count, partition=partition)


def everything(*counts: int) -> Rows:
    """(partition, offset) of so many records in partition 0, 1, …"""
    return [(partition, offset) for partition, count in enumerate(counts) for offset in range(count)]
