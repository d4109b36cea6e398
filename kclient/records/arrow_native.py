"""Records as an Arrow stream that the extension makes (`native/arrow.c`), without pyarrow.

    Columns of the runs ─▶ arrow_append: one batch, copied ─▶ arrow_stream: a capsule ─▶ pyarrow, Polars, DuckDB, …

A batch has all records, of all partitions, unless one of its columns would be larger than its 32-bit ends can count:
then each half of the records becomes a batch, or is halved again. Importing this module raises ImportError where the
extension is not built.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from kclient.errors import CorruptDataError
from kclient.records._native import arrow_append, arrow_schema, arrow_stream
from kclient.records.arrow_columns import ERROR, beyond_microseconds, checked_names, errors, without_undecoded
from kclient.records.columns import NUMBER_COLUMNS, Columns
from kclient.records.decoder_native import ArrayColumns
from kclient.records.reader import Chunk

MOST_BYTES: Final = 2**31 - 1
"""Of one column of a batch: its ends are signed and have 32 bits."""

_NEEDED: Final = {
    "key": ("key_starts", "key_sizes"),
    "value": ("value_starts", "value_sizes"),
    "offset": ("offsets",),
    "timestamp": ("timestamps",),
    "headers": ("header_starts",),
}
"""The number columns that a column of Arrow is made of."""
_NO_SPANS: Final = (None, None, None)


class Run(NamedTuple):
    """What the extension needs of a run. The numbers are arrays of 32 or 64 bits, None where they are not needed."""

    rows: int
    topic: str
    partition: int
    timestamp_type: int
    leader_epoch: int | None
    data: bytes
    numbers: tuple[Any, ...]
    errors: tuple[Any, ...] = _NO_SPANS

    def part(self, start: int, stop: int) -> Run:
        """Return the records from `start` to before `stop`."""
        data, *spans = self.errors
        return self._replace(
            rows=stop - start,
            numbers=tuple(None if column is None else column[start:stop] for column in self.numbers),
            errors=(data, *(None if column is None else column[start:stop] for column in spans)),
        )


def export(
    chunks: Sequence[Chunk], columns: Sequence[str] | None = None, *, keeps_errors: bool = False
) -> object:
    """Return the records as a PyCapsule named "arrow_array_stream". Raise what `Records.to_arrow` raises."""
    names = checked_names(columns, keeps_errors=keeps_errors)
    stream = arrow_stream(names)
    try:
        runs = list(_runs(chunks, names, keeps_errors=keeps_errors))
        if names and runs:
            _append(stream, runs)
    except OverflowError as exc:
        raise beyond_microseconds(chunks) from exc
    return stream


def schema(*, keeps_errors: bool = False) -> object:
    """Return the schema of `export` as a PyCapsule named "arrow_schema"."""
    return arrow_schema(arrow_stream(checked_names(None, keeps_errors=keeps_errors)))


def _runs(chunks: Iterable[Chunk], names: Sequence[str], *, keeps_errors: bool) -> Iterator[Run]:
    needed = {column for name in names for column in _NEEDED.get(name, ())}
    for chunk in chunks:
        topic, partition = chunk.partition
        for run in chunk.runs:
            if len(run):
                decoded = without_undecoded(run) if keeps_errors else run
                texts = _spans(errors(run)) if ERROR in names else _NO_SPANS
                yield Run(
                    len(run),
                    topic,
                    partition,
                    run.timestamp_type,
                    run.leader_epoch,
                    run.data,
                    _numbers(decoded, needed),
                    texts,
                )


def _numbers(run: Columns, needed: Container[str]) -> tuple[Any, ...]:
    if isinstance(run, ArrayColumns) and run.has_arrays:
        return run.number_columns()
    return tuple(
        array("q", column) if name in needed else None
        for name, column in zip(NUMBER_COLUMNS, run.number_columns(), strict=True)
    )


def _spans(texts: Iterable[str | None]) -> tuple[bytes, array[int], array[int]]:
    """Return texts as spans of bytes, as keys and values are: size -1 for None."""
    encoded = [None if text is None else text.encode() for text in texts]
    sizes = array("i", (-1 if text is None else len(text) for text in encoded))
    starts = array("q", accumulate((max(size, 0) for size in sizes[:-1]), initial=0))
    return b"".join(text for text in encoded if text), starts, sizes


def _append(stream: object, runs: Sequence[Run]) -> None:
    if not arrow_append(stream, tuple(runs), MOST_BYTES):
        for half in _halves(runs):
            _append(stream, half)


def _halves(runs: Sequence[Run]) -> tuple[Sequence[Run], Sequence[Run]]:
    if len(runs) > 1:
        return runs[: len(runs) // 2], runs[len(runs) // 2 :]
    (run,) = runs
    if run.rows == 1:
        raise CorruptDataError(
            f"A record of {run.topic}-{run.partition} has headers of more than 2 GiB as Arrow: names that are not "
            "UTF-8 take up to three times their bytes. Leave out the column headers."
        )
    return [run.part(0, run.rows // 2)], [run.part(run.rows // 2, run.rows)]
