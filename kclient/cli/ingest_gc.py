"""`kclient ingest gc`: remove what killed batches left in a sink. Without `--apply` it only lists the files.

Files that no manifest names, and temporary ones. Never a file that counts, and nothing that a job did not write.
"""

from __future__ import annotations

import json as json_form
import shlex
import sys
from typing import Annotated, Any, Final

import attrs
from cyclopts import Token

from kclient.cli import program
from kclient.cli.exit_codes import OK
from kclient.cli.options import flag, option
from kclient.cli.reporters import size_text
from kclient.errors import ArgumentError, ConfigError
from kclient.spark.ingest.setting_values import location
from kclient.spark.option_table import duration_ms
from kclient.spark.sink import manifest
from kclient.spark.sink.manifest import MIN_AGE_MS, Garbage
from kclient.spark.sink.manifest import gc as remove
from kclient.text import LONGEST_PATH, format_count, printable

HOUR_MS: Final = 3_600_000


def _age(_type: Any, tokens: tuple[Token, ...]) -> int:
    """Convert `90m`, `2h`, `0s` to milliseconds."""
    return duration_ms(tokens[0].value)


def gc(
    *,
    sink: Annotated[
        str | None, option("the sink, or a directory of dead letters (required)", "parquet:DIR")
    ] = None,
    older_than: Annotated[
        int,
        option(
            "leave younger files: tasks of a killed job may still be writing them",
            "2h",
            converter=_age,
            show_default=f"{MIN_AGE_MS // HOUR_MS}h",
        ),
    ] = MIN_AGE_MS,
    apply: Annotated[bool, flag("remove them; without it they are only listed")] = False,
    json: Annotated[bool, flag("one JSON object")] = False,
) -> int:
    """List, and with --apply remove, the files that killed batches left in a sink: no manifest names them.

    A file that counts is never touched. A sink in a directory must be free: no job may work there meanwhile. In an
    object store only files of ranges that have landed by other files are removed, so jobs may go on.
    """
    root = _root(sink)
    found = remove(root, apply=apply, min_age_ms=older_than)
    if json:
        sys.stdout.write(json_form.dumps(_fields(root, found, removed=apply)) + "\n")
        return OK
    sys.stdout.write("".join(f"{printable(file.path, LONGEST_PATH)}\t{file.bytes}\n" for file in found))
    sys.stderr.write(
        _sentence(found, removed=apply) + _next(found, str(sink), older_than, removed=apply) + "\n"
    )
    return OK


def _root(sink: str | None) -> str:
    """Return the sink's directory or URL.

    Raises ArgumentError or ConfigError if it is not a sink, SinkError if it cannot be read.
    """
    if sink is None:
        raise ArgumentError(f"--sink is missing. Type: {program()} ingest gc --sink parquet:DIR")
    try:
        found = location(sink)
    except ValueError as exc:
        raise ArgumentError(f"--sink {exc}. Type: {program()} ingest gc --sink parquet:DIR") from None
    if found.kind != "parquet":
        raise ArgumentError("--sink is a table, which its own tools clean: VACUUM, or remove_orphan_files.")
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


def _next(found: list[Garbage], sink: str, older_than: int, *, removed: bool) -> str:
    """Return the command line that removes the listed files."""
    if removed or not found:
        return ""
    age = "" if older_than == MIN_AGE_MS else f" --older-than {older_than}ms"
    return f". Type: {program()} ingest gc --sink {shlex.quote(sink)}{age} --apply"


def _fields(root: str, found: list[Garbage], *, removed: bool) -> dict[str, Any]:
    """Return the fields of the JSON output."""
    return {
        "sink": root,
        "removed": removed,
        "bytes": sum(file.bytes for file in found),
        "files": [attrs.asdict(file) for file in found],
    }
