"""The files of one range while they are written: one for each directory and day, named after the range.

A name is a function of the range, so the same range, written again, gives the same names. `OPEN_FILES` are written at
a time; the rows of further days wait on the disk until those are done. Pure of pyspark.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from kclient.spark.manifest import Written
from kclient.spark.parquet_file import ParquetFile
from kclient.spark.plan import OffsetRange
from kclient.spark.spill import Spill

OPEN_FILES: Final = 128
EPOCH_DAY: Final = datetime.date(1970, 1, 1).toordinal()
FIRST_DAY: Final = datetime.date.min.toordinal() - EPOCH_DAY
LAST_DAY: Final = datetime.date.max.toordinal() - EPOCH_DAY
NO_DATE: Final = "__HIVE_DEFAULT_PARTITION__"
"""The directory of days outside the years 1 to 9999, which readers know as one without a value."""


def file_name(wanted: OffsetRange, date: str | None = None, suffix: str = "") -> str:
    """The name of a range's file, relative to the sink."""
    directory = f"topic={wanted.topic}" + ("" if date is None else f"/date={date}")
    return f"{directory}/{wanted.partition:05d}-{wanted.start:020d}-{wanted.end:020d}{suffix}.parquet"


class RangeFiles:
    """The files of one range. Every method may raise SinkError."""

    def __init__(self, wanted: OffsetRange, codec: str, suffix: str) -> None:
        self._wanted = wanted
        self._codec = codec
        self._suffix = suffix
        self._parts: dict[tuple[str, str | None], _Part] = {}
        self._spills: dict[str, Spill] = {}

    def add(self, root: str, date: str | None, rows: pa.RecordBatch) -> None:
        """Write rows of one day, or of all days where `date` is None, below a directory."""
        if (root, date) in self._parts or date is None or len(self._parts) < OPEN_FILES:
            self._part(root, date, rows.schema).add(rows)
        else:
            self._spill(root, rows.schema).add(date, rows)

    def finish(self) -> None:
        """Write every file to its end, under its hidden name."""
        for part in self._parts.values():
            part.file.finish()
        for root, spill in self._spills.items():
            self._unspill(root, spill)

    def publish(self) -> None:
        """Bring every finished file to the disk and give it its name."""
        for part in self._parts.values():
            part.file.publish()

    def discard(self) -> None:
        """Take the hidden files away."""
        for spill in self._spills.values():
            spill.discard()
        for part in self._parts.values():
            part.file.discard()

    def written(self, root: str | None) -> tuple[Written, ...]:
        """What lies below a directory."""
        tp = self._wanted
        return tuple(
            Written(
                path=file_name(tp, date, self._suffix),
                topic=tp.topic,
                partition=tp.partition,
                start=tp.start,
                end=tp.end,
                rows=part.file.rows,
                bytes=part.file.bytes,
                first_ms=part.first_ms,
                last_ms=part.last_ms,
            )
            for (where, date), part in self._parts.items()
            if where == root
        )

    def _unspill(self, root: str, spill: Spill) -> None:
        """Write the files of the days that waited, so many at a time."""
        spill.finish()
        dates = spill.dates
        for first in range(0, len(dates), OPEN_FILES):
            some = dict.fromkeys(dates[first : first + OPEN_FILES])
            for date, rows in spill.read(some):
                self._part(root, date, rows.schema).add(rows)
            for date in some:
                self._parts[root, date].file.finish()
        spill.discard()

    def _part(self, root: str, date: str | None, schema: pa.Schema) -> _Part:
        """The file of one day, begun when it is first asked for."""
        key = root, date
        if key not in self._parts:
            path = Path(root) / file_name(self._wanted, date, self._suffix)
            self._parts[key] = _Part(ParquetFile(path, schema, self._codec))
        return self._parts[key]

    def _spill(self, root: str, schema: pa.Schema) -> Spill:
        if root not in self._spills:
            self._spills[root] = Spill(Path(root) / file_name(self._wanted, None, self._suffix), schema)
        return self._spills[root]


@attrs.define(eq=False)
class _Part:
    """A file and the times of its records."""

    file: ParquetFile
    first_ms: int | None = None
    last_ms: int | None = None

    def add(self, rows: pa.RecordBatch) -> None:
        self.file.add(rows)
        first, last = (time // 1000 for time in _span(rows.column("_timestamp")))
        self.first_ms = first if self.first_ms is None else min(first, self.first_ms)
        self.last_ms = last if self.last_ms is None else max(last, self.last_ms)


def by_date(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each day in UTC, in order of days, those of `NO_DATE` last.

    A record without a time has −1 ms, so it is of 1969-12-31. Any producer can send microseconds as milliseconds: such
    times are thousands of years ahead and nearly each of another day, so they are one before the rows are parted.
    """
    days = batch.column("timestamp").cast(pa.date32()).cast(pa.int32())
    known = pc.and_(pc.greater_equal(days, FIRST_DAY), pc.less_equal(days, LAST_DAY))
    days = pc.if_else(known, days, pa.scalar(LAST_DAY + 1, pa.int32()))
    found = sorted(pc.unique(days).to_pylist())
    for day in found:
        yield date_of(day), batch if len(found) == 1 else batch.filter(pc.equal(days, day))


def date_of(day: int) -> str:
    """What the directory of a day is called, counted from 1970-01-01."""
    return datetime.date.fromordinal(EPOCH_DAY + day).isoformat() if FIRST_DAY <= day <= LAST_DAY else NO_DATE


def _span(timestamps: pa.Array) -> tuple[int, int]:
    """The first and last time in microseconds."""
    found = pc.min_max(timestamps.view(pa.int64())).as_py()
    return found["min"], found["max"]
