"""The data sources of the ingest job: tasks that write files themselves, and rows for Spark's own sinks.

    kclient-direct     `read` writes the files of its range and yields a summary, so no record crosses to the JVM; the
                       files count when `foreachBatch` has put the summary into a manifest
    kclient-landed     `read` yields the rows of `row_layout.py`, the same whichever writer is used; two more columns,
                       `topic` and `date`, name the directory of a row; the job counts and drops `_error`

Offsets, limits and ranges are those of `source.py`. A task of `kclient-landed` may read several ranges, so that small
ones share a file.
"""

from __future__ import annotations

import base64
import json
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, cast

import attrs
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from kclient.errors import ConfigError, InternalError
from kclient.spark.arrow_batches import checked
from kclient.spark.decoding import BY_INGEST, ValueDecoder, decoder_of
from kclient.spark.decoding.ddl import spark_name
from kclient.spark.decoding.decoder import ERROR
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import OffsetRange, fatal_losses
from kclient.spark.sink.manifest import WrittenFile
from kclient.spark.sink.parquet import DirectTarget, WrittenRange, write_range
from kclient.spark.sink.row_layout import RowLayout
from kclient.spark.source import BatchReader, Offset, RangePartition, StreamReader, check_version

if TYPE_CHECKING:
    from collections.abc import Generator

    from pyspark.sql.types import StructType

DIRECT_FORMAT: Final = "kclient-direct"
TARGET: Final = "direct.target"
BATCH_ID: Final = "streaming.sql.batchId"
"""The task's property in which Spark keeps the number of a stream's batch."""

SPENT: Final = ("nulled", "fetch_ms", "decode_ms", "write_ms")
SUMMARY: Final = pa.schema(
    [
        pa.field("kind", pa.string()),  # file, dead letter, or range: what the whole took
        *(pa.field(name, pa.string()) for name in ("path", "topic")),
        pa.field("partition", pa.int32()),
        *(
            pa.field(name, pa.int64())
            for name in ("start", "end", "rows", "bytes", "first_ms", "last_ms", *SPENT)
        ),
        *(
            pa.field(name, pa.binary()) for name in ("values", "footer")
        ),  # of a table's file; values are pickled
    ]
)


def options_of(options: Mapping[str, str], target: DirectTarget) -> dict[str, str]:
    """Return the options with which Spark's tasks write to `target`; the other options name the format of values."""
    described = {
        "root": target.root,
        "codec": target.codec,
        "by_date": target.by_date,
        "dead": target.dead,
        "suffix": target.suffix,
        "headers": target.layout.headers,
        "rescue": target.layout.rescue,
        "refuse_new": target.layout.refuse_new,
        "rows_per_file": target.rows_per_file,
        "run": target.run,
        "token": target.token,
        "table": None if target.table is None else base64.b64encode(pickle.dumps(target.table)).decode(),
    }
    return {**options, TARGET: json.dumps(described)}


class DirectStreamReader(StreamReader):
    """A stream of summaries."""

    def __init__(self, options: SourceOptions, target: DirectTarget) -> None:
        super().__init__(options, (), ValueDecoder({}))
        self._target = target

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Write one range; yield its summary."""
        return _land(partition.value, self._options, self._target.of_batch(batch_of_task()))


class DirectBatchReader(BatchReader):
    """The summaries of a backfill."""

    def __init__(self, options: SourceOptions, target: DirectTarget) -> None:
        super().__init__(options, (), ValueDecoder({}))
        self._target = target

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Write one range; yield its summary."""
        return _land(partition.value, self._options, self._target)


class DirectSource(DataSource):
    """Writes topics as Parquet files; its rows list the files."""

    @classmethod
    def name(cls) -> str:
        return DIRECT_FORMAT

    def schema(self) -> str:
        """Return the columns of a summary."""
        types = {pa.string(): "string", pa.int32(): "int", pa.int64(): "bigint", pa.binary(): "binary"}
        return ", ".join(f"`{field.name}` {types[field.type]}" for field in SUMMARY)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader for a backfill."""
        return DirectBatchReader(*parsed(self.options, "batch"))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return a reader for a stream."""
        return DirectStreamReader(*parsed(self.options, "stream"))


def parsed(options: Mapping[str, str], mode: Any) -> tuple[SourceOptions, DirectTarget]:
    """Parse what `options_of` returned. Raises ConfigError for limits that this Spark would not keep."""
    given = {name.lower(): text for name, text in options.items()}
    described = json.loads(given.pop(TARGET))
    source = SourceOptions.parse(given, mode)
    if mode == "stream":
        check_version(source)
    decoder = decoder_of(source, BY_INGEST)
    rules = {name: described.pop(name) for name in ("headers", "rescue", "refuse_new")}
    layout = RowLayout(decoder=decoder, **rules)
    table = described.pop("table")
    files = None if table is None else pickle.loads(base64.b64decode(table))  # noqa: S301 the driver's own
    source = attrs.evolve(source, fatal_losses=fatal_losses(is_table=files is not None))
    return source, DirectTarget(**described, layout=layout, table=files)


def batch_of_task() -> int:
    """Return the number of this task's batch. Raises InternalError if Spark does not provide it."""
    context = TaskContext.get()
    number = None if context is None else context.getLocalProperty(BATCH_ID)
    if number is None:
        raise InternalError(
            f"Spark did not pass its batch number to a task: there is no property {BATCH_ID}. This Spark does it "
            "another way. Please report its version."
        )
    return int(number)


def _land(wanted: OffsetRange, options: SourceOptions, target: DirectTarget) -> Iterator[pa.RecordBatch]:
    if wanted.size:
        yield summary(write_range(wanted, options, target))


def summary(written: WrittenRange) -> pa.RecordBatch:
    """Return one row for each file, and one for the range."""
    rows: list[dict[str, Any]] = [
        {"kind": kind, **file.described(), "values": pickle.dumps(file.values), "footer": file.footer}
        for kind, files in (("file", written.files), ("dead letter", written.dead_letters))
        for file in files
    ]
    spent = {name: getattr(written, name) for name in SPENT}
    whole = {name: getattr(written.range, name) for name in ("topic", "partition", "start", "end")}
    rows.append({"kind": "range", **whole, **spent})
    return pa.RecordBatch.from_pylist(rows, schema=SUMMARY)


def from_rows(rows: Iterable[Mapping[str, Any]]) -> list[WrittenRange]:
    """Rebuild the results of all ranges from their summaries, in the order of ranges."""
    whole: dict[tuple[str, int, int, int], dict[str, list[Mapping[str, Any]]]] = {}
    for row in rows:
        key = row["topic"], row["partition"], row["start"], row["end"]
        whole.setdefault(key, {}).setdefault(row["kind"], []).append(row)
    return [_range(whole[key]) for key in sorted(whole)]


def _range(rows: Mapping[str, list[Mapping[str, Any]]]) -> WrittenRange:
    [took] = rows["range"]
    return WrittenRange(
        range=OffsetRange(took["topic"], took["partition"], took["start"], took["end"]),
        files=tuple(_file(row) for row in rows.get("file", ())),
        dead_letters=tuple(_file(row) for row in rows.get("dead letter", ())),
        **{name: took[name] for name in SPENT},
    )


def _file(row: Mapping[str, Any]) -> WrittenFile:
    found = {field.name: row[field.name] for field in attrs.fields(WrittenFile)}
    values = pickle.loads(found.pop("values"))  # noqa: S301 a task's own, as all that Spark's tasks return
    footer = found.pop("footer")
    return WrittenFile(**found, values=values, footer=None if footer is None else bytes(footer))


# --- rows for Spark's own sinks --------------------------------------------------------------------------------------


LANDED_FORMAT: Final = "kclient-landed"
TOPIC: Final = "topic"
DATE: Final = "date"


class BundlePartition(InputPartition):
    """The ranges of one task, in the class that Spark sends to it."""

    def __init__(self, value: tuple[OffsetRange, ...]) -> None:
        super().__init__(value)


class LandedStreamReader(StreamReader):
    """A stream of landed rows."""

    def __init__(self, options: SourceOptions, target: DirectTarget) -> None:
        super().__init__(options, (), ValueDecoder({}))
        self._target = target

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Return the ranges of a batch; combine small ones if files have a target size."""
        planned = [cast("RangePartition", part).value for part in super().partitions(start, end)]
        return [BundlePartition(bundle) for bundle in bundles(planned, self._target.rows_per_file)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all ranges of a task."""
        layout = self._target.of_batch(batch_of_task()).layout
        rows = (row for wanted in partition.value for row in _rows(wanted, self._options, layout))
        return checked(rows, schema_of(layout))


class LandedSource(DataSource):
    """Topics as the rows of the ingest job."""

    @classmethod
    def name(cls) -> str:
        return LANDED_FORMAT

    def schema(self) -> str:
        """Return the columns of landed rows, and those that the job drops before it writes."""
        _, target = parsed(self.options, "stream")
        fields = schema_of(target.layout)
        return ", ".join(
            f"`{_escaped(field.name)}` {spark_name(field.type, quoted=True)}" for field in fields
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return a reader for a stream."""
        return LandedStreamReader(*parsed(self.options, "stream"))


def bundles(ranges: Iterable[OffsetRange], rows: int | None) -> list[tuple[OffsetRange, ...]]:
    """Combine neighbouring ranges of one topic into tasks of at most `rows` records."""
    found: list[tuple[OffsetRange, ...]] = []
    for wanted in ranges:
        last: Sequence[OffsetRange] = found[-1] if found else ()
        size = sum(part.size for part in last) + wanted.size
        if rows is not None and last and last[0].topic == wanted.topic and size <= rows:
            found[-1] = (*last, wanted)
        else:
            found.append((wanted,))
    return found


def schema_of(layout: RowLayout) -> pa.Schema:
    """Return the schema of a task's batches. Raises ConfigError for equal names: Spark ignores their case."""
    fields = [*layout.schema(), pa.field(TOPIC, pa.string()), pa.field(DATE, pa.date32())]
    error = pa.field(ERROR, pa.string())  # which the job counts and takes away, so no field has its name
    counts = Counter(field.name.lower() for field in [*fields, error])
    if taken := [field.name for field in layout.payload() if counts[field.name.lower()] > 1]:
        raise ConfigError(
            f"The payload has {', '.join(taken)}. Spark ignores upper and lower case in names, directories are "
            "named after topic and date, and columns that begin with _ are the job's own; two columns cannot have one "
            "name. Rename the field in the schema, or give --writer direct."
        )
    return pa.schema([*fields, error] if _tells(layout) else fields)


def _rows(wanted: OffsetRange, options: SourceOptions, layout: RowLayout) -> Iterator[pa.RecordBatch]:
    from kclient.spark.executor import read_range

    schema = schema_of(layout)
    with closing(cast("Generator[pa.RecordBatch]", read_range(wanted, options, layout.read()))) as batches:
        for raw in chain.from_iterable(map(layout.pieces, batches)):
            batch = layout.decode(raw)
            rows = layout.landed(wanted.topic, wanted.partition, batch)
            more: list[Any] = [rows.column("_topic"), rows.column("_timestamp").cast(pa.date32())]
            more += [batch.column(ERROR)] if _tells(layout) else []
            yield pa.RecordBatch.from_arrays([*rows.columns, *more], schema=schema)


def _tells(layout: RowLayout) -> bool:
    """Return whether bad values become null, with the reason in `_error`."""
    return layout.decoder is not None and layout.decoder.bad_records == "column"


def _escaped(name: str) -> str:
    return name.replace("`", "``")
