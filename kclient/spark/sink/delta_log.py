"""The `txn` actions and the restores in the log of a Delta table. delta-rs returns a `txn` only for a known name.

    _delta_log/00000000000000000007.json                 the actions of version 7, one JSON object a line
    _delta_log/00000000000000000100.checkpoint.parquet   what holds at version 100: the newest `txn` of each application
    _delta_log/00000000000000000100.checkpoint.0000000001.0000000002.parquet    the first of its two parts
    _delta_log/_last_checkpoint                          the newest checkpoint, or an older one
    _delta_log/_sidecars/….parquet                       files that a checkpoint of version 2 names, and nothing else

A reader starts at a checkpoint and applies the versions after it. Log clean-up deletes versions that a checkpoint
covers; every checkpoint keeps the `txn` of every application. Source: the Delta transaction log protocol.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from io import BufferedReader
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import attrs
import pyarrow.parquet as pq
from pyarrow.fs import FileInfo, FileSelector, FileSystem

DIRECTORY: Final = "_delta_log"
SIDECARS: Final = f"{DIRECTORY}/_sidecars"
_CHECKPOINT: Final = re.compile(
    r"(?P<version>[0-9]{20})\.checkpoint(?:\.[0-9]{10}\.(?P<parts>[0-9]{10})|\.[0-9a-f-]+)?\.(?:parquet|json)",
    re.ASCII,
)
_VERSION: Final = re.compile(r"([0-9]{20})\.json", re.ASCII)
_READ: Final = ("txn", "commitInfo")
_DELETING: Final = frozenset(
    {
        "DELETE",
        "MERGE",
        "TRUNCATE",
        "UPDATE",
        "CREATE OR REPLACE TABLE",
        "CREATE OR REPLACE TABLE AS SELECT",
        "REPLACE TABLE",
        "REPLACE TABLE AS SELECT",
        "CLONE",  # a later version is one only if it replaces the table
        "FSCK",  # forgets files that are gone
    }
)
_KEY_BYTES: Final = 16
"""A line begins with the name of its action: `{"txn":` or `{"commitInfo":`; the others are not parsed."""


class EntryMark(NamedTuple):
    """By what the log entry of a version is told from one of another table at its place."""

    size: int | None
    written_ns: int | None


@attrs.frozen
class Restore:
    """A version that took the table back to an older one; `to` is None if the log names a time in place of it."""

    version: int
    to: int | None


@attrs.frozen
class Since:
    """What the log says of the versions after one: restores in order, and whether rows were deleted.

    `first_missing` is the first of these versions of which the log has no entry any more, None if it has all.
    """

    restores: tuple[Restore, ...] = ()
    deletes: bool = False
    first_missing: int | None = None

    def holds(self, committed: int) -> tuple[int, bool | None]:
        """Return since which version the table holds what was committed, or does not; None if the log cannot say it."""
        states: list[tuple[int, bool | None]] = [(committed, True)]
        if self.first_missing is not None:
            states.append((self.first_missing, None))
        for restore in self.restores:
            found = None
            if restore.to is not None:
                found = next((there for number, there in reversed(states) if number <= restore.to), False)
            states.append((restore.version, found))
        return states[-1]


@attrs.frozen
class _Entry:
    """What one version did; `is_there` says whether the log has its entry still."""

    restore: Restore | None = None
    deletes: bool = False
    is_there: bool = True


class TransactionLog:
    """Reads the log of one table, each version once. Every method may raise OSError, and ValueError for a damaged log.

    `files` are those of the table's directory. `checkpoint` is the version of the checkpoint that reading began with,
    None for the first entry of the log.
    """

    def __init__(self, files: FileSystem) -> None:
        self._files = files
        self.checkpoint: int | None = None
        self._table = ""
        self._version = -1
        self._transactions: dict[str, int] = {}
        self._entries: dict[int, _Entry] = {}

    def transactions(self, version: int, table: str) -> Mapping[str, int]:
        """Return the newest `txn` of each application at a version: its id → its version. `table` is the table's id."""
        if version < self._version or table != self._table:  # another table is at this place since
            self.forget()
            self._table = table
        try:
            self._apply_up_to(version)
        except FileNotFoundError:  # log clean-up deleted what comes next, so a newer checkpoint holds it
            self.forget()
            self._apply_checkpoint(version)
            self._apply_up_to(version)
        return self._transactions

    def entry_mark(self, version: int) -> EntryMark | None:
        """Return what marks the entry of a version, None if the log has none: it was cleaned up, or is not there."""
        found = self._files.get_file_info(_entry_path(version))
        return EntryMark(found.size, found.mtime_ns) if found.is_file else None

    def since(self, after: int, version: int) -> Since:
        """Return what happened in the versions after one, up to another one."""
        numbers = range(after + 1, version + 1)
        there: Container[int] = numbers
        for number in numbers:
            if number in there and number not in self._entries:
                try:
                    self._read(number)
                except FileNotFoundError:
                    # Log clean-up deleted it, and others with it: one listing says which.
                    there = self._versions()
        gone = _Entry(is_there=False)
        self._entries = {number: self._entries.get(number, gone) for number in numbers}
        found = [(number, self._entries[number]) for number in numbers]
        return Since(
            tuple(entry.restore for _, entry in found if entry.restore is not None),
            any(entry.deletes for _, entry in found),
            next((number for number, entry in found if not entry.is_there), None),
        )

    def named_files(self) -> set[str]:
        """Return the paths of all files that any version or checkpoint of the log adds or removes.

        Also those of sidecars that no checkpoint names any more: a file too many is only kept.
        """
        found: set[str] = set()
        for info in self._entries_of(SIDECARS):
            if info.extension == "parquet":
                found |= self._named_in_checkpoint(info.path)
        for info in self._entries_of(DIRECTORY):
            if _CHECKPOINT.fullmatch(info.base_name) and info.extension == "parquet":
                found |= self._named_in_checkpoint(info.path)
            elif info.extension == "json":
                found |= {unquote(action["path"]) for _, action in self._lines(info.path, ("add", "remove"))}
        return found

    def _named_in_checkpoint(self, path: str) -> set[str]:
        with self._files.open_input_file(path) as file:
            table = pq.ParquetFile(file)
            columns = [name for name in ("add", "remove") if name in table.schema_arrow.names]
            rows = table.read(columns=[f"{name}.path" for name in columns])
        paths = (row["path"] for name in columns for row in rows.column(name).drop_null().to_pylist())
        return {unquote(path) for path in paths if path is not None}

    def forget(self) -> None:
        """Begin anew: what was read is not what is there."""
        self._version, self._transactions, self._entries, self.checkpoint = -1, {}, {}, None

    def _apply_up_to(self, version: int) -> None:
        if self._version < 0 and version:
            self._apply_checkpoint(version, self._hint())
        while self._version < version:
            self._transactions.update(self._read(self._version + 1))
            self._version += 1

    def _read(self, version: int) -> dict[str, int]:
        """Return the `txn` actions of a version, and keep what else it did. Raise FileNotFoundError."""
        transactions: dict[str, int] = {}
        entry = _Entry()
        for name, action in self._lines(_entry_path(version)):
            if name == "txn":
                transactions[action["appId"]] = action["version"]
            else:
                entry = _entry(version, action.get("operation"), action.get("operationParameters") or {})
        self._entries[version] = entry
        return transactions

    # --- checkpoints

    def _apply_checkpoint(self, version: int, hint: int | None = None) -> None:
        """Start at the newest checkpoint that is not after a version, if there is one; a `hint` saves the listing."""
        found = {} if hint is None or hint > version else self._single(hint)
        found = found or {number: paths for number, paths in self._listed().items() if number <= version}
        if found:
            newest = max(found)
            for path in found[newest]:
                self._transactions.update(self._of_checkpoint(path))
            self._version = self.checkpoint = newest

    def _hint(self) -> int | None:
        """Return the version of the checkpoint that `_last_checkpoint` names; it may be damaged."""
        try:
            with self._files.open_input_stream(f"{DIRECTORY}/_last_checkpoint") as file:
                hint = json.loads(file.read())
        except (FileNotFoundError, ValueError, RecursionError):
            return None
        version = hint.get("version") if isinstance(hint, dict) else None
        return version if isinstance(version, int) else None

    def _single(self, version: int) -> dict[int, list[str]]:
        """Return the checkpoint of a version if it is one file of the usual name."""
        path = f"{DIRECTORY}/{version:020d}.checkpoint.parquet"
        return {version: [path]} if self._files.get_file_info(path).is_file else {}

    def _listed(self) -> dict[int, list[str]]:
        """Return the whole checkpoints of the log, each with its files: a writer may have died between two parts."""
        sets: dict[tuple[int, int, str], list[str]] = defaultdict(list)
        for info in self._entries_of(DIRECTORY):
            if match := _CHECKPOINT.fullmatch(info.base_name):
                name = "" if match["parts"] else info.base_name
                sets[int(match["version"]), int(match["parts"] or 1), name].append(info.path)
        return {version: paths for (version, parts, _), paths in sets.items() if len(paths) == parts}

    def _of_checkpoint(self, path: str) -> dict[str, int]:
        if path.endswith(".json"):
            return {txn["appId"]: txn["version"] for name, txn in self._lines(path) if name == "txn"}
        with self._files.open_input_file(path) as file:
            table = pq.ParquetFile(file)
            if "txn" not in table.schema_arrow.names:
                return {}
            rows = table.read(columns=["txn.appId", "txn.version"]).column("txn").drop_null()
        return {txn["appId"]: txn["version"] for txn in rows.to_pylist() if txn["appId"] is not None}

    def _versions(self) -> set[int]:
        """Return the versions of which the log has the entry."""
        names = (info.base_name for info in self._entries_of(DIRECTORY))
        return {int(match[1]) for name in names if (match := _VERSION.fullmatch(name))}

    def _entries_of(self, directory: str) -> list[FileInfo]:
        return list(self._files.get_file_info(FileSelector(directory, allow_not_found=True)))

    def _lines(self, path: str, names: Sequence[str] = _READ) -> Iterator[tuple[str, dict[str, Any]]]:
        with BufferedReader(self._files.open_input_stream(path)) as file:
            for line in file:
                if any(f'"{name}"'.encode() in line[:_KEY_BYTES] for name in names):
                    [(name, action)] = json.loads(line).items()
                    yield name, action


def _entry_path(version: int) -> str:
    return f"{DIRECTORY}/{version:020d}.json"


def _entry(version: int, operation: Any, parameters: Mapping[str, Any]) -> _Entry:
    if operation == "RESTORE":
        to = parameters.get("version")
        return _Entry(Restore(version, None if to in (None, "null") else int(to)))
    overwrites = parameters.get("mode") == "Overwrite" or parameters.get("outputMode") == "Complete"
    return _Entry(deletes=operation in _DELETING or overwrites)
