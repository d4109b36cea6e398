"""The Arrow columns of records: their names, and what those of records that could not be decoded hold.

Shared by the two ways to make them, `arrow` (pyarrow) and `arrow_native` (the extension, where it is built).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from kclient.errors import ArgumentError, CorruptDataError
from kclient.records.columns import Columns
from kclient.records.reader import Chunk
from kclient.records.undecodable import Undecoded

NAMES: Final = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
    "leaderEpoch",
)
ERROR: Final = "error"
"""Why a key or value is null that has bytes: the column that comes with on_decode_error="keep"."""

MOST_MILLISECONDS: Final = (2**63 - 1) // 1000
"""Of a timestamp: as microseconds it has 64 bits."""


def checked_names(columns: Sequence[str] | None, *, keeps_errors: bool = False) -> tuple[str, ...]:
    """Return the names of the columns, all if none are given. Raise ArgumentError for one that does not exist."""
    known = (*NAMES, ERROR) if keeps_errors else NAMES
    if columns is None:
        return known
    unknown = [name for name in columns if name not in known]
    if unknown:
        raise ArgumentError(f"to_arrow has no column {unknown[0]!r}. Its columns are {', '.join(known)}.")
    return tuple(columns)


def without_undecoded(run: Columns) -> Columns:
    """Return the run with null where a key or value could not be decoded."""
    if run.keys is None and run.values is None:
        return run
    return attrs.evolve(
        run,
        key_sizes=_decoded_sizes(run.key_sizes, run.keys),
        value_sizes=_decoded_sizes(run.value_sizes, run.values),
    )


def _decoded_sizes(sizes: Sequence[int], made: Sequence[Any] | None) -> Any:
    if made is None:
        return sizes
    return array(
        "i", (-1 if isinstance(one, Undecoded) else size for size, one in zip(sizes, made, strict=True))
    )


def errors(run: Columns) -> list[str | None]:
    """Return what the column `error` holds: names of exceptions, never their texts, which may hold the record's."""
    if run.keys is None or run.values is None:
        return [None] * len(run)
    return [
        "; ".join(
            f"{made.error.part}: {type(made.error.__cause__).__name__}"
            for made in pair
            if isinstance(made, Undecoded)
        )
        or None
        for pair in zip(run.keys, run.values, strict=True)
    ]


def beyond_microseconds(chunks: Iterable[Chunk]) -> CorruptDataError:
    """Return the error about the first chunk with a timestamp that does not fit in microseconds."""
    chunk = next(chunk for chunk in chunks if any(map(_is_beyond, chunk.runs)))
    return CorruptDataError(
        f"A timestamp of {chunk.partition} before offset {chunk.next_offset} does not fit in microseconds. "
        "Its producer probably did not send milliseconds since 1970. "
        "Leave out the column timestamp, or read the records one by one."
    )


def _is_beyond(run: Columns) -> bool:
    return any(abs(timestamp) > MOST_MILLISECONDS for timestamp in run.timestamps)
