"""Finds the field at which encoding failed, in a second, slower pass over the same objects.

As in `read_failure`, the generated functions only report that encoding failed. The reason never contains values of
the message, because some of them are secrets or users' data.
"""

from __future__ import annotations

from struct import error as struct_error
from typing import Any

from attrs import frozen

from kclient.protocol.message import FIXED, Field, Message, Struct, within
from kclient.protocol.primitives import BYTES, MAX_STRING_BYTES, MAX_TAG


def write_failure(message: Message, version: int) -> tuple[str, str]:
    """Return the path of the first field that cannot be encoded in this version, and the reason; empty if all fit."""
    check = _Check(version, message.is_flexible(version))
    return check.struct(message, type(message), "") or ("", "")


Found = tuple[str, str] | None


@frozen
class _Check:
    """A walk over objects in one version; every method returns the first invalid field."""

    version: int
    flexible: bool

    def struct(self, value: object, kind: type[Struct], path: str) -> Found:
        if not isinstance(value, kind):
            return path, f"{type(value).__name__} instead of {kind.__name__}"
        blank = kind()
        for field in kind.FIELDS:
            here, held = _join(path, field.name), getattr(value, field.name)
            if within(self.version, field.versions):
                found = self.value(held, field, here)
            else:
                found = self.absent(held, getattr(blank, field.name), field, here)
            if found:
                return found
        return self.tags(value, kind, _join(path, "unknown_tags"))

    def absent(self, held: Any, default: Any, field: Field, path: str) -> Found:
        if field.ignorable or held == default:
            return None
        return path, f"version {self.version} does not have it, and it is not at its default"

    def value(self, held: Any, field: Field, path: str) -> Found:
        if held is None:
            fine = within(self.version, field.nullable) or field.none_is_default
            return None if fine else (path, f"version {self.version} has no null here")
        if not field.is_array:
            return self.element(held, field, path)
        if not isinstance(held, list | tuple):
            return path, f"{type(held).__name__} instead of a list"
        for index, one in enumerate(held):
            if found := self.element(one, field, f"{path}[{index}]"):
                return found
        return None

    def element(self, one: Any, field: Field, path: str) -> Found:
        if field.struct is not None:
            return self.struct(one, field.struct, path)
        return None if fits(one, field.element) else (path, unfit(one, field.element))

    def tags(self, value: Struct, kind: type[Struct], path: str) -> Found:
        tags: Any = value.unknown_tags  # may have any type
        if tags and not self.flexible:
            return path, f"version {self.version} has no tagged fields"
        known = {field.tag for field in kind.FIELDS if within(self.version, field.tagged)}
        for tag, data in tags:
            if not isinstance(tag, int) or tag in known or not 0 <= tag <= MAX_TAG:
                return path, f"tag {tag} is a field of the schema, there twice or no tag at all"
            if not isinstance(data, BYTES):
                return path, f"tag {tag} holds {type(data).__name__} instead of bytes"
            known.add(tag)
        return None


def fits(one: Any, kind: str) -> bool:
    """Return whether a value can be encoded as this wire type, which is not an array or a struct."""
    try:
        if kind == "string":
            return len(one.encode()) <= MAX_STRING_BYTES
        if kind == "uuid":
            return len(memoryview(one)) == 16
        if kind == "bool":
            return isinstance(one, int)
        if kind in FIXED:
            return bool(FIXED[kind].pack(one))
        return isinstance(one, BYTES) and len(one) < 2**31
    except (struct_error, TypeError, ValueError, AttributeError):
        return False


def unfit(one: object, kind: str) -> str:
    """Describe a value that does not fit; only the type of strings and bytes is shown."""
    shown = one if isinstance(one, int | float) else f"this {type(one).__name__}"
    return f"{shown} does not fit {kind}"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
