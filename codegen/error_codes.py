"""Reads `schemas/errors.tsv`: every error code of the protocol and its properties."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from codegen.errors import SchemaError

_COLUMNS = ["code", "name", "retriable", "invalid_metadata", "refresh_retriable"]
_FLAGS = {"true": True, "false": False}


@frozen
class ErrorSpec:
    """One line of the table."""

    code: int
    name: str
    retriable: bool
    invalid_metadata: bool
    refresh_retriable: bool


def parse_errors(path: Path) -> list[ErrorSpec]:
    """Read the table. Raise SchemaError with the line."""
    header, *lines = path.read_text("utf-8").splitlines()
    if header.split("\t") != _COLUMNS:
        raise SchemaError(path.name, "", f"the columns are {', '.join(_COLUMNS)}")
    errors = [_parse_line(path.name, number, line) for number, line in enumerate(lines, 2)]
    if len({error.code for error in errors}) < len(errors) or len({error.name for error in errors}) < len(
        errors
    ):
        raise SchemaError(path.name, "", "a code or a name twice")
    return errors


def _parse_line(file: str, number: int, line: str) -> ErrorSpec:
    try:
        code, name, *flags = line.split("\t")
        retriable, invalid_metadata, refresh_retriable = (_FLAGS[flag] for flag in flags)
        return ErrorSpec(int(code), name, retriable, invalid_metadata, refresh_retriable)
    except (ValueError, KeyError) as exc:
        raise SchemaError(file, f"line {number}", f"is not an error code: {line!r}") from exc
