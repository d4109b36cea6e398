"""What a poll returns. Columnar underneath; record objects are made while iterating and own their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Generic, NamedTuple

from kclient.records.decoder import is_native
from kclient.records.reader import Chunk
from kclient.types import Headers, K_co, OffsetAndMetadata, TimestampType, TopicPartition, V_co

if TYPE_CHECKING:
    import pyarrow as pa


class Record(NamedTuple, Generic[K_co, V_co]):
    """One record. `key` and `value` are bytes or what the deserializers made of them; None is null.

    `timestamp` is in ms since 1970 (UTC), −1 where the record has none. `headers` keeps order and duplicates.
    `leader_epoch` is None where unknown. The serialized sizes are in bytes, −1 for null.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: K_co | None
    value: V_co | None
    headers: Headers
    leader_epoch: int | None
    serialized_key_size: int
    serialized_value_size: int

    def __repr__(self) -> str:
        return (
            f"<Record {self.topic}-{self.partition}@{self.offset} timestamp={self.timestamp} "
            f"key_size={self.serialized_key_size} value_size={self.serialized_value_size} "
            f"headers={len(self.headers)}>"
        )


class Records(Generic[K_co, V_co]):
    """Records of one poll, in the order of their partitions; within a partition in the order of the log.

    `len()` counts records; a poll that only moved positions has none. Iterating makes new objects each
    time.
    """

    def __init__(self, chunks: Iterable[Chunk] = (), *, keeps_errors: bool = False) -> None:
        self._chunks = tuple(chunks)
        self._keeps_errors = keeps_errors

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    def __iter__(self) -> Iterator[Record[K_co, V_co]]:
        return chain.from_iterable(
            run.rows(Record, chunk.partition) for chunk in self._chunks for run in chunk.runs
        )

    def __repr__(self) -> str:
        return f"<Records: {len(self)} of {', '.join(map(str, self.partitions())) or 'no partition'}>"

    @property
    def chunks(self) -> Sequence[Chunk]:
        """The columns underneath."""
        return self._chunks

    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions that have records here."""
        return tuple(dict.fromkeys(chunk.partition for chunk in self._chunks if len(chunk)))

    def of(self, partition: TopicPartition) -> Records[K_co, V_co]:
        """The records of one partition; none where it has none here."""
        mine = [chunk for chunk in self._chunks if chunk.partition == partition]
        return Records(mine, keeps_errors=self._keeps_errors)

    def next_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The position after this poll of each partition that moved, also of those without a record."""
        return {
            chunk.partition: OffsetAndMetadata(chunk.next_offset, chunk.leader_epoch)
            for chunk in self._chunks
        }

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The records as a pyarrow.Table, keys and values as raw bytes. `columns` picks and orders columns.

        key binary · value binary · topic string · partition int32 · offset int64 · timestamp timestamp[us, UTC]
        · timestampType int32 · headers list<struct<key string, value binary>> · leaderEpoch int32. Headers are
        null where a record has none, leaderEpoch is null where unknown; a record without a time has −1 ms.

        With on_decode_error="keep" a key or value that its deserializer refused is null, and a tenth column, error,
        says why (string, null where all went well).

        Raises ConfigError where pyarrow is missing, ArgumentError for an unknown column, CorruptDataError for
        a timestamp that does not fit in microseconds.
        """
        from kclient.records.arrow import to_table

        return to_table(self._chunks, columns, keeps_errors=self._keeps_errors)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the columns of `to_arrow()` by the Arrow PyCapsule Interface, for Polars, DuckDB, pandas and others.

        The native extension makes them without pyarrow. Without the extension pyarrow does, and where a schema is
        requested; the extension ignores that where pyarrow is missing. Raises what `to_arrow` raises.
        """
        if is_native() and (requested_schema is None or find_spec("pyarrow") is None):
            from kclient.records.arrow_native import export

            return export(self._chunks, keeps_errors=self._keeps_errors)
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Export the schema of `__arrow_c_stream__` alone: DuckDB asks for it several times before the data."""
        if is_native():
            from kclient.records.arrow_native import schema

            return schema(keeps_errors=self._keeps_errors)
        return Records(keeps_errors=self._keeps_errors).to_arrow().schema.__arrow_c_schema__()
