"""The source, noting which of its methods Spark calls, in which process. `groupIdPrefix` is the file to note it in."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kclient.spark.source import KClientSource, StreamReader

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

DRIVER = (
    "prepareForTriggerAvailableNow",
    "getDefaultReadLimit",
    "initialOffset",
    "latestOffset",
    "reportLatestOffset",
    "partitions",
    "commit",
    "stop",
)


class RecordingReader(StreamReader):
    """Notes each call before it is answered."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Noted too; it runs in another process."""
        _note(self._options.client_prefix, "read")
        return super().read(partition)


def _noted(name: str) -> Callable[..., Any]:
    method = getattr(StreamReader, name)

    @functools.wraps(method)
    def call(self: RecordingReader, *args: Any) -> Any:
        _note(self._options.client_prefix, name)
        return method(self, *args)

    return call


for _name in DRIVER:
    setattr(RecordingReader, _name, _noted(_name))


class RecordingSource(KClientSource):
    """The same source under another name."""

    @classmethod
    def name(cls) -> str:
        return "kclient_recorded"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        made = super().streamReader(schema)
        made.__class__ = RecordingReader
        return made


def calls(file: Path) -> dict[int, list[str]]:
    """The calls of each process, in their order."""
    found: dict[int, list[str]] = {}
    for line in file.read_text().splitlines():
        pid, name = line.split()
        found.setdefault(int(pid), []).append(name)
    return found


def _note(file: str, name: str) -> None:
    with open(file, "a") as notes:
        notes.write(f"{os.getpid()} {name}\n")
