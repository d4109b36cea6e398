"""Java `.properties` files, read as Java reads them, except that a key given twice is an error.

A line is a key, then `=`, `:` or white space, then the value. `#` and `!` begin comments, a backslash at the end
of a line joins it with the next one, and `\\uXXXX`, `\\t`, `\\n`, `\\r`, `\\f` stand for characters. The bytes are
ISO 8859-1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from kclient.security.local_file import LARGEST_TEXT, read_local

_BLANK = " \t\f"
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SPLIT = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*(?:[=:][ \t\f]*)?(.*)", re.DOTALL)


class Property(NamedTuple):
    """One key with its value and its place: `name.properties, line 3`."""

    key: str
    value: str
    place: str


def read_properties(path: str | PathLike[str]) -> list[Property]:
    """Return every property of a file in order. Raise OSError or ValueError if the file cannot be read."""
    content = read_local(path, LARGEST_TEXT).decode("iso-8859-1")
    return [
        Property(*_key_and_value(line), f"{Path(path).name}, line {number}")
        for number, line in _logical_lines(content)
    ]


def _logical_lines(content: str) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers: without comments and blank lines; lines that end in a backslash are joined."""
    joined, first = "", 0
    for number, line in enumerate(re.split(r"\r\n|\r|\n", content), start=1):
        line = line.lstrip(_BLANK)
        if not joined and (not line or line[0] in "#!"):
            continue
        first = first or number
        if _ends_open(line):
            joined += line[:-1]
            continue
        yield first, joined + line
        joined, first = "", 0
    if joined:
        yield first, joined


def _ends_open(line: str) -> bool:
    """Return whether an odd number of backslashes ends the line."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _key_and_value(line: str) -> tuple[str, str]:
    match = _SPLIT.fullmatch(line)
    key, value = match.groups() if match else (line, "")
    return _unescape(key), _unescape(value)


def _unescape(escaped: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _LETTERS.get(code, code)

    return _ESCAPE.sub(character, escaped)
