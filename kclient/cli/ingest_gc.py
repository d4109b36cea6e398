"""`kclient ingest gc`: remove what killed batches left in a sink. Without `--apply` it only lists the files.

Files that no manifest or snapshot names, and temporary ones. Never a file that counts, nor one that no job wrote.
"""

from __future__ import annotations

import json as json_form
import shlex
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final

import attrs
from cyclopts import Token

from kclient.cli import program
from kclient.cli.exit_codes import OK
from kclient.cli.options import check_catalog, flag, option
from kclient.cli.reporters import size_text, warnings_shown
from kclient.errors import ArgumentError, ConfigError
from kclient.runtime import Runtime
from kclient.spark.ingest.resume import named_table
from kclient.spark.ingest.setting_values import Location, location
from kclient.spark.option_table import duration_ms
from kclient.spark.sink import manifest
from kclient.spark.sink.manifest import MIN_AGE_MS, Garbage
from kclient.spark.sink.manifest import gc as remove
from kclient.spark.sink.tables import GARBAGE_AGE_MS
from kclient.text import LONGEST_PATH, format_count, printable

HOUR_MS: Final = 3_600_000


def _age(_type: Any, tokens: tuple[Token, ...]) -> str:
    """Check `90m`, `2h`, `0s`, and return it as it is typed."""
    duration_ms(tokens[0].value)
    return tokens[0].value


@warnings_shown()
def gc(
    *,
    sink: Annotated[
        str | None,
        option(
            "the sink, or a directory of dead letters (required)",
            "parquet:DIR|iceberg:CATALOG.NAMESPACE.TABLE|delta:DIR",
        ),
    ] = None,
    catalog: Annotated[str | None, option("the Iceberg catalogs, in the form of pyiceberg", "FILE")] = None,
    older_than: Annotated[
        str | None,
        option(
            "leave younger files: tasks of a killed job may still be writing them",
            "2h",
            converter=_age,
            show_default=f"{MIN_AGE_MS // HOUR_MS}h, and of a table {GARBAGE_AGE_MS // HOUR_MS}h",
        ),
    ] = None,
    apply: Annotated[bool, flag("remove them; without it they are only listed")] = False,
    json: Annotated[bool, flag("one JSON object")] = False,
) -> int:
    """List, and with --apply remove, the files that killed batches left in a sink: no manifest or snapshot names them.

    A file that counts is never touched. A sink in a directory must be free: no job may work there meanwhile. In an
    object store only files of batches that have landed by other files are removed, so jobs may go on. In a table
    nothing stops a job, so a batch must not take longer than --older-than.
    """
    where = _location(sink)
    check_catalog(where, catalog)
    if where.is_lake:
        found = _table_files(where, catalog, _age_ms(older_than, GARBAGE_AGE_MS), apply=apply)
    else:
        found = remove(_root(where), apply=apply, min_age_ms=_age_ms(older_than, MIN_AGE_MS))
    if json:
        sys.stdout.write(json_form.dumps(_fields(where, found, removed=apply)) + "\n")
        return OK
    sys.stdout.write("".join(f"{printable(file.path, LONGEST_PATH)}\t{file.bytes}\n" for file in found))
    typed = [str(sink), *(["--catalog", catalog] if catalog is not None else [])]
    sys.stderr.write(_sentence(found, removed=apply) + _next(found, typed, older_than, removed=apply) + "\n")
    return OK


def _age_ms(older_than: str | None, default: int) -> int:
    return default if older_than is None else duration_ms(older_than)


def _table_files(where: Location, catalog: str | None, age_ms: int, *, apply: bool) -> list[Garbage]:
    """Return the files of jobs that no snapshot of the table names; with `apply` remove them. Raises SinkError."""
    table = named_table(where, catalog)
    found = table.garbage(Runtime().wall_ms() - age_ms)
    if apply:
        table.remove(found)
    return found


def _location(sink: str | None) -> Location:
    """Return the sink. Raises ArgumentError."""
    if sink is None:
        raise ArgumentError(f"--sink is missing. Type: {program()} ingest gc --sink parquet:DIR")
    try:
        found = location(sink)
    except ValueError as exc:
        raise ArgumentError(f"--sink {exc}. Type: {program()} ingest gc --sink parquet:DIR") from None
    if found.kind == "table":
        raise ArgumentError("--sink is a table, which its own tools clean: VACUUM, or remove_orphan_files.")
    return found


def _root(found: Location) -> str:
    """Return the sink's directory or URL. Raise ConfigError if it is not a sink, SinkError if it cannot be read."""
    if not manifest.exists(found.where):
        raise ConfigError(
            f"{found.where} is not a sink with a manifest: it has no {manifest.DIRECTORY}. "
            "Give what a job with --writer direct was given as --sink or --dlq."
        )
    return found.where


def _sentence(found: list[Garbage], *, removed: bool) -> str:
    if not found:
        return "nothing to remove"
    what = f"{format_count(len(found), 'file')}, {size_text(sum(file.bytes for file in found))}"
    return f"removed {what}" if removed else f"would remove {what}; nothing has changed yet"


def _next(found: list[Garbage], sink: Sequence[str], older_than: str | None, *, removed: bool) -> str:
    """Return the command line that removes the listed files."""
    if removed or not found:
        return ""
    age = "" if older_than is None else f" --older-than {shlex.quote(older_than)}"
    return f". Type: {program()} ingest gc --sink {shlex.join(sink)}{age} --apply"


def _fields(where: Location, found: list[Garbage], *, removed: bool) -> dict[str, Any]:
    """Return the fields of the JSON output."""
    return {
        "sink": str(where) if where.is_lake else where.where,
        "removed": removed,
        "bytes": sum(file.bytes for file in found),
        "files": [attrs.asdict(file) for file in found],
    }
