"""The classes that Spark calls for `format("kclient")`, batch and stream. Each one is thin.

    load()         process A: schema()                       check the options
    first action   process B: reader(), partitions()         ask the brokers, plan the ranges
    stream         process C: streamReader(), offsets,       ask the brokers for every micro-batch
                              partitions(start, end)
    tasks          process D: read(range)                    a pickled copy of B's reader

Only the options, the columns and the ranges pass from one process to another. No constructor opens a connection.

Spark 4.0 and 4.1 lack the read limits of Spark 4.2 (`ReadMaxRows`, `SupportsTriggerAvailableNow`). Stand-ins take their
place at import, so that there is one code path; these releases ask for the latest offset without a limit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from kclient.bridge import run_blocking
from kclient.errors import ConfigError
from kclient.spark.arrow_batches import check_columns
from kclient.spark.decoding import ValueDecoder, decoder_of
from kclient.spark.offsets import dump_offsets, parse_offsets
from kclient.spark.options import SourceOptions, warn_of_secrets
from kclient.spark.ranges import EVERYTHING, NO_LIMIT, Limit, OffsetRange, take
from kclient.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from kclient.spark.stream import Stream

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )

    KNOWS_LIMITS = True
except ImportError:  # pyspark before 4.2
    KNOWS_LIMITS = False

    class ReadLimit:  # type: ignore[no-redef]
        """Stands in for a limit."""

    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """Stands in for no limit."""

    @attrs.frozen
    class ReadMaxRows(ReadLimit):  # type: ignore[no-redef]
        """Stands in for a maximum."""

        max_rows: int

    @attrs.frozen
    class ReadMinRows(ReadLimit):  # type: ignore[no-redef]
        """Stands in for a minimum."""

        min_rows: int

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in for the mixin."""


LIMITS: Final = ("max_offsets_per_trigger", "min_offsets_per_trigger")


def check_version(options: SourceOptions, knows_limits: bool = KNOWS_LIMITS) -> None:
    """Raise ConfigError for limits that this Spark would not keep.

    Before 4.2 Spark does not announce availableNow to a source, so the query would end after one limited batch.
    """
    if knows_limits or all(getattr(options, name) is None for name in LIMITS):
        return
    raise ConfigError(
        "maxOffsetsPerTrigger and minOffsetsPerTrigger need pyspark 4.2 or newer. Older ones pass neither the limit "
        "nor the trigger availableNow to a source, so the query would end after one batch and leave the rest unread. "
        "Install pyspark 4.2, or leave the limits out."
    )


def to_read_limit(limit: Limit) -> ReadLimit:
    """Return the limit in Spark's classes, which cannot combine both: the stream adds the minimum to a maximum."""
    if limit.max_rows is not None:
        return ReadMaxRows(limit.max_rows)
    return ReadAllAvailable() if limit.min_rows is None else ReadMinRows(limit.min_rows)


def trigger_limit(asked: ReadLimit | None, ours: Limit) -> Limit:
    """Return the limit of a batch: what Spark asks for, and what its classes cannot express.

    Trigger.Once asks for no limit.
    """
    if isinstance(asked, ReadMaxRows):
        return attrs.evolve(ours, max_rows=asked.max_rows)
    if isinstance(asked, ReadMinRows):
        return attrs.evolve(ours, max_rows=None)
    return NO_LIMIT


# --- the classes that Spark calls ------------------------------------------------------------------------------------


Offset: TypeAlias = dict[str, dict[str, int]]

NOTHING = OffsetRange("", 0, 0, 0)


class RangePartition(InputPartition):
    """A range of offsets, in the class that Spark sends to a task."""

    def __init__(self, value: OffsetRange) -> None:
        super().__init__(value)


class BatchReader(DataSourceReader):
    """Plans ranges on the driver and reads one of them in each task."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...], decoder: ValueDecoder) -> None:
        self._options = options
        self._columns = columns
        self._decoder = decoder
        self._filter = EVERYTHING

    def partitions(self) -> list[InputPartition]:
        """Return the planned ranges. Never return an empty list: Spark would replace it by a partition of its own."""
        from kclient.spark.batch import plan_batch

        warn_of_secrets(self._options)
        ranges = run_blocking(plan_batch(self._options, self._filter))
        return [RangePartition(planned) for planned in ranges or [NOTHING]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one range as Arrow batches."""
        return _read(partition.value, self._options, self._columns, self._decoder)


class PushdownBatchReader(BatchReader):
    """A BatchReader that accepts filters. A separate class, because Spark refuses the method if its setting is off."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Read no more than the filters on topic, partition and offset leave; the others are Spark's."""
        self._filter, left = take(filters)
        return left


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reports how far a stream can be read, plans the ranges of each batch, and reads one of them in each task.

    Offsets are those of Spark's own Kafka source, `{"topic": {"0": 123}}`, the next ones to read. An error ends the
    query, so the modules below retry retriable errors.
    """

    def __init__(self, options: SourceOptions, columns: tuple[str, ...], decoder: ValueDecoder) -> None:
        self._options = options
        self._columns = columns
        self._decoder = decoder
        self._opened: Stream | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    @property
    def _stream(self) -> Stream:
        """The stream, which connects to the brokers; created in the process that needs it."""
        from kclient.spark.stream import Stream

        if self._opened is None:
            warn_of_secrets(self._options)
            self._opened = Stream.open(self._options)
        return self._opened

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return where a new query begins."""
        return _to_spark(self._stream.initial())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of maxOffsetsPerTrigger and minOffsetsPerTrigger."""
        return to_read_limit(self._stream.limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._stream.freeze()

    def latestOffset(self, start: Offset | None = None, limit: ReadLimit | None = None) -> Offset:  # noqa: N802
        """Return where the next batch ends. Spark before 4.2 passes no arguments."""
        stream = self._stream
        begin = None if start is None else _offsets(start)
        return _to_spark(stream.latest(begin, trigger_limit(limit, stream.limit)))

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """Return the log ends seen last, for the progress; send no request."""
        return _to_spark(self._stream.ends) or None

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Return the ranges of a batch, none if start and end are equal."""
        return [RangePartition(planned) for planned in self._stream.ranges(_offsets(start), _offsets(end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one range as Arrow batches."""
        return _read(partition.value, self._options, self._columns, self._decoder)

    def commit(self, end: Offset) -> None:
        """Mirror progress to the group of the options, if there is one. Never raises."""
        self._stream.commit(_offsets(end))

    def stop(self) -> None:
        """End the client. Spark rarely calls it; sockets close with the process too."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None


class KClientSource(DataSource):
    """Apache Kafka as a batch source, without a JAR. The options are those of Spark's own Kafka source."""

    @classmethod
    def name(cls) -> str:
        return "kclient"

    def schema(self) -> str:
        """Return the columns of Spark's own source, decoded as the options say.

        Raises ConfigError for bad options, all at once, and ConnectError if the registry does not answer.

        Raises ConfigError for bad options, all at once, and ConnectError where the registry does not answer.
        """
        options = _of_either_mode(self)
        decoder = _decoder(options)
        return decoder.ddl(decoder.default_columns(include_headers=options.include_headers))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of these columns: all, or those that the user named in `.schema(…)`."""
        options = SourceOptions.parse(self.options)
        kind = PushdownBatchReader if options.pushdown_filters else BatchReader
        return kind(options, *_columns(schema, options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return a stream reader of these columns. Raises ConfigError for limits that this Spark would not keep."""
        options = SourceOptions.parse(self.options, "stream")
        check_version(options)
        return StreamReader(options, *_columns(schema, options))


def _of_either_mode(source: DataSource) -> SourceOptions:
    """Parse the options for a stream, else for a batch: Spark asks for the schema before it says which one it is."""
    try:
        return SourceOptions.parse(source.options, "stream")
    except ConfigError as as_stream:
        try:
            return SourceOptions.parse(source.options)
        except ConfigError as as_batch:
            raise min(as_batch, as_stream, key=lambda error: len(error.problems)) from None


def _columns(schema: StructType, options: SourceOptions) -> tuple[tuple[str, ...], ValueDecoder]:
    """Return the requested columns, and the decoder that makes them of raw ones."""
    decoder = _decoder(options)
    fields = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    return check_columns(fields, decoder.types), decoder


def _decoder(options: SourceOptions) -> ValueDecoder:
    """Return the decoder of the options; one without formats if key and value stay raw."""
    return decoder_of(options) or ValueDecoder({})


def _read(
    wanted: OffsetRange, options: SourceOptions, columns: tuple[str, ...], decoder: ValueDecoder
) -> Iterator[pa.RecordBatch]:
    from kclient.spark.arrow_batches import checked
    from kclient.spark.executor import read_range

    raw = read_range(wanted, options, decoder.raw_columns(columns))
    return checked(decoder.decode_all(raw, columns), decoder.arrow_schema(columns))


def _to_spark(offsets: Mapping[TopicPartition, int]) -> Offset:
    """Return offsets in Spark's form, in canonical order, because Spark compares them as text."""
    parsed: Offset = json.loads(dump_offsets(offsets))
    return parsed


def _offsets(offset: Offset) -> dict[TopicPartition, int]:
    """Parse offsets from Spark's checkpoint, which is not trusted. Raise ConfigError."""
    try:
        return parse_offsets(json.dumps(offset)) if offset else {}
    except ValueError as exc:
        raise ConfigError(
            f"The checkpoint's offset {exc}. It was written by another source, or by hand. "
            "Use the checkpoint of this query, or a new one."
        ) from exc
