"""The source whose tasks land what they read: `format("kclient-direct")`, for the ingest job.

Offsets, limits and ranges are those of `source.py`. Only `read` is another: it writes the files of its range and yields
a summary, so no record crosses to the JVM. What a summary names counts when `foreachBatch` has put it into a manifest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from kclient.errors import InternalError
from kclient.spark.admission import check_version
from kclient.spark.decoding import BY_INGEST, Decoder, decoder_of
from kclient.spark.direct import DirectTarget, RangeWritten, write_range
from kclient.spark.landing import Layout
from kclient.spark.manifest import Written
from kclient.spark.options import SourceOptions
from kclient.spark.plan import OffsetRange
from kclient.spark.source import BatchReader, StreamReader

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

FORMAT: Final = "kclient-direct"
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
    ]
)


def options_of(options: Mapping[str, str], target: DirectTarget) -> dict[str, str]:
    """What to give to Spark so that the tasks land in `target`. The format of values is said by the other options."""
    told = {
        "root": target.root,
        "codec": target.codec,
        "by_date": target.by_date,
        "dead": target.dead,
        "headers": target.layout.headers,
        "rescue": target.layout.rescue,
        "rows_per_file": target.rows_per_file,
        "run": target.run,
    }
    return {**options, TARGET: json.dumps(told)}


class DirectStreamReader(StreamReader):
    """A stream of summaries."""

    def __init__(self, options: SourceOptions, target: DirectTarget) -> None:
        super().__init__(options, (), Decoder({}))
        self._target = target

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Land one range."""
        return _land(partition.value, self._options, self._target.of_batch(batch_of_task()))


class DirectBatchReader(BatchReader):
    """The summaries of a backfill."""

    def __init__(self, options: SourceOptions, target: DirectTarget) -> None:
        super().__init__(options, (), Decoder({}))
        self._target = target

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Land one range."""
        return _land(partition.value, self._options, self._target)


class DirectSource(DataSource):
    """Lands topics as Parquet; its rows say which files there are."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        """The columns of a summary."""
        types = {pa.string(): "string", pa.int32(): "int", pa.int64(): "bigint"}
        return ", ".join(f"`{field.name}` {types[field.type]}" for field in SUMMARY)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For a backfill."""
        return DirectBatchReader(*parsed(self.options, "batch"))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """For a stream."""
        return DirectStreamReader(*parsed(self.options, "stream"))


def parsed(options: Mapping[str, str], mode: Any) -> tuple[SourceOptions, DirectTarget]:
    """What `options_of` said. Raises ConfigError for limits that this Spark would not keep."""
    given = {name.lower(): text for name, text in options.items()}
    told = json.loads(given.pop(TARGET))
    source = SourceOptions.parse(given, mode)
    if mode == "stream":
        check_version(source)
    decoder = decoder_of(source, BY_INGEST)
    layout = Layout(headers=told.pop("headers"), decoder=decoder, rescue=told.pop("rescue"))
    return source, DirectTarget(**told, layout=layout)


def batch_of_task() -> int:
    """The number of the batch that this task belongs to. Raises InternalError where Spark does not tell."""
    context = TaskContext.get()
    number = None if context is None else context.getLocalProperty(BATCH_ID)
    if number is None:
        raise InternalError(
            f"Spark does not tell a task the number of its batch: there is no property {BATCH_ID}. This Spark does it "
            "another way. Please report its version."
        )
    return int(number)


def _land(wanted: OffsetRange, options: SourceOptions, target: DirectTarget) -> Iterator[pa.RecordBatch]:
    if wanted.size:
        yield summary(write_range(wanted, options, target))


def summary(written: RangeWritten) -> pa.RecordBatch:
    """One row for each file, and one for the range."""
    rows: list[dict[str, Any]] = [
        {"kind": kind, **attrs.asdict(file)}
        for kind, files in (("file", written.files), ("dead letter", written.dead_letters))
        for file in files
    ]
    spent = {name: getattr(written, name) for name in SPENT}
    whole = {name: getattr(written.range, name) for name in ("topic", "partition", "start", "end")}
    rows.append({"kind": "range", **whole, **spent})
    return pa.RecordBatch.from_pylist(rows, schema=SUMMARY)


def from_rows(rows: Iterable[Mapping[str, Any]]) -> list[RangeWritten]:
    """What the summaries of all ranges say, in the order of ranges."""
    whole: dict[tuple[str, int, int, int], dict[str, list[Mapping[str, Any]]]] = {}
    for row in rows:
        key = row["topic"], row["partition"], row["start"], row["end"]
        whole.setdefault(key, {}).setdefault(row["kind"], []).append(row)
    return [_range(whole[key]) for key in sorted(whole)]


def _range(rows: Mapping[str, list[Mapping[str, Any]]]) -> RangeWritten:
    [took] = rows["range"]
    return RangeWritten(
        range=OffsetRange(took["topic"], took["partition"], took["start"], took["end"]),
        files=tuple(_file(row) for row in rows.get("file", ())),
        dead_letters=tuple(_file(row) for row in rows.get("dead letter", ())),
        **{name: took[name] for name in SPENT},
    )


def _file(row: Mapping[str, Any]) -> Written:
    return Written(**{field.name: row[field.name] for field in attrs.fields(Written)})
