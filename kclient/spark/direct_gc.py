"""What killed batches left in a sink: files that no manifest names, and temporary ones. Never a file that counts.

Only names that a job gives are looked at, so what else lies in the directory stays. The sink is held meanwhile: files
of a batch at work have no manifest yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from kclient.runtime import Runtime
from kclient.spark import manifest
from kclient.spark.durable import is_directory, is_temporary, locked, told

MIN_AGE_MS: Final = 3_600_000
"""Younger files stay: the tasks of a driver that was killed may still be writing."""

_OURS: Final = re.compile(
    r"topic=[^/]+/(date=[^/]+/)?[0-9]{5,10}-[0-9]{20}-[0-9]{20}(-replay-[0-9a-f]{16})?\.parquet", re.ASCII
)


@attrs.frozen
class Garbage:
    """One file that nobody needs. `path` is relative to the sink."""

    path: str
    bytes: int


def gc(
    sink: str | Path, *, apply: bool = False, min_age_ms: int = MIN_AGE_MS, runtime: Runtime | None = None
) -> list[Garbage]:
    """What can be removed, and with `apply` is. Raises SinkError, also while a job holds the sink."""
    root = Path(sink)
    if not is_directory(root / manifest.DIRECTORY):
        return []
    with locked(root / manifest.DIRECTORY, "Taking files away"), told(root):
        found = list(_garbage(root, (runtime or Runtime()).wall_ms() - min_age_ms))
        for file in found if apply else ():
            (root / file.path).unlink(missing_ok=True)
    return found


def _garbage(root: Path, before_ms: int) -> Iterator[Garbage]:
    named = frozenset(file.path for whole in manifest.read_all(root) for file in whole.files)
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if name in named or not (is_temporary(path.name) or _OURS.fullmatch(name)) or not path.is_file():
            continue
        status = path.stat()
        if int(status.st_mtime * 1000) <= before_ms:
            yield Garbage(name, status.st_size)
