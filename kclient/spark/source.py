"""`spark.read.format("kclient")`, `spark.readStream.format("kclient")`: the classes that Spark calls. Each is thin.

    load()         process A: schema()                       the options are checked
    first action   process B: reader(), partitions()         the brokers are asked, ranges planned
    stream         process C: streamReader(), offsets,       the brokers are asked for every batch
                              partitions(start, end)
    tasks          process D: read(range)                    a pickled copy of B's reader

Nothing that one process sets reaches another but the options, the columns and the ranges themselves, and no
constructor opens anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from kclient.bridge import run_blocking
from kclient.errors import ConfigError
from kclient.spark.admission import (
    ReadLimit,
    SupportsTriggerAvailableNow,
    check_version,
    limit_within,
    spoken,
)
from kclient.spark.columns import check_columns
from kclient.spark.decoding import Decoder, decoder_of
from kclient.spark.offsets import dump_offsets, parse_offsets
from kclient.spark.options import SourceOptions
from kclient.spark.plan import OffsetRange
from kclient.spark.pushdown import EVERYTHING, take
from kclient.spark.redaction import warn_of_secrets
from kclient.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from kclient.spark.streaming import Stream

Offset: TypeAlias = dict[str, dict[str, int]]

NOTHING = OffsetRange("", 0, 0, 0)


class RangePartition(InputPartition):
    """A range of offsets as Spark carries it to a task."""

    def __init__(self, value: OffsetRange) -> None:
        super().__init__(value)


class BatchReader(DataSourceReader):
    """Plans ranges on the driver and reads one of them in each task."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...], decoder: Decoder) -> None:
        self._options = options
        self._columns = columns
        self._decoder = decoder
        self._narrowing = EVERYTHING

    def partitions(self) -> list[InputPartition]:
        """Never an empty list, which Spark would replace by a partition that is none of ours."""
        from kclient.spark.planning import plan_batch

        warn_of_secrets(self._options)
        ranges = run_blocking(plan_batch(self._options, self._narrowing))
        return [RangePartition(planned) for planned in ranges or [NOTHING]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range as Arrow batches."""
        return _read(partition.value, self._options, self._columns, self._decoder)


class PushdownBatchReader(BatchReader):
    """A BatchReader that takes filters. Separate, because Spark refuses this method while its setting is off."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Read no more than the filters on topic, partition and offset leave; the others are Spark's."""
        self._narrowing, left = take(filters)
        return left


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Tells Spark how far a stream can be read, plans the ranges of each batch, and reads one of them in each task.

    Offsets are those of Spark's own Kafka source, `{"topic": {"0": 123}}`, the next ones to read. An error ends the
    query, so the modules below try again what passes by itself.
    """

    def __init__(self, options: SourceOptions, columns: tuple[str, ...], decoder: Decoder) -> None:
        self._options = options
        self._columns = columns
        self._decoder = decoder
        self._opened: Stream | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    @property
    def _stream(self) -> Stream:
        """The one that asks the brokers, made in the process that needs it."""
        from kclient.spark.streaming import Stream

        if self._opened is None:
            warn_of_secrets(self._options)
            self._opened = Stream.open(self._options)
        return self._opened

    def initialOffset(self) -> Offset:  # noqa: N802
        """Where a new query begins."""
        return _spoken(self._stream.initial())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """What maxOffsetsPerTrigger and minOffsetsPerTrigger say."""
        return spoken(self._stream.limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._stream.freeze()

    def latestOffset(self, start: Offset | None = None, limit: ReadLimit | None = None) -> Offset:  # noqa: N802
        """Where the next batch ends. Spark before 4.2 gives no arguments."""
        stream = self._stream
        begin = None if start is None else _offsets(start)
        return _spoken(stream.latest(begin, limit_within(limit, stream.limit)))

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        """The ends that were seen last, for the progress; nobody is asked."""
        return _spoken(self._stream.ends) or None

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """The ranges of a batch, none where both are the same."""
        return [RangePartition(planned) for planned in self._stream.ranges(_offsets(start), _offsets(end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range as Arrow batches."""
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
        """The columns of Spark's own source, decoded where the options say so.

        Raises ConfigError for bad options, all at once, and ConnectError where the registry does not answer.
        """
        options = _of_either_mode(self)
        decoder = _decoder(options)
        return decoder.ddl(decoder.default_columns(include_headers=options.include_headers))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of these columns: all, or those that the user named in `.schema(…)`."""
        options = SourceOptions.parse(self.options)
        kind = PushdownBatchReader if options.pushdown_filters else BatchReader
        return kind(options, *_columns(schema, options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The same for a stream. Raises ConfigError for limits that this Spark would not keep."""
        options = SourceOptions.parse(self.options, "stream")
        check_version(options)
        return StreamReader(options, *_columns(schema, options))


def _of_either_mode(source: DataSource) -> SourceOptions:
    """Spark asks for the schema before it says whether this is a batch or a stream, which is checked later."""
    try:
        return SourceOptions.parse(source.options, "stream")
    except ConfigError as as_stream:
        try:
            return SourceOptions.parse(source.options)
        except ConfigError as as_batch:
            raise min(as_batch, as_stream, key=lambda error: len(error.problems)) from None


def _columns(schema: StructType, options: SourceOptions) -> tuple[tuple[str, ...], Decoder]:
    """The columns that are wanted, and what makes them of raw ones."""
    decoder = _decoder(options)
    fields = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    return check_columns(fields, decoder.types), decoder


def _decoder(options: SourceOptions) -> Decoder:
    """What the options make of keys and values; one without formats where both stay raw."""
    return decoder_of(options) or Decoder({})


def _read(
    wanted: OffsetRange, options: SourceOptions, columns: tuple[str, ...], decoder: Decoder
) -> Iterator[pa.RecordBatch]:
    from kclient.spark.checked import checked
    from kclient.spark.worker import read_range

    raw = read_range(wanted, options, decoder.raw_columns(columns))
    return checked(decoder.decode_all(raw, columns), decoder.arrow_schema(columns))


def _spoken(offsets: Mapping[TopicPartition, int]) -> Offset:
    """In Spark's form and one order, which Spark compares as text."""
    spoken: Offset = json.loads(dump_offsets(offsets))
    return spoken


def _offsets(spoken: Offset) -> dict[TopicPartition, int]:
    """What Spark read from its checkpoint, which anybody may have written. Raises ConfigError."""
    try:
        return parse_offsets(json.dumps(spoken)) if spoken else {}
    except ValueError as exc:
        raise ConfigError(
            f"The checkpoint's offset {exc}. It was written by another source, or by hand. "
            "Use the checkpoint of this query, or a new one."
        ) from exc
