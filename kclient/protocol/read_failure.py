"""Finds the field at which decoding failed, in a second, slower pass over the same bytes.

The generated functions only report that decoding failed; tracking path and offset of every field would slow down
valid messages. So after a failure the bytes are walked once more with the classes' FIELDS, until the first invalid
field. The walk builds no objects. It takes ten times as long as decoding, so it ends after MOST_WALKED structs and
reports that the damage is there or later.
"""

from __future__ import annotations

from struct import error as struct_error
from typing import Final

from attrs import define

from kclient.errors import InternalError
from kclient.protocol.message import FIXED, Field, Message, Struct, within
from kclient.protocol.primitives import MAX_STRING_BYTES, MAX_TAG, MAX_TAGS, Buffer, Malformed, read_uvarint

MOST_WALKED: Final = 20_000


def read_failure(kind: type[Message], version: int, data: Buffer, offset: int) -> tuple[str, int, str]:
    """Return the path of the first field that cannot be decoded, its offset in `data`, and the reason."""
    walk = _Walk(version, kind.is_flexible(version), data, offset, len(data))
    try:
        walk.struct(kind, "")
    except Malformed as exc:
        return walk.field, walk.field_at, str(exc)
    except UnicodeDecodeError:
        return walk.field, walk.field_at, "is not UTF-8"
    except (IndexError, struct_error):
        return walk.field, walk.field_at, "the data ends in it"
    raise InternalError(f"{kind.NAME} version {version} cannot be decoded, but all of its fields are valid")


@define
class _Walk:
    """A walk over bytes; `field` and `field_at` are the current position."""

    version: int
    flexible: bool
    data: Buffer
    at: int
    end: int
    field: str = ""
    field_at: int = 0
    walked: int = 0

    def struct(self, kind: type[Struct], path: str) -> None:
        self.walked += 1
        if self.walked > MOST_WALKED:
            raise Malformed("the damage is here or further on")
        for field in kind.FIELDS:
            if within(self.version, field.versions) and not within(self.version, field.tagged):
                self.value(field, _join(path, field.name))
        if self.flexible:
            self.tags(kind, path)

    def value(self, field: Field, path: str, in_tag: bool = False) -> None:
        self.field, self.field_at = path, self.at
        nullable = within(self.version, field.nullable)
        if field.is_array:
            self.array(field, path, nullable)
        elif field.struct is not None:
            if not (nullable and self.null(in_tag)):
                self.struct(field.struct, path)
        elif field.wire_type in FIXED:
            self.skip(FIXED[field.wire_type].size)
        else:
            self.text(field, nullable)

    def array(self, field: Field, path: str, nullable: bool) -> None:
        count = self.length(field, 4)
        if count == -1 and nullable:
            return
        if not 0 <= count <= self.end - self.at:
            raise Malformed(f"{count} elements in {self.end - self.at} bytes")
        if field.element in FIXED:
            self.numbers(count, FIXED[field.element].size, path)
            return
        for index in range(count):
            here = f"{path}[{index}]"
            self.field, self.field_at = here, self.at
            if field.struct is not None:
                self.struct(field.struct, here)
            else:
                self.text(field, False)

    def numbers(self, count: int, size: int, path: str) -> None:
        whole = min(count, (self.end - self.at) // size)
        self.skip(whole * size)
        if whole < count:
            self.field, self.field_at = f"{path}[{whole}]", self.at
            self.skip(size)

    def text(self, field: Field, nullable: bool) -> None:
        is_text = field.element == "string"
        length = self.length(field, 2 if is_text else 4)
        if length == -1 and nullable:
            return
        if is_text and length > MAX_STRING_BYTES:
            raise Malformed(f"a string of {length} bytes")
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
            if not last < tag <= MAX_TAG:
                raise Malformed(f"tag {tag} after tag {last}")
            size, self.at = read_uvarint(self.data, self.at)
            self.tag(known.get(tag), size, _join(path, f"tag {tag}"))
            last = tag

    def tag(self, field: Field | None, size: int, path: str) -> None:
        self.field, self.field_at = path, self.at
        tag_end, outer_end = self.at + size, self.end
        if tag_end > outer_end:
            raise Malformed(f"{size} bytes where {outer_end - self.at} are left")
        if field is not None:
            self.end = tag_end
            self.value(field, path.removesuffix(f"tag {field.tag}") + field.name, in_tag=True)
            if self.at != tag_end:
                raise Malformed(f"{tag_end - self.at} bytes after the value")
        self.at, self.end = tag_end, outer_end

    def skip(self, size: int) -> None:
        if not 0 <= size <= self.end - self.at:
            raise Malformed(f"{size} bytes where {self.end - self.at} are left")
        self.at += size


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
