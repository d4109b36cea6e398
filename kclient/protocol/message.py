"""What generated classes have in common, and what JSON and error messages need to know of their fields."""

from __future__ import annotations

from typing import ClassVar

from attrs import define, field, frozen

Interval = tuple[int, int]


@frozen
class Field:
    """One field as the schema has it. `tagged` are the versions in which it is a tagged field."""

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
    """A group of fields. `FIELDS` is in wire order; tagged fields stand where the schema has them.

    `unknown_tags` are the tagged fields that the schema does not know: kept when read, written back.
    """

    FIELDS: ClassVar[tuple[Field, ...]] = ()

    unknown_tags: dict[int, bytes] | None = field(default=None, kw_only=True)


@define(weakref_slot=False)
class Message(Struct):
    """A struct that stands by itself: a request, a response, a header, a record's key or value."""

    NAME: ClassVar[str]
    TYPE: ClassVar[str]
    API_KEY: ClassVar[int | None]
    VERSIONS: ClassVar[Interval]
    FLEXIBLE_SINCE: ClassVar[int | None]


def within(version: int, interval: Interval | None) -> bool:
    """Whether the interval holds the version; no interval holds none."""
    return interval is not None and interval[0] <= version <= interval[1]
