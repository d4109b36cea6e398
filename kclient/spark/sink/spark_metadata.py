"""What counts in a directory that Spark's own streaming sink writes: the files that its log `_spark_metadata` names.

    _spark_metadata/8            a line "v1", then one JSON object for each file of batch 8
    _spark_metadata/9.compact    the same for all batches up to 9; what is older may be deleted

A batch that was killed leaves files that the log does not name, some of them empty. Spark skips them; a
reader that lists the directory without this log counts rows twice, or fails at a file without a footer. Read without
Spark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import attrs

from kclient.errors import SinkError
from kclient.spark.sink.atomic_files import is_directory, list_names

DIRECTORY: Final = "_spark_metadata"
VERSION: Final = "v1"
_NAME: Final = re.compile(r"([0-9]{1,18})(\.compact)?", re.ASCII)


@attrs.frozen
class LoggedFile:
    """A file that counts. `path` is absolute."""

    path: str
    bytes: int


def batches(sink: str | Path) -> list[int]:
    """Return the numbers of the batches that the log still contains, in order. Raise SinkError."""
    return sorted(_logs(sink))


def logged(sink: str | Path, *, before: int | None = None) -> list[LoggedFile]:
    """Return the files of all batches, or of those before one. Raises SinkError for a log that cannot be parsed."""
    logs = {batch: path for batch, path in sorted(_logs(sink).items()) if before is None or batch < before}
    whole = max((batch for batch, path in logs.items() if path.suffix), default=0)
    found: dict[str, LoggedFile] = {}
    for batch, path in logs.items():
        for action, file in _entries(path) if batch >= whole else ():
            if action == "add":
                found[file.path] = file
            else:
                found.pop(file.path, None)
    return list(found.values())


def added(sink: str | Path, batch: int) -> list[LoggedFile]:
    """Return the files of one batch. Raises SinkError."""
    earlier = {file.path for file in logged(sink, before=batch)}
    return [file for file in logged(sink, before=batch + 1) if file.path not in earlier]


def files(sink: str | Path) -> list[str]:
    """Return the absolute paths of all files that count: the paths to give to a Parquet reader.

    Raises SinkError, also where there is no log: a wrong path is not an empty sink.
    """
    if not is_directory(Path(sink) / DIRECTORY):
        raise SinkError(
            f"{Path(sink).absolute()} has no {DIRECTORY}: Spark's own sink has landed nothing there, or it is another "
            "path. Give the directory of --sink parquet:DIRECTORY; without --writer spark, manifest says what counts.",
            path=str(sink),
        )
    return [file.path for file in logged(sink)]


def count(sink: str | Path) -> int:
    """Return the number of rows of a sink, by the footers of the files that count. Raises SinkError as `files` does."""
    return sum(rows_of(path) for path in files(sink))


def rows_of(path: str) -> int:
    """Return the number of rows of one file. Raises SinkError for one that is missing or damaged."""
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, ValueError) as exc:
        raise SinkError(
            f"The file {path} counts by {DIRECTORY}, and cannot be read: {exc}. It was deleted or damaged since. "
            "Restore it from a copy; Spark cannot read this directory without it either.",
            path=path,
        ) from exc


def _logs(sink: str | Path) -> dict[int, Path]:
    directory = Path(sink) / DIRECTORY
    found: dict[int, Path] = {}
    for name in sorted(list_names(directory)):
        if match := _NAME.fullmatch(name):
            found[int(match[1])] = directory / name
    return found


def _entries(path: Path) -> Iterator[tuple[str, LoggedFile]]:
    try:
        version, *lines = path.read_text(encoding="utf-8").splitlines()
        if version != VERSION:
            raise ValueError(f"its version is {version[:20]!r}, not {VERSION}")
        for line in lines:
            entry = json.loads(line)
            file = LoggedFile(unquote(urlsplit(entry["path"]).path), int(entry["size"]))
            yield entry.get("action", "add"), file
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise SinkError(
            f"Spark's log {path} cannot be read: {exc}. It was damaged, or another Spark wrote it another way. "
            "Restore it from a copy: without it nothing shows which files of the sink count.",
            path=str(path),
        ) from exc
