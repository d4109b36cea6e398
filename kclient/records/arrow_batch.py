"""Rows of several polls as one Arrow batch. What needs pyarrow is imported when the first batch is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kclient.errors import ArgumentError
from kclient.records.columns import Columns
from kclient.records.reader import Chunk
from kclient.records.records import Records
from kclient.types import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

MOST_BATCH_BYTES: Final = 1 << 30
"""Of keys and values, so that each column fits the 32-bit offsets of Arrow."""


class ArrowBatch(NamedTuple):
    """Rows, and the position after them of each partition that moved: `consumer.commit(next_offsets)`.

    The columns are those of `Records.to_arrow`. A batch without rows means that no record came in time.
    """

    batch: pa.RecordBatch
    next_offsets: dict[TopicPartition, OffsetAndMetadata]


def check_batches(rows: Any, size_bytes: Any, columns: Sequence[str] | None) -> None:
    """Raise ArgumentError for sizes or columns that no batch can have, and ConfigError where pyarrow is missing."""
    for name, value, most in (("rows", rows, None), ("bytes", size_bytes, MOST_BATCH_BYTES)):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or value < 1 or (most is not None and value > most):
            limits = "1 or more" if most is None else f"from 1 to {most:,}"
            raise ArgumentError(f"{name} is a whole number, {limits}, not {value!r}.")
    from kclient.records.arrow import to_table

    to_table((), columns, keeps_errors=columns is not None and "error" in columns)


def arrow_batch(records: Records[Any, Any], columns: Sequence[str] | None) -> ArrowBatch:
    """Return the records as one batch, those of each partition one after another. Raise what `to_arrow` raises."""
    import pyarrow as pa

    together = Records[Any, Any](_by_partition(records.chunks), keeps_errors=records._keeps_errors)
    table = together.to_arrow(columns)
    batches = table.to_batches()
    if len(batches) > 1:
        batches = table.combine_chunks().to_batches()
    batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
    return ArrowBatch(batch, records.next_offsets())


def _by_partition(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Return one chunk for each partition. Each chunk costs, however few rows it has: 0.1 ms without the extension."""
    runs: dict[TopicPartition, list[Columns]] = {}
    last: dict[TopicPartition, Chunk] = {}
    for chunk in chunks:
        runs.setdefault(chunk.partition, []).extend(chunk.runs)
        last[chunk.partition] = chunk
    return [Chunk(tp, chunk.next_offset, chunk.leader_epoch, runs[tp]) for tp, chunk in last.items()]
