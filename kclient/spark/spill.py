"""Rows that wait for their file while as many are open as may be: one hidden stream of Arrow batches on the disk.

Descriptors and memory are bounded that way, and still each day has one file whose name is a function of the range.
Closing the file that rests longest and beginning a second one for late rows would make names depend on how the records
came in batches.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path

import pyarrow as pa

from kclient.spark.durable import make_directory, temporary_name, told


class Spill:
    """Batches of one schema, each with its date, in the order in which they came. Methods may raise SinkError."""

    def __init__(self, beside: Path, schema: pa.Schema) -> None:
        self._path = temporary_name(beside)
        self._dates: list[str] = []
        with told(beside):
            make_directory(beside.parent)
            self._file = pa.OSFile(str(self._path), "wb")
            self._writer = pa.ipc.new_stream(self._file, schema)

    @property
    def dates(self) -> tuple[str, ...]:
        """Every date once."""
        return tuple(dict.fromkeys(self._dates))

    def add(self, date: str, rows: pa.RecordBatch) -> None:
        """Keep the rows of one day."""
        with told(self._path):
            self._writer.write_batch(rows)
        self._dates.append(date)

    def finish(self) -> None:
        """Write the rest; nothing can be added any more."""
        with told(self._path):
            self._writer.close()
            self._file.close()

    def read(self, dates: Container[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The batches of some dates."""
        with told(self._path), pa.OSFile(str(self._path)) as file, pa.ipc.open_stream(file) as batches:
            for date, rows in zip(self._dates, batches, strict=True):
                if date in dates:
                    yield date, rows

    def discard(self) -> None:
        """Take the stream away."""
        with told(self._path):
            self._file.close()
            self._path.unlink(missing_ok=True)
