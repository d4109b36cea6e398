"""How the rows of an Iceberg table are divided into files, by the keys of its partition spec.

    PartitionSource    one key: an array of its values for some rows, and a value as a text
    WholeColumn        the column itself, as `_topic` by default
    Computed           a transform, by pyiceberg (`iceberg_schema.py`)

Pure of pyiceberg: a worker process gets the partitioning of its table, and where all keys are whole columns it does not
spend the half second of CPU that importing pyiceberg takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import attrs
import pyarrow as pa

from kclient.errors import SinkError
from kclient.spark.sink.partitions import Part, PartKey, grouped

LONGEST_DIRECTORY: Final = 100
"""A directory is only for people: Iceberg keeps the values elsewhere, and a name of a file has 255 bytes at most."""

_STRANGE: Final = re.compile(r"[^A-Za-z0-9._=+-]", re.ASCII)


class PartitionSource(Protocol):
    """One key of a partition spec. Pickles."""

    def array(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the key of each row, as Iceberg keeps it: days, microseconds and such as integers."""
        ...

    def text(self, value: Any) -> str:
        """Return a value for people."""
        ...


@attrs.frozen
class WholeColumn:
    """A key that is a column of texts or whole numbers."""

    name: str
    column: str

    def array(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the column."""
        return rows.column(self.column)

    def text(self, value: Any) -> str:
        """Return a value as pyiceberg writes it."""
        return f"{self.name}={'null' if value is None else value}"


@attrs.frozen
class IcebergPartitioning:
    """The keys of a table, in the order of its spec. `place` is where the table is. Pickles."""

    sources: tuple[PartitionSource, ...]
    place: str

    def split(self, rows: pa.RecordBatch) -> Iterator[Part]:
        """Yield the rows of each partition. Raises SinkError for values that a transform cannot take."""
        try:
            keys = [source.array(rows) for source in self.sources]
        except (pa.ArrowInvalid, ValueError, OverflowError) as exc:
            raise SinkError(
                f"The partition of a record in the table at {self.place} cannot be computed: {exc}. Choose another "
                "partition spec for the table.",
                path=self.place,
            ) from exc
        for values, some in grouped(rows, keys):
            yield Part(PartKey(self._directory(values), values), some)

    def _directory(self, values: Sequence[Any]) -> str:
        texts = (source.text(value) for source, value in zip(self.sources, values, strict=True))
        return "/".join(_STRANGE.sub("_", text)[:LONGEST_DIRECTORY] for text in texts)
