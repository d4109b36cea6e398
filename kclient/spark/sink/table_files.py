"""The files that jobs write below the place of a table, in a directory or in a store: which they are, how they go.

A file is named after its range, the attempt that wrote it, and a number (`parquet.RangeFiles`); in a directory it has a
hidden name while it is written. Other writers of the table give other names, so their files are never touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from kclient.spark.sink.atomic_files import is_temporary, sink_errors
from kclient.spark.sink.manifest import Garbage
from kclient.spark.sink.store import StoredObject, is_remote, store_of

_NAME: Final = re.compile(r"[0-9]{5,10}-[0-9]{20}-[0-9]{20}-[0-9a-f]{16}-[0-9]+\.parquet", re.ASCII)


def written_before(root: str, time_ms: int) -> list[Garbage]:
    """Return all files with names that jobs give, written before a time in ms since 1970. Raises SinkError."""
    return [
        Garbage(file.key, file.bytes)
        for file in sorted(_files(root), key=lambda file: file.key)
        if _is_of_a_job(file.key.rpartition("/")[2]) and file.modified_ms <= time_ms
    ]


def remove(root: str, found: Iterable[Garbage]) -> None:
    """Delete files; one that is not there any more is no error. Raises SinkError."""
    for file in found:
        if is_remote(root):
            store_of(root).delete(file.path)
            continue
        with sink_errors(Path(root)):
            (Path(root) / file.path).unlink(missing_ok=True)


def _is_of_a_job(name: str) -> bool:
    return _NAME.fullmatch(name) is not None or is_temporary(name)


def _files(root: str) -> Iterator[StoredObject]:
    """Yield all files below a directory, hidden ones too, or all objects of a store."""
    if is_remote(root):
        yield from store_of(root).list()
        return
    with sink_errors(Path(root)):
        for path in Path(root).rglob("*"):
            with suppress(FileNotFoundError):  # a hidden file that got its name meanwhile
                status = path.stat()
                key = path.relative_to(root).as_posix()
                yield StoredObject(key, status.st_size, int(status.st_mtime * 1000))
