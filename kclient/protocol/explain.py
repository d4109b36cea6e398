"""Where reading or writing failed: the slow way over the same fields, taken only after the fast one gave up.

The generated functions say that something is wrong; keeping a path and an offset for every field would cost the
messages that are right. So after a failure the bytes (or the objects) are walked once more by the classes' FIELDS,
and the first place that does not hold is the answer. Nothing is built on the way.
"""

from __future__ import annotations

from struct import Struct as Binary
from typing import Any

from attrs import define

from kclient.protocol.message import Field, Message, Struct, within
from kclient.protocol.primitives import MALFORMED, MAX_STRING_BYTES, MAX_TAGS, Buffer, Malformed, read_uvarint

FIXED = {
    "int8": Binary(">b"),
    "int16": Binary(">h"),
    "uint16": Binary(">H"),
    "int32": Binary(">i"),
    "uint32": Binary(">I"),
    "int64": Binary(">q"),
    "bool": Binary(">?"),
    "float64": Binary(">d"),
    "uuid": Binary("16s"),
}


def decode_failure(kind: type[Message], version: int, data: Buffer, offset: int) -> tuple[str, int, str]:
    """The path of the first field that cannot be read, its offset in `data`, and why."""
    walk = _Walk(version, _flexible(kind, version), data, offset, len(data))
    try:
        walk.struct(kind, "")
    except MALFORMED as error:
        return walk.field, walk.field_at, str(error)
    return "", offset, ""


@define
class _Walk:
    """A walk over bytes; `field` and `field_at` are where it stands."""

    version: int
    flexible: bool
    data: Buffer
    at: int
    end: int
    field: str = ""
    field_at: int = 0

    def struct(self, kind: type[Struct], path: str) -> None:
        for field in kind.FIELDS:
            if within(self.version, field.versions) and not within(self.version, field.tagged):
                self.value(field, _join(path, field.name))
        if self.flexible:
            self.tags(kind, path)

    def value(self, field: Field, path: str, in_tag: bool = False) -> None:
        self.field, self.field_at = path, self.at
        nullable = within(self.version, field.nullable)
        element = field.wire_type.removeprefix("[]")
        if element != field.wire_type:
            self.array(field, element, path, nullable)
        elif field.struct is not None:
            if not (nullable and self.null(in_tag)):
                self.struct(field.struct, path)
        elif field.wire_type in FIXED:
            self.skip(FIXED[field.wire_type].size)
        else:
            self.text(field, nullable)

    def array(self, field: Field, element: str, path: str, nullable: bool) -> None:
        count = self.length(field, 4)
        if count == -1 and nullable:
            return
        if not 0 <= count <= self.end - self.at:
            raise Malformed(f"{count} elements in {self.end - self.at} bytes")
        for index in range(count):
            here = f"{path}[{index}]"
            self.field, self.field_at = here, self.at
            if field.struct is not None:
                self.struct(field.struct, here)
            elif element in FIXED:
                self.skip(FIXED[element].size)
            else:
                self.text(field, False)

    def text(self, field: Field, nullable: bool) -> None:
        is_text = field.wire_type.removeprefix("[]") == "string"
        length = self.length(field, 2 if is_text else 4)
        if length == -1 and nullable:
            return
        start = self.at
        self.skip(length)
        if is_text:
            str(self.data[start : self.at], "utf-8")

    def length(self, field: Field, width: int) -> int:
        if self.flexible and not field.never_compact:
            length, self.at = read_uvarint(self.data, self.at)
            return length - 1
        (length,) = FIXED["int16" if width == 2 else "int32"].unpack_from(self.data, self.at)
        self.at += width
        return int(length)

    def null(self, in_tag: bool) -> bool:
        (present,) = FIXED["int8"].unpack_from(self.data, self.at)
        self.at += 1
        return bool(present == 0 if in_tag else present < 0)

    def tags(self, kind: type[Struct], path: str) -> None:
        self.field, self.field_at = _join(path, "tagged fields"), self.at
        known = {field.tag: field for field in kind.FIELDS if within(self.version, field.tagged)}
        count, self.at = read_uvarint(self.data, self.at)
        if count > MAX_TAGS or count * 2 > self.end - self.at:
            raise Malformed(f"{count} tagged fields in {self.end - self.at} bytes")
        last = -1
        for _ in range(count):
            self.field, self.field_at = _join(path, "tagged fields"), self.at
            tag, self.at = read_uvarint(self.data, self.at)
            if tag <= last:
                raise Malformed(f"tag {tag} behind tag {last}")
            size, self.at = read_uvarint(self.data, self.at)
            self.tag(known.get(tag), size, _join(path, f"tag {tag}"))
            last = tag

    def tag(self, field: Field | None, size: int, path: str) -> None:
        self.field, self.field_at = path, self.at
        behind, outer = self.at + size, self.end
        if behind > outer:
            raise Malformed(f"{size} bytes where {outer - self.at} are left")
        if field is not None:
            self.end = behind
            self.value(field, path.removesuffix(f"tag {field.tag}") + field.name, in_tag=True)
            if self.at != behind:
                raise Malformed(f"{behind - self.at} bytes behind the value")
        self.at, self.end = behind, outer

    def skip(self, size: int) -> None:
        if not 0 <= size <= self.end - self.at:
            raise Malformed(f"{size} bytes where {self.end - self.at} are left")
        self.at += size


def encode_failure(message: Message, version: int) -> tuple[str, str]:
    """The path of the first field that cannot be written in this version, and why."""
    return _unwritable(message, type(message), version, _flexible(type(message), version), "") or ("", "")


def _unwritable(
    value: object, kind: type[Struct], version: int, flexible: bool, path: str
) -> tuple[str, str] | None:
    if not isinstance(value, kind):
        return path, f"{value!r} is no {kind.__name__}"
    blank = kind()
    for field in kind.FIELDS:
        here, held = _join(path, field.name), getattr(value, field.name)
        if not within(version, field.versions):
            if not field.ignorable and held != getattr(blank, field.name):
                return here, f"version {version} does not have it, and {held!r} is not its default"
        elif found := _bad_value(held, field, version, flexible, here):
            return found
    tags = value.unknown_tags
    if tags and not flexible:
        return _join(path, "unknown_tags"), f"version {version} has no tagged fields"
    known = {field.tag for field in kind.FIELDS if within(version, field.tagged)}
    if tags and (bad := [tag for tag in tags if tag in known or not 0 <= tag < 2**31]):
        return _join(path, "unknown_tags"), f"{bad[0]} is a known tag or none at all"
    return None


def _bad_value(value: Any, field: Field, version: int, flexible: bool, path: str) -> tuple[str, str] | None:
    if value is None:
        lazy = field.struct is not None and field.tagged is not None and not field.wire_type.startswith("[]")
        fine = within(version, field.nullable) or lazy
        return None if fine else (path, f"version {version} has no null here")
    if not field.wire_type.startswith("[]"):
        return _bad_element(value, field.wire_type, field, version, flexible, path)
    if not isinstance(value, list | tuple):
        return path, f"{value!r} is no list"
    for index, one in enumerate(value):
        if found := _bad_element(one, field.wire_type[2:], field, version, flexible, f"{path}[{index}]"):
            return found
    return None


def _bad_element(
    value: Any, type_: str, field: Field, version: int, flexible: bool, path: str
) -> tuple[str, str] | None:
    if field.struct is not None:
        return _unwritable(value, field.struct, version, flexible, path)
    try:
        if type_ in FIXED:
            FIXED[type_].pack(value)
        elif type_ == "string" and len(value.encode()) > MAX_STRING_BYTES:
            return path, f"longer than {MAX_STRING_BYTES} bytes"
        elif type_ in ("bytes", "records"):
            memoryview(value)
    except Exception as error:  # noqa: BLE001 – whatever packing this value raises is the answer
        return path, f"{value!r} is no {type_}: {error}"
    if type_ == "uuid" and len(value) != 16:
        return path, f"{value!r} is no {type_}"
    return None


def _flexible(kind: type[Message], version: int) -> bool:
    return kind.FLEXIBLE_SINCE is not None and version >= kind.FLEXIBLE_SINCE


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
