"""The files that jobs write below the place of a table, in a directory or in a store: which they are, how they go.

A file is named after its range, its table, the attempt that wrote it, and a number (`parquet.RangeFiles`). In a
directory it has a hidden name while it is written.

    00003-00000000000000000000-00000000000000000010-TABLE-ATTEMPT-0.parquet

TABLE is made of the table's id (`table_mark`), because its place may hold the files of others too: of a table that was
renamed before this one was made, of one with the same `write.data.path`, of one in a directory below. Writers that are
not kclient give other names. The files of neither are ever touched. ATTEMPT is 64 random bits, so no two files have one
name, and a file is looked up by its name alone: its directory has many spellings (`s3:`, `s3a:`, `file:///`, `%20`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from kclient.spark.sink.atomic_files import sink_errors
from kclient.spark.sink.manifest import Garbage
from kclient.spark.sink.store import StoredObject, is_remote, store_of

_NAME: Final = re.compile(
    r"\.?[0-9]{5,10}-[0-9]{20}-[0-9]{20}-(?P<table>[0-9a-f]{16})-[0-9a-f]{16}(-[0-9]+\.parquet)?(\.[0-9a-f]{12}\.tmp)?",
    re.ASCII,
)


def table_mark(table_id: str) -> str:
    """Return what the names of a table's files have of its id, which may be any text."""
    return hashlib.sha256(table_id.encode()).hexdigest()[:16]


def written_before(root: str, table_id: str, time_ms: int) -> list[Garbage]:
    """Return the files that jobs of one table have written before a time in ms since 1970. Raises SinkError."""
    mark = table_mark(table_id)
    return [
        Garbage(file.key, file.bytes)
        for file in sorted(_files(root), key=lambda file: file.key)
        if file.modified_ms <= time_ms and _mark_of(file.key) == mark
    ]


def not_named(found: Iterable[Garbage], paths: Iterable[str]) -> list[Garbage]:
    """Return the files that none of the paths names, in whatever form it names their directory."""
    names = {name_of(path) for path in paths}
    return [file for file in found if name_of(file.path) not in names]


def remove(root: str, found: Iterable[Garbage]) -> None:
    """Delete files; one that is not there any more is no error. Raises SinkError."""
    for file in found:
        if is_remote(root):
            store_of(root).delete(file.path)
            continue
        with sink_errors(Path(root)):
            (Path(root) / file.path).unlink(missing_ok=True)


def is_of_a_job(path: str) -> bool:
    """Return whether a path or URL has a name that jobs give, of any table."""
    return _mark_of(path) is not None


def name_of(path: str) -> str:
    """Return the name of a file without its directories."""
    return path.rpartition("/")[2]


def _mark_of(path: str) -> str | None:
    match = _NAME.fullmatch(name_of(path))
    return None if match is None else match["table"]


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
