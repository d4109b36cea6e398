"""The manifest: which files of a sink count. One JSON file for each batch, written atomically after all its files.

    _manifest/000000000042.json     batch 42 of a job: start and end offsets, its files
    _manifest/backfill-….json       a backfill, named after what it read

A file that no manifest names does not exist for readers: a batch that was killed half way leaves such files, and the
same batch, run again, writes the same names and the same manifest. The name of a file ends with that of the only
manifest that may name it. `gc` removes the files that no manifest names and leftover temporary ones. It matches only
names that a job gives, and holds the sink's lock meanwhile, because the files of a running batch have no manifest yet.
Pure of Spark.

In an object store, where no lock can be held, a manifest is created once, so one run decides what a batch is; and `gc`
removes only files whose manifest is there already.
"""

from __future__ import annotations

import builtins
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

import attrs

from kclient.errors import SinkError
from kclient.runtime import Runtime
from kclient.spark.offsets import dump_offsets, parse_offsets
from kclient.spark.sink.atomic_files import is_directory, is_temporary, locked, sink_errors
from kclient.spark.sink.local_store import LARGEST_READ
from kclient.spark.sink.store import is_remote, store_of
from kclient.text import printable
from kclient.types import TopicPartition

DIRECTORY: Final = "_manifest"
VERSION: Final = 1
_ANY: Final = "[0-9]{12}|backfill-[0-9a-f]{16}|replay-[0-9a-f]{16}"
_NAME: Final = re.compile(rf"({_ANY})\.json", re.ASCII)


@attrs.frozen(kw_only=True)
class WrittenFile:
    """One file of a range. `path` is relative to the sink; `end` is exclusive. `first_ms`, `last_ms`: record times.

    A file of a table has its partition values, and the footer of the Parquet file with its statistics; manifests keep
    neither.
    """

    path: str
    topic: str
    partition: int
    start: int
    end: int
    rows: int
    bytes: int
    first_ms: int | None = None
    last_ms: int | None = None
    values: tuple[Any, ...] = ()
    footer: builtins.bytes | None = attrs.field(default=None, repr=False)

    def described(self) -> dict[str, Any]:
        """Return what a manifest keeps of it."""
        return attrs.asdict(self, filter=attrs.filters.exclude("values", "footer"))


@attrs.frozen(kw_only=True)
class Manifest:
    """One batch of a sink: the offsets it covers, and its files. `name` is its number, or that of a backfill.

    `nulled` is how many values could not be decoded and became null. `epoch` is that of the run in an object store.
    `is_final` is False for one that the next run of the batch may replace: of dead letters, whose manifest comes before
    the commit in a directory or a table.
    """

    job: str
    name: str
    start: Mapping[TopicPartition, int]
    end: Mapping[TopicPartition, int]
    files: tuple[WrittenFile, ...] = ()
    dead_letters: tuple[WrittenFile, ...] = ()
    nulled: int = 0
    epoch: int = 0
    is_final: bool = False

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def bad_records(self) -> int:
        """The number of records that could not be decoded: dead letters, and values that became null."""
        return self.nulled + sum(file.rows for file in self.dead_letters)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


def batch_name(batch: int) -> str:
    """Return the name of a batch's manifest."""
    return f"{batch:012d}"


def write(sink: str | Path, manifest: Manifest) -> None:
    """Make the files of a batch count, also in place of an older manifest. Raises SinkError."""
    store_of(sink).put(_key(manifest.name), _dumped(manifest))


def create(sink: str | Path, manifest: Manifest) -> bool:
    """Make the files of a batch count, unless it has another manifest: then return False. Raises SinkError."""
    return store_of(sink).put_if_absent(_key(manifest.name), _dumped(manifest))


def _dumped(manifest: Manifest) -> bytes:
    files = [file.described() for file in manifest.files]
    content = {
        "version": VERSION,
        "job": manifest.job,
        "start": json.loads(dump_offsets(manifest.start)),
        "end": json.loads(dump_offsets(manifest.end)),
        "rows": manifest.rows,
        "nulled": manifest.nulled,
        "files": files,
        "dead_letters": [file.described() for file in manifest.dead_letters],
        **({"epoch": manifest.epoch} if manifest.epoch else {}),
        **({"final": True} if manifest.is_final else {}),
    }
    dumped = json.dumps(content, indent=1).encode()
    if len(dumped) > LARGEST_READ:
        raise SinkError(
            f"The manifest {manifest.name} would name {len(files)} files in more than {LARGEST_READ >> 20} MiB, and "
            "could not be read again. Nothing of it counts. Start again with fewer and larger files: a larger "
            "--target-file-mb, or --partition-by topic alone."
        )
    return dumped


def read(sink: str | Path, name: str) -> Manifest | None:
    """Return the manifest of a batch, None if it was not written. Raises SinkError if it cannot be parsed."""
    store, key = store_of(sink), _key(name)
    if (found := store.read(key)) is None:
        return None
    try:
        content = json.loads(found)
        if content["version"] != VERSION:
            raise ValueError(f"its version is {content['version']!r}, not {VERSION}")
        return Manifest(
            job=content["job"],
            name=name,
            start=_offsets(content["start"]),
            end=_offsets(content["end"]),
            files=_files(content["files"]),
            dead_letters=_files(content["dead_letters"]),
            nulled=int(content["nulled"]),
            epoch=int(content.get("epoch", 0)),
            is_final=bool(content.get("final", False)),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as exc:
        raise SinkError(
            f"The manifest {store.place(key)} cannot be read: {exc}. It was damaged, or written by another program. "
            "Restore it from a copy: without it nothing shows which files of that batch count.",
            path=store.place(key),
        ) from exc


def names(sink: str | Path) -> list[str]:
    """Return the names of a sink's manifests: batches in order, then backfills. Raise SinkError."""
    keys = (found.key.removeprefix(f"{DIRECTORY}/") for found in store_of(sink).list(DIRECTORY))
    return sorted(name.removesuffix(".json") for name in keys if _NAME.fullmatch(name))


def batches(sink: str) -> list[str]:
    """Return the names of all manifests of batches, in order, without those of what landed beside them."""
    return [name for name in names(sink) if name.isdigit()]


def exists(sink: str | Path) -> bool:
    """Return whether a job lands there by manifests; in an object store, once something has landed. Raise SinkError."""
    return bool(names(sink)) if is_remote(sink) else is_directory(Path(sink) / DIRECTORY)


def read_all(sink: str | Path, kind: str = "") -> Iterator[Manifest]:
    """Yield every manifest of a sink, or those whose names begin with `kind`. Raises SinkError."""
    for name in names(sink):
        manifest = read(sink, name) if name.startswith(kind) else None
        if manifest is not None:
            yield manifest


def files(sink: str | Path) -> list[str]:
    """Return the absolute paths, or the URLs, of all files that count: to give to a Parquet reader.

    Raises SinkError, also where no manifests are: a wrong path is not an empty sink.
    """
    store = store_of(sink)
    return [store.place(file.path) for manifest in _landed(sink) for file in manifest.files]


def count(sink: str | Path) -> int:
    """Return the number of rows of a sink, by its manifests. Raises SinkError as `files` does."""
    return sum(manifest.rows for manifest in _landed(sink))


def overlap(manifests: Iterable[Manifest], wanted: Manifest) -> str | None:
    """Return the name of another manifest that already covers an offset of `wanted`, None if none does."""
    for manifest in manifests:
        for tp, end in wanted.end.items():
            start = wanted.start.get(tp, end)
            theirs = manifest.start.get(tp, 0), manifest.end.get(tp, 0)
            if manifest.name != wanted.name and max(start, theirs[0]) < min(end, theirs[1]):
                return manifest.name
    return None


def _landed(sink: str | Path) -> Iterator[Manifest]:
    if not exists(sink):
        raise SinkError(
            f"{store_of(sink).url} has no {DIRECTORY}: no job has landed there by manifests, or it is another path. "
            "Give what --sink parquet:… names; of Spark's own sink, spark_metadata says what counts.",
            path=str(sink),
        )
    return read_all(sink)


def _key(name: str) -> str:
    return f"{DIRECTORY}/{name}.json"


def _offsets(content: Any) -> Mapping[TopicPartition, int]:
    return parse_offsets(json.dumps(content)) if content else {}


_KINDS: Final[Mapping[str, Any]] = {
    "path": str,
    "topic": str,
    **dict.fromkeys(("partition", "start", "end", "rows", "bytes"), int),
    **dict.fromkeys(("first_ms", "last_ms"), int | None),
}


def _files(content: Any) -> tuple[WrittenFile, ...]:
    """Parse the files. Raises ValueError for a path outside the sink, because readers and the cleanup job follow it."""
    files = tuple(WrittenFile(**file) for file in content)
    for file in files:
        for name, kind in _KINDS.items():
            if not isinstance(value := getattr(file, name), kind):
                raise ValueError(f"the {name} of a file cannot be {value!r}")
        place = PurePosixPath(file.path)
        if place.is_absolute() or ".." in place.parts or "\0" in file.path:
            raise ValueError(f"it names a file outside of the sink: {printable(file.path)}")
    return files


# --- files that no manifest names ------------------------------------------------------------------------------------


MIN_AGE_MS: Final = 3_600_000
"""Younger files stay: the tasks of a driver that was killed may still be writing."""

_OURS: Final = re.compile(
    rf"topic=[^/]+/(date=[^/]+/)?[0-9]{{5,10}}-[0-9]{{20}}-[0-9]{{20}}(-(?P<manifest>{_ANY}))?"
    r"(-[0-9a-f]{16}-[0-9a-f]{8})?\.parquet",
    re.ASCII,
)

_HIDDEN: Final = re.compile(rf"({DIRECTORY}|topic=[^/]+(/date=[^/]+)?)/[^/]+")
"""Where a job has temporary files. A sink below this one has some of its own, and its job may be running."""


@attrs.frozen
class Garbage:
    """A file that no manifest names. `path` is relative to the sink."""

    path: str
    bytes: int


def gc(
    sink: str | Path, *, apply: bool = False, min_age_ms: int = MIN_AGE_MS, runtime: Runtime | None = None
) -> list[Garbage]:
    """Return the files that can be removed; with `apply` remove them.

    Raises SinkError, also while a job holds the sink.
    """
    before_ms = (runtime or Runtime()).wall_ms() - min_age_ms
    if is_remote(sink):
        store = store_of(sink)
        found = sorted(_superseded(str(sink), before_ms), key=lambda file: file.path)
        for file in found if apply else ():
            store.delete(file.path)
        return found
    root = Path(sink)
    if not is_directory(root / DIRECTORY):
        return []
    with locked(root / DIRECTORY, "Taking files away"), sink_errors(root):
        found = list(_garbage(root, before_ms))
        for file in found if apply else ():
            (root / file.path).unlink(missing_ok=True)
    return found


def _garbage(root: Path, before_ms: int) -> Iterator[Garbage]:
    named = frozenset(file.path for whole in read_all(root) for file in whole.files)
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        is_ours = _OURS.fullmatch(name) or (_HIDDEN.fullmatch(name) and is_temporary(path.name))
        if name in named or not is_ours or not path.is_file():
            continue
        status = path.stat()
        if int(status.st_mtime * 1000) <= before_ms:
            yield Garbage(name, status.st_size)


def _superseded(sink: str, before_ms: int) -> Iterator[Garbage]:
    """Yield the objects that no manifest names or ever will: that of their batch is there, and names other files.

    Final manifests are created once, so this holds whatever runs meanwhile, without a lock. One that may be replaced
    decides only about what was there before it: later files are of the run that is about to replace it.
    """
    written = {found.key: found.modified_ms for found in store_of(sink).list(DIRECTORY)}
    manifests = {whole.name: whole for whole in read_all(sink)}
    named = frozenset(file.path for whole in manifests.values() for file in whole.files)
    for found in store_of(sink).list():
        name = _OURS.fullmatch(found.key)
        whole = None if name is None else manifests.get(name["manifest"])
        if whole is None or found.key in named or found.modified_ms > before_ms:
            continue
        if whole.is_final or found.modified_ms < written.get(_key(whole.name), 0):
            yield Garbage(found.key, found.bytes)
