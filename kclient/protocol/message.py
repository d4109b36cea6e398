"""Base classes of the generated messages, and the field descriptions that JSON and error texts use."""

from __future__ import annotations

from struct import Struct as Binary
from typing import ClassVar

from attrs import define, field, frozen

Interval = tuple[int, int]

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


def hidden(value: object) -> str:
    """Return the text that the repr of a message shows for a sensitive field."""
    return "***"


@frozen
class Field:
    """One field of the schema. `tagged` are the versions in which it is a tagged field."""

    name: str
    json_name: str
    wire_type: str  # int32, string, []PartitionData …
    versions: Interval
    nullable: Interval | None = None
    tagged: Interval | None = None
    tag: int | None = None
    struct: type[Struct] | None = None
    ignorable: bool = False
    never_compact: bool = False

    @property
    def is_array(self) -> bool:
        return self.wire_type.startswith("[]")

    @property
    def element(self) -> str:
        """The type without the array's brackets."""
        return self.wire_type.removeprefix("[]")

    @property
    def none_is_default(self) -> bool:
        """Whether None stands for a struct with default values, which is not written: a tagged, non-nullable struct."""
        plain = self.struct is not None and not self.is_array and self.nullable is None
        return plain and self.tagged == self.versions


@frozen
class Entry:
    """One message in the index of all messages."""

    module: str
    type: str  # request, response, header, data, coordinator-key, coordinator-value
    api_key: int | None
    lowest: int
    highest: int
    flexible_since: int | None


@define(weakref_slot=False)
class Struct:
    """A group of fields. `FIELDS` is in wire order; tagged fields are at their place in the schema.

    `unknown_tags` are the tagged fields that the schema does not know, as (tag, bytes): kept when read, written back.
    """

    FIELDS: ClassVar[tuple[Field, ...]] = ()

    unknown_tags: tuple[tuple[int, bytes], ...] = field(default=(), kw_only=True)


@define(weakref_slot=False)
class Message(Struct):
    """A top-level struct: a request, a response, a header, a record's key or value."""

    NAME: ClassVar[str]
    TYPE: ClassVar[str]
    API_KEY: ClassVar[int | None]
    VERSIONS: ClassVar[Interval]
    FLEXIBLE_SINCE: ClassVar[int | None]

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        """Whether this version has compact lengths and tagged fields."""
        return cls.FLEXIBLE_SINCE is not None and version >= cls.FLEXIBLE_SINCE


def within(version: int, interval: Interval | None) -> bool:
    """Return whether the interval contains the version; None contains no version."""
    return interval is not None and interval[0] <= version <= interval[1]
