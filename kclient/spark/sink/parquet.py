"""Direct Parquet: a task writes the records of its range to files, so that no row crosses to a JVM.

    read (Arrow batches) → decode → split off bad records → by date → row groups → hidden files → fsync → rename

A file's name is a function of its range: the same range, written again, gives the same names. A file counts only when a
manifest names it (`manifest.py`), so a crash anywhere in here leaves nothing that a reader would see. Pure of pyspark.

`OPEN_FILES` files are open at a time; the rows of further days wait in a spill file on the disk. Closing the file that
was idle longest and starting a second one for late rows would make names depend on how the records came in batches.

Row groups hold about 122,880 rows, fewer where rows are large, so that a worker's memory is bounded. Only the topic is
encoded by a dictionary: keys and values rarely repeat, and trying costs more than it saves. Columns of raw bytes have
no statistics: the library keeps six copies of the largest value for them, and leaves out what is longer than 4 KiB.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Container, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kclient.runtime import Runtime
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink import row_layout
from kclient.spark.sink.atomic_files import (
    begin_run,
    current_run,
    make_directory,
    publish,
    sink_errors,
    sync,
    temporary_name,
)
from kclient.spark.sink.manifest import DIRECTORY, WrittenFile
from kclient.spark.sink.row_layout import RowLayout

ROW_GROUP_ROWS: Final = 122_880
ROW_GROUP_BYTES: Final = 67_108_864
DICTIONARY: Final = ["_topic"]
EXTRA: Final = {"zstd": {"compression_level": 1}}


class ParquetFile:
    """Writes rows of one schema to `path`. Every method may raise SinkError."""

    def __init__(self, path: Path, schema: pa.Schema, codec: str) -> None:
        self.path = path
        self.rows: int = 0
        self.bytes: int = 0
        self._schema = schema
        self._temporary = temporary_name(path)
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0
        with sink_errors(path):
            make_directory(path.parent)
            self._writer = pq.ParquetWriter(
                self._temporary,
                schema,
                compression=codec,
                use_dictionary=[name for name in DICTIONARY if name in schema.names],
                write_statistics=_other_than_bytes(schema),
                **EXTRA.get(codec, {}),
            )

    def add(self, batch: pa.RecordBatch) -> None:
        """Write whole row groups; what is left waits for the next batch."""
        self.rows += len(batch)
        self._waiting.append(batch)
        self._waiting_rows += len(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_rows >= ROW_GROUP_ROWS or self._waiting_bytes >= ROW_GROUP_BYTES:
            self._write(min(self._waiting_rows, ROW_GROUP_ROWS))

    def finish(self) -> None:
        """Write the rest and put it on the disk under the hidden name."""
        if self._waiting:
            self._write(self._waiting_rows)
        with sink_errors(self.path):
            self._writer.close()
            sync(self._temporary)
            self.bytes = self._temporary.stat().st_size

    def publish(self) -> None:
        """Give it its name, once its bytes are on the disk."""
        with sink_errors(self.path):
            publish(self._temporary, self.path)

    def discard(self) -> None:
        """Remove the hidden file."""
        with sink_errors(self.path):
            self._writer.close()
            self._temporary.unlink(missing_ok=True)

    def _write(self, rows: int) -> None:
        table = pa.Table.from_batches(self._waiting, schema=self._schema)
        with sink_errors(self.path):
            self._writer.write_table(table.slice(0, rows), row_group_size=ROW_GROUP_ROWS)
        rest = table.slice(rows)
        self._waiting = rest.to_batches()
        self._waiting_rows = rest.num_rows
        self._waiting_bytes = rest.nbytes
        pa.default_memory_pool().release_unused()  # it would keep what the pages of the largest row group took


@lru_cache(maxsize=16)
def _other_than_bytes(schema: pa.Schema) -> list[str]:
    """Return the Parquet paths of all columns in a file except those of raw bytes."""
    empty = BytesIO()
    pq.write_table(schema.empty_table(), empty)
    leaves = pq.ParquetFile(empty).schema
    columns = [leaves.column(index) for index in range(len(leaves.names))]
    return [
        column.path
        for column in columns
        if column.physical_type != "BYTE_ARRAY" or column.logical_type.type != "NONE"
    ]


# --- rows that wait for their file -----------------------------------------------------------------------------------


class Spill:
    """Batches of one schema, each with its date, in the order in which they came. Methods may raise SinkError."""

    def __init__(self, beside: Path, schema: pa.Schema) -> None:
        self._path = temporary_name(beside)
        self._dates: list[str] = []
        with sink_errors(beside):
            make_directory(beside.parent)
            self._file = pa.OSFile(str(self._path), "wb")
            self._writer = pa.ipc.new_stream(self._file, schema)

    @property
    def dates(self) -> tuple[str, ...]:
        """The dates of all batches, each once."""
        return tuple(dict.fromkeys(self._dates))

    def add(self, date: str, rows: pa.RecordBatch) -> None:
        """Keep the rows of one day."""
        with sink_errors(self._path):
            self._writer.write_batch(rows)
        self._dates.append(date)

    def finish(self) -> None:
        """Write the rest; nothing can be added any more."""
        with sink_errors(self._path):
            self._writer.close()
            self._file.close()

    def read(self, dates: Container[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the batches of some dates."""
        with sink_errors(self._path), pa.OSFile(str(self._path)) as file, pa.ipc.open_stream(file) as batches:
            for date, rows in zip(self._dates, batches, strict=True):
                if date in dates:
                    yield date, rows

    def discard(self) -> None:
        """Take the stream away."""
        with sink_errors(self._path):
            self._file.close()
            self._path.unlink(missing_ok=True)


# --- the files of one range ------------------------------------------------------------------------------------------


OPEN_FILES: Final = 128
EPOCH_DAY: Final = datetime.date(1970, 1, 1).toordinal()
FIRST_DAY: Final = datetime.date.min.toordinal() - EPOCH_DAY
LAST_DAY: Final = datetime.date.max.toordinal() - EPOCH_DAY
NO_DATE: Final = "__HIVE_DEFAULT_PARTITION__"
"""The directory of days outside the years 1 to 9999, which readers know as one without a value."""


def file_name(wanted: OffsetRange, date: str | None = None, suffix: str = "") -> str:
    """Return the name of a range's file, relative to the sink."""
    directory = f"topic={wanted.topic}" + ("" if date is None else f"/date={date}")
    return f"{directory}/{wanted.partition:05d}-{wanted.start:020d}-{wanted.end:020d}{suffix}.parquet"


class RangeFiles:
    """The files of one range. Every method may raise SinkError."""

    def __init__(self, wanted: OffsetRange, codec: str, suffix: str) -> None:
        self._wanted = wanted
        self._codec = codec
        self._suffix = suffix
        self._files: dict[tuple[str, str | None], _RangeFile] = {}
        self._spills: dict[str, Spill] = {}

    def add(self, root: str, date: str | None, rows: pa.RecordBatch) -> None:
        """Write rows of one day, or of all days where `date` is None, below a directory."""
        if (root, date) in self._files or date is None or len(self._files) < OPEN_FILES:
            self._file_of(root, date, rows.schema).add(rows)
        else:
            self._spill(root, rows.schema).add(date, rows)

    def finish(self) -> None:
        """Write every file to its end, under its hidden name."""
        for entry in self._files.values():
            entry.file.finish()
        for root, spill in self._spills.items():
            self._unspill(root, spill)

    def publish(self) -> None:
        """Sync every finished file to the disk and rename it to its final name."""
        for entry in self._files.values():
            entry.file.publish()

    def discard(self) -> None:
        """Take the hidden files away."""
        for spill in self._spills.values():
            spill.discard()
        for entry in self._files.values():
            entry.file.discard()

    def written(self, root: str | None) -> tuple[WrittenFile, ...]:
        """Return the files below a directory."""
        tp = self._wanted
        return tuple(
            WrittenFile(
                path=file_name(tp, date, self._suffix),
                topic=tp.topic,
                partition=tp.partition,
                start=tp.start,
                end=tp.end,
                rows=entry.file.rows,
                bytes=entry.file.bytes,
                first_ms=entry.first_ms,
                last_ms=entry.last_ms,
            )
            for (where, date), entry in self._files.items()
            if where == root
        )

    def _unspill(self, root: str, spill: Spill) -> None:
        """Write the files of the days that waited, so many at a time."""
        spill.finish()
        dates = spill.dates
        for first in range(0, len(dates), OPEN_FILES):
            some = dict.fromkeys(dates[first : first + OPEN_FILES])
            for date, rows in spill.read(some):
                self._file_of(root, date, rows.schema).add(rows)
            for date in some:
                self._files[root, date].file.finish()
        spill.discard()

    def _file_of(self, root: str, date: str | None, schema: pa.Schema) -> _RangeFile:
        """Return the file of one day; open it on first use."""
        key = root, date
        if key not in self._files:
            path = Path(root) / file_name(self._wanted, date, self._suffix)
            self._files[key] = _RangeFile(ParquetFile(path, schema, self._codec))
        return self._files[key]

    def _spill(self, root: str, schema: pa.Schema) -> Spill:
        if root not in self._spills:
            self._spills[root] = Spill(Path(root) / file_name(self._wanted, None, self._suffix), schema)
        return self._spills[root]


@attrs.define(eq=False)
class _RangeFile:
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
    """Yield the rows of each day in UTC, in order of days, those of `NO_DATE` last.

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
    """Return the name of a day's directory; `day` counts from 1970-01-01."""
    return datetime.date.fromordinal(EPOCH_DAY + day).isoformat() if FIRST_DAY <= day <= LAST_DAY else NO_DATE


def _span(timestamps: pa.Array) -> tuple[int, int]:
    """Return the first and last time in microseconds."""
    found = pc.min_max(timestamps.view(pa.int64())).as_py()
    return found["min"], found["max"]


# --- writing a range -------------------------------------------------------------------------------------------------


T = TypeVar("T")
Clock = Callable[[], float]

BATCH_ROWS: Final = 40_960
BATCH_BYTES: Final = 16_777_216
"""Larger batches than for Spark's rows: here they become row groups and cross no socket."""


@attrs.frozen(kw_only=True)
class DirectTarget:
    """Where and how a range is written. Pickles. `dead` is the directory of dead letters, None without one.

    `suffix` ends the names of files whose range has files of another kind already. `rows_per_file` is how many records
    a file should have, None for any number. `run` is the token of the run whose tasks may give files their names
    (`atomic_files.py`), None where the writer's process holds the sink's lock.
    """

    root: str
    layout: RowLayout = attrs.field(factory=RowLayout)
    codec: str = "zstd"
    by_date: bool = False
    dead: str | None = None
    suffix: str = ""
    rows_per_file: int | None = None
    run: str | None = None

    def of_batch(self, batch: int) -> DirectTarget:
        """Return the target for the rows of one batch."""
        return attrs.evolve(self, layout=attrs.evolve(self.layout, batch=batch))

    def of_new_run(self) -> DirectTarget:
        """Return the target for processes that do not hold the sink's lock; fence off the tasks of earlier runs."""
        return attrs.evolve(self, run=begin_run(self._manifests))

    def publishing(self) -> AbstractContextManager[None]:
        """Return a context to hold while files get their names. Raises SinkError for a task of an earlier run."""
        return nullcontext() if self.run is None else current_run(self._manifests, self.run)

    @property
    def _manifests(self) -> list[Path]:
        return [Path(root) / DIRECTORY for root in (self.root, self.dead) if root is not None]


@attrs.frozen(kw_only=True)
class WrittenRange:
    """The files of one range, how many bad values became null, and the milliseconds spent in each step."""

    range: OffsetRange
    files: tuple[WrittenFile, ...] = ()
    dead_letters: tuple[WrittenFile, ...] = ()
    nulled: int = 0
    fetch_ms: int = 0
    decode_ms: int = 0
    write_ms: int = 0


def write_range(wanted: OffsetRange, options: SourceOptions, target: DirectTarget) -> WrittenRange:
    """Read one range and write its files. A range without visible records gives none.

    Raises SinkError, DecodeError, and what reading a range raises.
    """
    from kclient.spark.executor import read_range

    options = attrs.evolve(options, batch_rows=BATCH_ROWS, batch_bytes=BATCH_BYTES)
    read = cast("Generator[pa.RecordBatch]", read_range(wanted, options, target.layout.read()))
    with closing(read) as batches:  # a failure here must end the fetch in flight too
        return write_batches(wanted, batches, target)


def write_batches(
    wanted: OffsetRange, batches: Iterable[pa.RecordBatch], target: DirectTarget, clock: Clock | None = None
) -> WrittenRange:
    """Write what is read of a range: Arrow batches of `target.layout.read()`. Raises as `write_range` does."""
    task = _Task(wanted, target, clock or Runtime().wall_clock)
    try:
        for batch in task.timed("fetch", iter(batches)):
            for piece in target.layout.pieces(batch):
                task.take(piece)
        return task.finish()
    except BaseException:
        task.discard()
        raise


class _Task:
    """Writes one range to its files, and measures the time of each step."""

    def __init__(self, wanted: OffsetRange, target: DirectTarget, clock: Clock) -> None:
        self._wanted = wanted
        self._target = target
        self._clock = clock
        self._files = RangeFiles(wanted, target.codec, target.suffix)
        self._nulled = 0
        self._spent = dict.fromkeys(("fetch", "decode", "write"), 0.0)

    def take(self, raw: pa.RecordBatch) -> None:
        """Write the records of one batch."""
        tp, layout = self._wanted, self._target.layout
        batch = raw if layout.decoder is None else self._measured("decode", layout.decode, raw)
        dead = row_layout.bad(batch)
        if self._target.dead is None:
            self._nulled += len(dead)
        elif len(dead):
            rows = layout.dead(tp.topic, tp.partition, raw, batch)
            self._measured("write", self._files.add, self._target.dead, None, rows)
            batch = row_layout.good(batch)
        self._measured("write", self._write, batch)

    def finish(self) -> WrittenRange:
        """Close and name every file."""
        self._measured("write", self._publish)
        spent = {f"{name}_ms": int(seconds * 1000) for name, seconds in self._spent.items()}
        return WrittenRange(
            range=self._wanted,
            files=self._files.written(self._target.root),
            dead_letters=self._files.written(self._target.dead),
            nulled=self._nulled,
            **spent,
        )

    def _publish(self) -> None:
        self._files.finish()
        with self._target.publishing():
            self._files.publish()

    def discard(self) -> None:
        """Take the hidden files away."""
        self._files.discard()

    def timed(self, name: str, items: Iterator[T]) -> Iterator[T]:
        """Yield the items, and add the time that each takes."""
        while (item := self._measured(name, next, items, None)) is not None:
            yield item

    def _write(self, batch: pa.RecordBatch) -> None:
        target, tp = self._target, self._wanted
        for date, rows in by_date(batch) if target.by_date else [(None, batch)]:
            if len(rows):
                self._files.add(target.root, date, target.layout.landed(tp.topic, tp.partition, rows))

    def _measured(self, name: str, step: Callable[..., T], *args: Any) -> T:
        began = self._clock()
        try:
            return step(*args)
        finally:
            self._spent[name] += max(0.0, self._clock() - began)
