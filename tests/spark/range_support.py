"""Logs of the embedded cluster, written batch by batch, and ranges of them read as a worker of Spark reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from kclient.embedded import EmbeddedCluster, NewRecord
from kclient.embedded.control import leaders
from kclient.embedded.replication import append
from kclient.records.compression import Compression
from kclient.records.writer import build_batch, build_marker
from kclient.spark.arrow_batches import default_columns
from kclient.spark.executor import read_range
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import OffsetRange

ALL = default_columns(include_headers=True)
Rows = list[dict[str, Any]]


@attrs.define
class Log:
    """One partition, and the offsets of what a reader of committed records sees of it."""

    kafka: EmbeddedCluster
    topic: str = "t"
    end: int = 0
    visible: list[int] = attrs.field(factory=list)
    markers: list[int] = attrs.field(factory=list)
    sequences: dict[int, int] = attrs.field(factory=dict)

    def batch(self, *records: NewRecord, compression: Compression = Compression.NONE) -> None:
        """A batch outside of transactions."""
        self.visible += range(self.end, self.end + len(records))
        self._append(build_batch(records, compression=compression), len(records))

    def values(self, count: int, size: int = 1) -> None:
        """A batch of so many records."""
        self.batch(*(NewRecord(b"%d" % n, b"x" * size) for n in range(self.end, self.end + count)))

    def transaction(self, producer_id: int, count: int, *, commit: bool) -> None:
        """A batch of a transaction, and its marker."""
        sequence = self.sequences.get(producer_id, 0)
        self.sequences[producer_id] = sequence + count
        if commit:
            self.visible += range(self.end, self.end + count)
        records = [NewRecord(value=b"t")] * count
        self._append(
            build_batch(
                records,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=sequence,
                is_transactional=True,
            ),
            count,
        )
        self.marker(producer_id, commit=commit)

    def marker(self, producer_id: int, *, commit: bool) -> None:
        """A control batch; one without a transaction is legal."""
        self.markers.append(self.end)
        self._append(build_marker(commit=commit, offset=0, producer_id=producer_id, producer_epoch=0), 1)

    def remove(self, *offsets: int) -> None:
        """What a cleaner takes out: any record but markers, which outlive their transaction. The batches stay."""
        offsets = tuple(offset for offset in offsets if offset not in self.markers)
        self.kafka.remove_records(self.topic, 0, offsets)
        self.visible = [offset for offset in self.visible if offset not in offsets]

    def _append(self, data: bytes, count: int) -> None:
        partition = leaders.find(self.kafka.state, self.topic, 0)
        self.kafka.cluster_loop.call(lambda: append(self.kafka.state, partition, data))
        self.end += count

    # --- reading

    def read(
        self, start: int = 0, end: int | None = None, columns: Sequence[str] = ALL, **extra: str
    ) -> Rows:
        """The rows of a range."""
        wanted = OffsetRange(self.topic, 0, start, self.end if end is None else end)
        batches = read_range(wanted, options_for(self.kafka, self.topic, **extra), columns)
        return [row for batch in batches for row in batch.to_pylist()]

    def offsets(self, start: int = 0, end: int | None = None, **extra: str) -> list[int]:
        """The offsets of a range's rows."""
        return [row["offset"] for row in self.read(start, end, ("offset",), **extra)]

    def seen(self, start: int, end: int) -> list[int]:
        """What such a range has to give to a reader of committed records."""
        return [offset for offset in self.visible if start <= offset < end]

    def asked(self) -> list[int]:
        """The offsets at which the worker fetched."""
        return [
            partition.fetch_offset
            for one in self.kafka.requests
            if one.api == "Fetch"
            for topic in one.request.topics
            for partition in topic.partitions
        ]


COMMITTED = {"kafka__isolation__level": "read_committed"}


def options_for(kafka: EmbeddedCluster, topic: str = "t", **extra: str) -> SourceOptions:
    """`__` in a name stands for a dot."""
    given = {name.replace("__", "."): value for name, value in extra.items()}
    return SourceOptions.parse(
        {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic, **given}
    )
