"""The source whose rows are those of the ingest job: `format("kclient-landed")`, for Spark's own sinks.

Offsets and limits are those of `source.py`, the columns those of `landing.py`: whoever writes, the rows are the same.
Two columns more say in which directory a row belongs, `topic` and `date`; `_error`, where values are decoded, is
counted and left out by the job. A task may read several ranges, so that small ones share a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from kclient.errors import ConfigError
from kclient.spark.checked import checked
from kclient.spark.decoding import Decoder
from kclient.spark.decoding.decoder import ERROR
from kclient.spark.decoding.spark_types import spark_name
from kclient.spark.direct import DirectTarget
from kclient.spark.direct_source import batch_of_task, parsed
from kclient.spark.landing import Layout
from kclient.spark.options import SourceOptions
from kclient.spark.plan import OffsetRange
from kclient.spark.source import Offset, RangePartition, StreamReader

if TYPE_CHECKING:
    from collections.abc import Generator

    from pyspark.sql.types import StructType

FORMAT: Final = "kclient-landed"
TOPIC: Final = "topic"
DATE: Final = "date"


class BundlePartition(InputPartition):
    """The ranges of one task as Spark carries them there."""

    def __init__(self, value: tuple[OffsetRange, ...]) -> None:
        super().__init__(value)


class LandedStreamReader(StreamReader):
    """A stream of landed rows."""

    def __init__(self, options: SourceOptions, target: DirectTarget) -> None:
        super().__init__(options, (), Decoder({}))
        self._target = target

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The ranges of a batch, small ones together where files have a size to reach."""
        planned = [cast("RangePartition", part).value for part in super().partitions(start, end)]
        return [BundlePartition(bundle) for bundle in bundles(planned, self._target.rows_per_file)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of all ranges of a task."""
        layout = self._target.of_batch(batch_of_task()).layout
        rows = (row for wanted in partition.value for row in _rows(wanted, self._options, layout))
        return checked(rows, schema_of(layout))


class LandedSource(DataSource):
    """Topics as the rows of the ingest job."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        """The columns of landed rows, and those that the job takes away again."""
        _, target = parsed(self.options, "stream")
        fields = schema_of(target.layout)
        return ", ".join(
            f"`{_escaped(field.name)}` {spark_name(field.type, quoted=True)}" for field in fields
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """For a stream."""
        return LandedStreamReader(*parsed(self.options, "stream"))


def bundles(ranges: Iterable[OffsetRange], rows: int | None) -> list[tuple[OffsetRange, ...]]:
    """The ranges of each task: neighbours of one topic together, as long as they are not more than `rows` records."""
    found: list[tuple[OffsetRange, ...]] = []
    for wanted in ranges:
        last: Sequence[OffsetRange] = found[-1] if found else ()
        size = sum(part.size for part in last) + wanted.size
        if rows is not None and last and last[0].topic == wanted.topic and size <= rows:
            found[-1] = (*last, wanted)
        else:
            found.append((wanted,))
    return found


def schema_of(layout: Layout) -> pa.Schema:
    """What a task yields. Raises ConfigError for two columns of one name, in any case, as Spark takes names."""
    fields = [*layout.schema(), pa.field(TOPIC, pa.string()), pa.field(DATE, pa.date32())]
    error = pa.field(ERROR, pa.string())  # which the job counts and takes away, so no field has its name
    counts = Counter(field.name.lower() for field in [*fields, error])
    if taken := [field.name for field in layout.payload() if counts[field.name.lower()] > 1]:
        raise ConfigError(
            f"The payload has {', '.join(taken)}. Spark does not tell upper from lower case in names, directories are "
            "named after topic and date, and columns that begin with _ are the job's own; two columns cannot have one "
            "name. Rename the field in the schema, or give --writer direct."
        )
    return pa.schema([*fields, error] if _tells(layout) else fields)


def _rows(wanted: OffsetRange, options: SourceOptions, layout: Layout) -> Iterator[pa.RecordBatch]:
    from kclient.spark.worker import read_range

    schema = schema_of(layout)
    with closing(cast("Generator[pa.RecordBatch]", read_range(wanted, options, layout.read()))) as batches:
        for raw in chain.from_iterable(map(layout.pieces, batches)):
            batch = layout.decode(raw)
            rows = layout.landed(wanted.topic, wanted.partition, batch)
            more: list[Any] = [rows.column("_topic"), rows.column("_timestamp").cast(pa.date32())]
            more += [batch.column(ERROR)] if _tells(layout) else []
            yield pa.RecordBatch.from_arrays([*rows.columns, *more], schema=schema)


def _tells(layout: Layout) -> bool:
    """Whether bad values become null and are told of."""
    return layout.decoder is not None and layout.decoder.bad_records == "column"


def _escaped(name: str) -> str:
    return name.replace("`", "``")
