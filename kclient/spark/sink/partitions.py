"""Which rows of a batch go into one file: those of one directory, or of one partition of a table.

A partition key is a column, or a transform of one, in Iceberg's words:

    carrier   identity(carrier)   year(_timestamp)   month(…)   day(…)   hour(…)   bucket(16, _key)   truncate(4, code)

`topic` and `date(timestamp)` are those of a directory; in a table they are `identity(_topic)` and `day(_timestamp)`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, Protocol

import attrs

from kclient.errors import SinkError

if TYPE_CHECKING:  # keys are parsed by commands that work without pyarrow
    import pyarrow as pa

COORDINATES: Final = ("_topic", "_partition", "_offset")
"""The columns that tell where a row was in Kafka."""

MAX_WIDTH: Final = 2**31 - 1
PLAIN: Final = ("identity", "year", "month", "day", "hour")
SIZED: Final = ("bucket", "truncate")
WORDS: Final = {"topic": "identity(_topic)", "date(timestamp)": "day(_timestamp)"}
"""A key of a directory → the same key of a table."""

EPOCH_DAY: Final = datetime.date(1970, 1, 1).toordinal()
FIRST_DAY: Final = datetime.date.min.toordinal() - EPOCH_DAY
LAST_DAY: Final = datetime.date.max.toordinal() - EPOCH_DAY
NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
"""The name of a directory whose rows have no value, as most readers know it: a day outside the years 1 to 9999 too."""

_KEY: Final = re.compile(r"(?:([a-z]+)\((?:([0-9]{1,10}),)?([^(),]+)\)|([^(),]+))", re.ASCII)


@attrs.frozen
class PartitionKey:
    """One partition key of a table. `width` is the number of buckets, or what values are truncated to."""

    transform: str
    column: str
    width: int | None = None

    def __str__(self) -> str:
        inner = self.column if self.width is None else f"{self.width},{self.column}"
        return self.column if self.transform == "identity" else f"{self.transform}({inner})"


def partition_key(text: str) -> PartitionKey:
    """Parse one key. Raises ValueError with the end of a sentence that begins with the setting's name."""
    word = text.replace(" ", "")
    match = _KEY.fullmatch(WORDS.get(word, word))
    if match is None:
        raise ValueError(f"has {text!r}, which is no partition key: write COLUMN, or as {_EXAMPLES}")
    transform, width, column = match[1] or "identity", match[2], match[3] or match[4]
    if transform not in (*PLAIN, *SIZED):
        raise ValueError(
            f"has {text!r}, but {transform} is no transform: write {', '.join((*PLAIN, *SIZED))}"
        )
    if (width is not None) != (transform in SIZED):
        raise ValueError(f"has {text!r}: write as {_EXAMPLES}")
    if width is not None and not 1 <= int(width) <= MAX_WIDTH:
        raise ValueError(f"has {text!r}, whose number must be from 1 to {MAX_WIDTH}")
    return PartitionKey(transform, column, None if width is None else int(width))


_EXAMPLES: Final = "day(_timestamp), bucket(16,_key) or truncate(4,COLUMN)"


def split_keys(text: str) -> list[str]:
    """Split a list at its commas, except inside of parentheses."""
    return [key.strip() for key in re.split(r",(?![^(]*\))", text) if key.strip()]


# --- rows that belong together ---------------------------------------------------------------------------------------


class PartKey(NamedTuple):
    """What the rows of one file have in common: a directory, and the values of the table's keys in their order."""

    directory: str
    values: tuple[Any, ...] = ()


@attrs.frozen
class Part:
    """Rows that go into one file."""

    key: PartKey
    rows: pa.RecordBatch


class Partitioning(Protocol):
    """How a table divides rows. Pickles."""

    def split(self, rows: pa.RecordBatch) -> Iterator[Part]:
        """Yield the rows of each partition, in their order. Raises SinkError."""
        ...


@attrs.frozen
class TableFiles:
    """What the files of a table have and those of manifests have not. Equal only with the same field ids. Pickles.

    `root` is the directory or URL below which they are written, `mark` what their names have of the table
    (`table_files.py`), `schema` the columns of a file, with the table's own names and field ids; `renamed` are those
    that have another name in landed rows: column of the table → of the rows.
    """

    root: str
    mark: str
    schema: pa.Schema = attrs.field(
        eq=attrs.cmp_using(eq=lambda one, other: one.equals(other, check_metadata=True))
    )
    partitioning: Partitioning
    renamed: Mapping[str, str] = attrs.field(factory=dict)

    def fitted(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with the columns of the files: types that the table has wider are converted.

        Raises SinkError for a value that the table's type cannot hold, and for a null that its column may not have.
        """
        import pyarrow as pa

        from kclient.spark.sink.required_fields import MissingValue, as_required, with_optional_parts

        names = [self.renamed.get(name, name) for name in self.schema.names]
        try:
            columns = [
                _cast(rows.column(name), field.type)
                if name in rows.schema.names
                else pa.nulls(len(rows), field.type)
                for name, field in zip(names, map(with_optional_parts, self.schema), strict=True)
            ]
        except pa.ArrowInvalid as exc:
            raise SinkError(
                f"A value does not fit into its column of the table at {self.root}: {exc}. Widen the column's type, or "
                "give --format raw.",
                path=self.root,
            ) from exc
        try:
            columns = list(map(as_required, columns, self.schema))
        except MissingValue as exc:
            self._refuse_null(rows, exc.row, exc.path)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _refuse_null(self, rows: pa.RecordBatch, number: int, name: str) -> NoReturn:
        """Raise SinkError with the first record that has none. Rows of a query have no offsets."""
        where = ""
        if set(COORDINATES) <= set(rows.schema.names):
            topic, partition, offset = (rows.column(part)[number] for part in COORDINATES)
            where = f" at offset {offset} of {topic}-{partition}"
        raise SinkError(
            f"A record{where} has no value for {name}, which is NOT NULL in the table at {self.root}. Nothing of its "
            "batch was committed. Let the column be nullable, and start again.",
            path=self.root,
        )


def grouped(
    rows: pa.RecordBatch, keys: Sequence[pa.Array]
) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
    """Yield the rows of each combination of keys, with the keys' values. Rows of one combination keep their order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not keys:
        yield (), rows
        return
    if not len(rows):
        return
    if all(map(_is_constant, keys)):  # as a topic is, and mostly a day
        yield tuple(key[0].as_py() for key in keys), rows
        return
    encoded = [_flat(key).dictionary_encode(null_encoding="encode") for key in keys]
    codes = encoded[0].indices.cast(pa.int64())
    for key in encoded[1:]:
        # Numbered again after each key, so that no product of many keys leaves 64 bits.
        pairs = pc.add(pc.multiply(codes, len(key.dictionary)), key.indices.cast(pa.int64()))
        codes = pairs.dictionary_encode().indices.cast(pa.int64())
    order = pc.sort_indices(codes)  # a stable sort
    groups = pc.run_end_encode(codes.take(order), pa.int64())
    start = 0
    for end in groups.run_ends.to_pylist():
        chosen = order.slice(start, end - start)
        first = chosen[0].as_py()
        values = tuple(key.dictionary[key.indices[first].as_py()].as_py() for key in encoded)
        yield values, rows if end - start == len(rows) else rows.take(chosen)
        start = end


def _is_constant(key: pa.Array) -> bool:
    """Return whether each value equals the one before it: 20 times as fast as to look which values there are."""
    return bool(key.slice(1).equals(key.slice(0, len(key) - 1)))


def days_of(times: pa.Array) -> pa.Array:
    """Return the day of each time in UTC, counted from 1970-01-01; null outside the years 1 to 9999."""
    import pyarrow as pa
    import pyarrow.compute as pc

    days = times.cast(pa.date32()).cast(pa.int32())
    known = pc.and_(pc.greater_equal(days, FIRST_DAY), pc.less_equal(days, LAST_DAY))
    return pc.if_else(known, days, pa.scalar(None, pa.int32()))


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)


def _flat(array: Any) -> pa.Array:
    return array.combine_chunks() if hasattr(array, "combine_chunks") else array
