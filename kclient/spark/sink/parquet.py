"""Direct Parquet: a task writes the records of its range to files, so that no row crosses to a JVM.

    read (Arrow batches) → decode → split off bad records → by date → row groups → hidden files → fsync → rename

In a directory a file's name is a function of its range and its batch: the same batch, written again, gives the same
names, and no other batch does, even where offsets come again after a log was cut. In an object store a name also has
the token of the run and of the attempt, because nothing can stop a task of an older run there: whatever it writes, and
whenever, is another object. A file counts only when a manifest names it (`manifest.py`), so a crash anywhere in here
leaves nothing that a reader would see. Pure of pyspark.

`OPEN_FILES` files are open at a time; the rows of further days wait in a spill file on the disk. Closing the file that
was idle longest and starting a second one for late rows would make names depend on how the records came in batches.

Row groups hold about 122,880 rows, fewer where rows are large, so that a worker's memory is bounded. Only the topic is
encoded by a dictionary: keys and values rarely repeat, and trying costs more than it saves. Columns of raw bytes have
no statistics: the library keeps six copies of the largest value for them, and leaves out what is longer than 4 KiB.
"""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Callable, Container, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar, cast

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kclient.errors import SinkError
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
from kclient.spark.sink.manifest import DIRECTORY, WrittenFile, batch_name
from kclient.spark.sink.partitions import (
    EPOCH_DAY,
    FIRST_DAY,
    LAST_DAY,
    NO_VALUE,
    Part,
    PartKey,
    TableFiles,
    days_of,
)
from kclient.spark.sink.row_layout import RowLayout
from kclient.spark.sink.store import ObjectWriter, Store, is_remote, store_of

ROW_GROUP_ROWS: Final = 122_880
ROW_GROUP_BYTES: Final = 67_108_864
DICTIONARY: Final = ["_topic"]
EXTRA: Final = {"zstd": {"compression_level": 1}}


class HiddenFile:
    """A file in a directory: under a hidden name until it is published. Every method may raise SinkError."""

    def __init__(self, path: Path) -> None:
        self.path: Path = path
        self.target: Path = temporary_name(path)
        with sink_errors(path):
            make_directory(path.parent)

    def finish(self) -> int:
        """Put it on the disk; return its size in bytes."""
        sync(self.target)
        return int(self.target.stat().st_size)

    def publish(self) -> None:
        """Give it its name."""
        publish(self.target, self.path)

    def discard(self) -> None:
        """Remove it."""
        self.target.unlink(missing_ok=True)


class Upload:
    """An object of a store, uploaded in parts. It is there once it is finished: its name is its own, so it may be."""

    def __init__(self, store: Store, key: str) -> None:
        self.path: Path = Path(key)
        self.target: ObjectWriter = store.open_write(key)

    def finish(self) -> int:
        """End the upload; return its size in bytes. An open one would keep its last part in memory."""
        self.target.close()
        return self.target.bytes

    def publish(self) -> None:
        """Return: it has its name."""
        return

    def discard(self) -> None:
        """Give it up. A finished one stays, and counts nowhere."""
        self.target.discard()


class ParquetFile:
    """Writes rows of one schema to a file. Every method may raise SinkError."""

    def __init__(self, output: HiddenFile | Upload, schema: pa.Schema, codec: str) -> None:
        self.path: Path = output.path
        self.rows: int = 0
        self.bytes: int = 0
        self._metadata: list[pq.FileMetaData] = []
        self._schema = schema
        self._output = output
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._waiting_bytes = 0
        with sink_errors(self.path):
            self._writer = pq.ParquetWriter(
                output.target,
                schema,
                compression=codec,
                use_dictionary=[name for name in DICTIONARY if name in schema.names],
                write_statistics=_other_than_bytes(schema),
                metadata_collector=self._metadata,
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
        """Write the rest: all bytes are on the disk, under the hidden name, or in the object store."""
        if self._waiting:
            self._write(self._waiting_rows)
        with sink_errors(self.path):
            self._writer.close()
            self.bytes = self._output.finish()

    def footer(self) -> bytes:
        """Return the footer of a finished file, as a file of its own without rows."""
        footer = BytesIO()
        self._metadata[0].write_metadata_file(footer)
        return footer.getvalue()

    def publish(self) -> None:
        """Give it its name, once its bytes are on the disk. An object has it."""
        with sink_errors(self.path):
            self._output.publish()

    def discard(self) -> None:
        """Remove the hidden file. Closing it writes its end, which goes nowhere any more, so it may fail."""
        with sink_errors(self.path):
            self._output.discard()
        with suppress(OSError, RuntimeError, pa.ArrowException):  # the error of the write says more
            self._writer.close()

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
    """Batches of one schema, each with its part, in the order in which they came. Methods may raise SinkError."""

    def __init__(self, beside: Path, schema: pa.Schema) -> None:
        """Open the spill file beside the file that the rows are for, so that it needs no other disk."""
        self._path = temporary_name(beside)
        self._keys: list[PartKey] = []
        self.keys: Final[dict[PartKey, None]] = {}
        """The keys of all parts, each once."""
        with sink_errors(beside):
            make_directory(beside.parent)
            self._file = pa.OSFile(str(self._path), "wb")
            self._writer = pa.ipc.new_stream(self._file, schema)

    def add(self, part: Part) -> None:
        """Keep the rows of one part."""
        with sink_errors(self._path):
            self._writer.write_batch(part.rows)
        self._keys.append(part.key)
        self.keys[part.key] = None

    def finish(self) -> None:
        """Write the rest; nothing can be added any more."""
        with sink_errors(self._path):
            self._writer.close()
            self._file.close()

    def read(self, keys: Container[PartKey]) -> Iterator[Part]:
        """Yield the parts with some keys."""
        with sink_errors(self._path), pa.OSFile(str(self._path)) as file, pa.ipc.open_stream(file) as batches:
            for key, rows in zip(self._keys, batches, strict=True):
                if key in keys:
                    yield Part(key, rows)

    def discard(self) -> None:
        """Take the stream away."""
        with sink_errors(self._path):
            self._file.close()
            self._path.unlink(missing_ok=True)


# --- the files of one range ------------------------------------------------------------------------------------------


TOKEN_BYTES: Final = 8
ATTEMPT_BYTES: Final = 4
OPEN_FILES: Final = 128
OPEN_UPLOADS: Final = 16
"""An upload holds parts of a file in memory (`store.PART_BYTES`), a file in a directory does not."""

MAX_PARTS: Final = 10_000
"""The most files of one range: producers choose the times of records, and so how many days there are."""


def file_name(wanted: OffsetRange, date: str | None = None, suffix: str = "") -> str:
    """Return the name of a range's file, relative to the sink."""
    return f"{_directory(wanted, date)}/{range_name(wanted)}{suffix}.parquet"


def range_name(wanted: OffsetRange) -> str:
    """Return what the names of a range's files begin with."""
    return f"{wanted.partition:05d}-{wanted.start:020d}-{wanted.end:020d}"


def _directory(wanted: OffsetRange, date: str | None = None) -> str:
    return f"topic={wanted.topic}" + ("" if date is None else f"/date={date}")


class RangeFiles:
    """The files of one range below one directory. Every method may raise SinkError.

    `suffix` ends their names. With a `token` each name is its own, so that no other attempt at the range, of this run
    or of another, writes the same name: in a table any of them may count.
    """

    def __init__(self, wanted: OffsetRange, root: str, codec: str, suffix: str = "", token: str = "") -> None:
        self._wanted = wanted
        self._root = root
        self._codec = codec
        self._suffix = suffix
        self._token = token
        self._files: dict[PartKey, _RangeFile] = {}
        self._spill: Spill | None = None

    def add(self, part: Part) -> None:
        """Write the rows of one part."""
        if part.key in self._files or len(self._files) < _open_files(self._root):
            self._file_of(part).add(part.rows)
            return
        if self._spill is None:
            here = Path(tempfile.gettempdir()) / "kclient" if is_remote(self._root) else Path(self._root)
            name = range_name(self._wanted) + (f"-{self._token}" if self._token else "")
            beside = here / _directory(self._wanted) / name
            self._spill = Spill(beside, part.rows.schema)
        self._spill.add(part)
        if len(self._files) + len(self._spill.keys) > MAX_PARTS:
            self._refuse_parts()

    def _refuse_parts(self) -> NoReturn:
        here, advice = self._wanted, "as day(…), bucket(…) or truncate(…) of a column with many values"
        if not self._token:
            advice = "as topic alone: that lands this batch, and the next run may have date(timestamp) again. See who "
            advice += "sends records with such times"
        raise SinkError(
            f"The records of {here.tp} from {here.start} to {here.end} have more than {MAX_PARTS} different "
            "partitions. Each would be a file, and no reader could work with so many. Choose another --partition-by, "
            f"{advice}.",
            path=self._root,
        )

    def finish(self) -> None:
        """Write every file to its end, under its hidden name."""
        for entry in self._files.values():
            entry.file.finish()
        if self._spill is not None:
            self._unspill(self._spill)

    def publish(self) -> None:
        """Sync every finished file to the disk and rename it to its final name."""
        for entry in self._files.values():
            entry.file.publish()

    def discard(self) -> None:
        """Take the hidden files away."""
        if self._spill is not None:
            self._spill.discard()
        for entry in self._files.values():
            entry.file.discard()

    def written(self) -> tuple[WrittenFile, ...]:
        """Return the files."""
        tp = self._wanted
        return tuple(
            WrittenFile(
                path=entry.path,
                topic=tp.topic,
                partition=tp.partition,
                start=tp.start,
                end=tp.end,
                rows=entry.file.rows,
                bytes=entry.file.bytes,
                first_ms=entry.first_ms,
                last_ms=entry.last_ms,
                values=key.values,
                footer=entry.file.footer() if self._token else None,
            )
            for key, entry in self._files.items()
        )

    def _unspill(self, spill: Spill) -> None:
        """Write the files of the parts that waited, so many at a time."""
        spill.finish()
        keys = list(spill.keys)
        for first in range(0, len(keys), _open_files(self._root)):
            some = dict.fromkeys(keys[first : first + _open_files(self._root)])
            for part in spill.read(some):
                self._file_of(part).add(part.rows)
            for key in some:
                self._files[key].file.finish()
        spill.discard()

    def _file_of(self, part: Part) -> _RangeFile:
        """Return the file of one part; open it on first use."""
        if part.key not in self._files:
            ending = f"-{self._token}-{len(self._files)}" if self._token else self._suffix
            path = f"{part.key.directory}/{range_name(self._wanted)}{ending}.parquet".lstrip("/")
            file = ParquetFile(_output_of(self._root, path), part.rows.schema, self._codec)
            self._files[part.key] = _RangeFile(path, file)
        return self._files[part.key]


def _open_files(root: str) -> int:
    return OPEN_UPLOADS if is_remote(root) else OPEN_FILES


def _output_of(root: str, name: str) -> HiddenFile | Upload:
    return Upload(store_of(root), name) if is_remote(root) else HiddenFile(Path(root) / name)


@attrs.define(eq=False)
class _RangeFile:
    """A file, its path below the sink, and the times of its records."""

    path: str
    file: ParquetFile
    first_ms: int | None = None
    last_ms: int | None = None

    def add(self, rows: pa.RecordBatch) -> None:
        self.file.add(rows)
        if "_timestamp" not in rows.schema.names:  # rows of a query, not of topics
            return
        first, last = (time // 1000 for time in _span(rows.column("_timestamp")))
        self.first_ms = first if self.first_ms is None else min(first, self.first_ms)
        self.last_ms = last if self.last_ms is None else max(last, self.last_ms)


def by_date(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the rows of each day in UTC, in order of days, those of `NO_VALUE` last.

    A record without a time has −1 ms, so it is of 1969-12-31. Any producer can send microseconds as milliseconds: such
    times are thousands of years ahead and nearly each of another day, so they are one before the rows are parted.
    """
    days = days_of(batch.column("timestamp")).fill_null(LAST_DAY + 1)
    found = sorted(pc.unique(days).to_pylist())
    for day in found:
        yield date_of(day), batch if len(found) == 1 else batch.filter(pc.equal(days, day))


def date_of(day: int) -> str:
    """Return the name of a day's directory; `day` counts from 1970-01-01."""
    known = FIRST_DAY <= day <= LAST_DAY
    return datetime.date.fromordinal(EPOCH_DAY + day).isoformat() if known else NO_VALUE


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
    """Where and how a range is written: below a directory or a URL. Pickles. `dead` is for dead letters, None without.

    `suffix` ends the names of files: the name of the manifest that may name them. `rows_per_file` is how many records a
    file should have, None for any number. `run` is the token of the run whose tasks may give files their names
    (`atomic_files.py`), None where the writer's process holds the sink's lock. `table` says how the files of a table
    are written: then `root` is where it keeps them. `token` is the run's in the names of objects.
    """

    root: str
    layout: RowLayout = attrs.field(factory=RowLayout)
    codec: str = "zstd"
    by_date: bool = False
    dead: str | None = None
    suffix: str = ""
    rows_per_file: int | None = None
    run: str | None = None
    table: TableFiles | None = None
    token: str = attrs.field(factory=lambda: Runtime().random_bytes(TOKEN_BYTES).hex())

    @property
    def has_unique_names(self) -> bool:
        """Whether no two attempts at a range, of this run or of another, write files of the same name."""
        is_unique = self.table is not None or is_remote(self.root)
        return is_unique and (self.dead is None or is_remote(self.dead))

    def of_batch(self, batch: int) -> DirectTarget:
        """Return the target for the rows of one batch."""
        layout = attrs.evolve(self.layout, batch=batch)
        return attrs.evolve(self.of_manifest(batch_name(batch)), layout=layout)

    def of_manifest(self, name: str) -> DirectTarget:
        """Return the target for files that only this manifest may name, and `gc` judges by it."""
        return attrs.evolve(self, suffix=f"-{name}")

    def of_new_run(self) -> DirectTarget:
        """Return the target for processes that do not hold the sink's lock; fence off the tasks of earlier runs."""
        manifests = self._manifests
        return attrs.evolve(self, run=begin_run(manifests) if manifests else None)

    def publishing(self) -> AbstractContextManager[None]:
        """Return a context to hold while files get their names. Raises SinkError for a task of an earlier run."""
        return nullcontext() if self.run is None else current_run(self._manifests, self.run)

    def files(self, wanted: OffsetRange, runtime: Runtime) -> RangeFiles:
        """Return the files of a range, none yet."""
        if self.table is not None:
            token = f"{self.table.mark}-{runtime.random_bytes(TOKEN_BYTES).hex()}"
            return RangeFiles(wanted, self.root, self.codec, token=token)
        return RangeFiles(wanted, self.root, self.codec, self._ending(self.root, runtime))

    def dead_files(self, wanted: OffsetRange, runtime: Runtime) -> RangeFiles | None:
        """Return the files of the dead letters of a range, None without a directory for them."""
        if self.dead is None:
            return None
        return RangeFiles(wanted, self.dead, self.codec, self._ending(self.dead, runtime))

    def _ending(self, root: str, runtime: Runtime) -> str:
        """Return how the names of an attempt end: those of objects are its own."""
        unique = f"-{self.token}-{runtime.random_bytes(ATTEMPT_BYTES).hex()}" if is_remote(root) else ""
        return self.suffix + unique

    def parts(self, wanted: OffsetRange, batch: pa.RecordBatch) -> Iterator[Part]:
        """Yield the rows of a decoded batch as they are written, those of each file on their own."""
        if self.table is not None:
            rows = self.layout.landed(wanted.topic, wanted.partition, batch)
            yield from self.table.partitioning.split(self.table.fitted(rows))
            return
        for date, some in by_date(batch) if self.by_date else [(None, batch)]:
            key = PartKey(_directory(wanted, date))
            yield Part(key, self.layout.landed(wanted.topic, wanted.partition, some))

    @property
    def _manifests(self) -> list[Path]:
        root = self.root if self.table is None else None  # the commits of a table fence its jobs
        places = [place for place in (root, self.dead) if place is not None]
        return [Path(place) / DIRECTORY for place in places if not is_remote(place)]


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
    runtime = Runtime()
    task = _Task(wanted, target, runtime, clock or runtime.wall_clock)
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

    def __init__(self, wanted: OffsetRange, target: DirectTarget, runtime: Runtime, clock: Clock) -> None:
        self._wanted = wanted
        self._target = target
        self._clock = clock
        self._files = target.files(wanted, runtime)
        self._dead = target.dead_files(wanted, runtime)
        self._nulled = 0
        self._spent = dict.fromkeys(("fetch", "decode", "write"), 0.0)

    def take(self, raw: pa.RecordBatch) -> None:
        """Write the records of one batch."""
        tp, layout = self._wanted, self._target.layout
        batch = raw if layout.decoder is None else self._measured("decode", layout.decode, raw)
        dead = row_layout.bad(batch)
        if self._dead is None:
            self._nulled += len(dead)
        elif len(dead):
            rows = layout.dead(tp.topic, tp.partition, raw, batch)
            self._measured("write", self._dead.add, Part(PartKey(_directory(tp)), rows))
            batch = row_layout.good(batch)
        self._measured("write", self._write, batch)

    def finish(self) -> WrittenRange:
        """Close and name every file."""
        self._measured("write", self._publish)
        spent = {f"{name}_ms": int(seconds * 1000) for name, seconds in self._spent.items()}
        return WrittenRange(
            range=self._wanted,
            files=self._files.written(),
            dead_letters=() if self._dead is None else self._dead.written(),
            nulled=self._nulled,
            **spent,
        )

    def _publish(self) -> None:
        kinds = [files for files in (self._files, self._dead) if files is not None]
        for files in kinds:
            files.finish()
        with self._target.publishing():
            for files in kinds:
                files.publish()

    def discard(self) -> None:
        """Take the hidden files away."""
        self._files.discard()
        if self._dead is not None:
            self._dead.discard()

    def timed(self, name: str, items: Iterator[T]) -> Iterator[T]:
        """Yield the items, and add the time that each takes."""
        while (item := self._measured(name, next, items, None)) is not None:
            yield item

    def _write(self, batch: pa.RecordBatch) -> None:
        for part in self._target.parts(self._wanted, batch):
            if len(part.rows):
                self._files.add(part)

    def _measured(self, name: str, step: Callable[..., T], *args: Any) -> T:
        began = self._clock()
        try:
            return step(*args)
        finally:
            self._spent[name] += max(0.0, self._clock() - began)
