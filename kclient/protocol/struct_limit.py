"""Counts the structs of a response before any of them is built.

An encoded struct takes 8 to 30 bytes and its object about 1,000, so a response below
`max_frame_bytes` may still become gigabytes and block the event loop for minutes. The count of an array is encoded
before its elements: the walk ends at the first count that is too large, and builds no objects.

A layout is compiled once per struct and version into steps, each (what, number, inner):

    SKIP    number bytes
    TEXT    a string or bytes: its length has `number` bytes, 0 for a compact length
    ARRAY   a count as above, then elements: `inner` is a size in bytes (then eight of them count as one struct), a TEXT
            step, or the steps of a struct
    MAYBE   a struct that may be null
    TAGS    tagged fields: `inner` maps the tags that hold structs to their steps
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import error as struct_error
from typing import Any, Final

from attrs import define

from kclient.errors import ProtocolDecodeError
from kclient.protocol.message import FIXED, Field, Message, Struct, within
from kclient.protocol.primitives import Buffer, read_uvarint

SMALL_BYTES: Final = 1_048_576  # smaller responses are not counted: they take at most 0.5 s and 150 MB
MOST_STRUCTS: Final = 250_000
NUMBERS_PER_STRUCT: Final = 8

SKIP, TEXT, ARRAY, MAYBE, TAGS = range(5)
Step = tuple[int, int, Any]
Steps = tuple[Step, ...]
_COMPILED: dict[tuple[type[Struct], int], Steps] = {}
LENGTHS: Final = {2: FIXED["int16"], 4: FIXED["int32"]}


def require_few_structs(
    kind: type[Message], version: int, data: Buffer, at: int, most: int = MOST_STRUCTS
) -> None:
    """Raise ProtocolDecodeError for a message that has more than `most` structs.

    Malformed bytes end the count without an error: decoding them raises the error.
    """
    try:
        walk(compiled(kind, version, kind.is_flexible(version)), data, at, most)
    except (IndexError, ValueError, struct_error):
        return
    except _TooManyError as exc:
        raise ProtocolDecodeError(
            f"{kind.NAME} version {version} has more than {most:,} entries ({len(data):,} bytes). No valid response "
            "is that long: the broker is damaged or hostile. Close the connection and ask another broker.",
            message=kind.NAME,
            version=version,
        ) from exc


def walk(steps: Steps, data: Buffer, at: int, most: int) -> int:
    """Return the offset after the struct at `at`."""
    return _Count(data, len(data), most).steps(steps, at)


class _TooManyError(Exception):
    """More structs than allowed."""


@define
class _Count:
    """The bytes, and how many more structs they may hold."""

    data: Buffer
    size: int
    left: int

    def steps(self, steps: Steps, at: int) -> int:
        """Walk one struct and return the offset after it."""
        for what, number, inner in steps:
            if what == SKIP:
                at += number
            elif what == TEXT:
                length, at = self.length(number, at)
                at += max(length, 0)
            elif what == ARRAY:
                at = self.array(number, inner, at)
            elif what == MAYBE:
                present = FIXED["int8"].unpack_from(self.data, at)[0] >= 0
                at = self.steps(inner, at + 1) if present else at + 1
            else:
                at = self.tags(inner, at)
        if at > self.size:
            raise IndexError(at)
        return at

    def array(self, width: int, inner: Any, at: int) -> int:
        count, at = self.length(width, at)
        if count <= 0:
            return at
        self.left -= count // NUMBERS_PER_STRUCT if isinstance(inner, int) else count
        if self.left < 0:
            raise _TooManyError
        if isinstance(inner, int):
            return at + count * inner
        for _ in range(count):
            at = self.steps(inner, at)
        return at

    def length(self, width: int, at: int) -> tuple[int, int]:
        if width == 0:
            length, at = read_uvarint(self.data, at)
            return length - 1, at
        return LENGTHS[width].unpack_from(self.data, at)[0], at + width

    def tags(self, known: dict[int, Steps], at: int) -> int:
        count, at = read_uvarint(self.data, at)
        for _ in range(count):
            tag, at = read_uvarint(self.data, at)
            size, at = read_uvarint(self.data, at)
            if tag in known:
                self.steps(known[tag], at)
            at += size
            if at > self.size:
                raise IndexError(at)
        return at


def compiled(kind: type[Struct], version: int, flexible: bool) -> Steps:
    """Return the steps of a struct in one version of its message."""
    found = _COMPILED.get((kind, version))
    if found is None:
        found = _COMPILED[kind, version] = _merged(list(_steps(kind, version, flexible)))
    return found


def _steps(kind: type[Struct], version: int, flexible: bool) -> Iterator[Step]:
    for field in kind.FIELDS:
        if within(version, field.versions) and not within(version, field.tagged):
            yield from _step(field, version, flexible)
    if flexible:
        tagged = [one for one in kind.FIELDS if within(version, one.tagged) and one.struct is not None]
        yield TAGS, 0, {one.tag: tuple(_step(one, version, flexible)) for one in tagged}


def _step(field: Field, version: int, flexible: bool) -> list[Step]:
    compact = flexible and not field.never_compact
    text = (TEXT, 0 if compact else 2 if field.element == "string" else 4, None)
    inner: Any = (text,)
    if field.struct is not None:
        inner = compiled(field.struct, version, flexible)
    elif field.element in FIXED:
        inner = FIXED[field.element].size
    if field.is_array:
        return [(ARRAY, 0 if compact else 4, inner)]
    if field.struct is None:
        return [(SKIP, inner, None)] if isinstance(inner, int) else [text]
    return [(MAYBE, 0, inner)] if within(version, field.nullable) else list(inner)


def _merged(steps: list[Step]) -> Steps:
    """Merge adjacent SKIP steps into one."""
    merged: list[Step] = []
    for what, number, inner in steps:
        if what == SKIP and merged and merged[-1][0] == SKIP:
            number += merged.pop()[1]
        merged.append((what, number, inner))
    return tuple(merged)
