"""ListGroupsRequest, versions 0–5: its classes, and one read and write pair per layout.

Generated from schemas/ListGroupsRequest.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import Factory, define

from kclient.protocol.message import Field, Message
from kclient.protocol.primitives import (
    Add,
    Buffer,
    Codec,
    Malformed,
    Unwritable,
    compact_length,
    compact_string_length,
    left_over,
    new,
    read_compact_strings,
    read_tags,
    read_uvarint,
    write_tags,
)


@define(weakref_slot=False)
class ListGroupsRequest(Message):
    """Asks one broker for the groups it coordinates; the whole cluster's list is the union over all brokers.

    Attributes:
        states_filter: States wanted, for instance Stable or Empty; empty for all.
        types_filter: Types wanted: classic, consumer, share or streams; empty for all.
    """

    NAME: ClassVar[str] = "ListGroupsRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 16
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE_SINCE: ClassVar[int | None] = 3

    states_filter: list[str] = Factory(list)
    types_filter: list[str] = Factory(list)


# ListGroupsRequest in versions 0–2
def read_v0(data: Buffer, at: int, size: int) -> tuple[ListGroupsRequest, int]:
    message = new(ListGroupsRequest)
    message.states_filter = []
    message.types_filter = []
    message.unknown_tags = ()
    return message, at


def write_v0(message: ListGroupsRequest, add: Add) -> None:
    if message.states_filter != []:
        raise Unwritable("states_filter")
    if message.types_filter != []:
        raise Unwritable("types_filter")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")


# ListGroupsRequest in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[ListGroupsRequest, int]:
    message = new(ListGroupsRequest)
    message.states_filter = []
    message.types_filter = []
    message.unknown_tags = ()
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v3(message: ListGroupsRequest, add: Add) -> None:
    if message.states_filter != []:
        raise Unwritable("states_filter")
    if message.types_filter != []:
        raise Unwritable("types_filter")
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ListGroupsRequest in version 4
def read_v4(data: Buffer, at: int, size: int) -> tuple[ListGroupsRequest, int]:
    message = new(ListGroupsRequest)
    message.types_filter = []
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("states_filter")
    message.states_filter, at = read_compact_strings(count, data, at, size)
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v4(message: ListGroupsRequest, add: Add) -> None:
    if message.types_filter != []:
        raise Unwritable("types_filter")
    states_filter = message.states_filter
    add(compact_length[len(states_filter)])
    for states_filter_item in states_filter:
        states_filter_item_bytes = states_filter_item.encode()
        add(compact_string_length[len(states_filter_item_bytes)])
        add(states_filter_item_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ListGroupsRequest in version 5
def read_v5(data: Buffer, at: int, size: int) -> tuple[ListGroupsRequest, int]:
    message = new(ListGroupsRequest)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("states_filter")
    message.states_filter, at = read_compact_strings(count, data, at, size)
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("types_filter")
    message.types_filter, at = read_compact_strings(count, data, at, size)
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v5(message: ListGroupsRequest, add: Add) -> None:
    states_filter = message.states_filter
    add(compact_length[len(states_filter)])
    for states_filter_item in states_filter:
        states_filter_item_bytes = states_filter_item.encode()
        add(compact_string_length[len(states_filter_item_bytes)])
        add(states_filter_item_bytes)
    types_filter = message.types_filter
    add(compact_length[len(types_filter)])
    for types_filter_item in types_filter:
        types_filter_item_bytes = types_filter_item.encode()
        add(compact_string_length[len(types_filter_item_bytes)])
        add(types_filter_item_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ListGroupsRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v0, write_v0),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
    5: (read_v5, write_v5),
}

# what JSON and error messages know of the fields
ListGroupsRequest.FIELDS = (
    Field("states_filter", "statesFilter", "[]string", (4, 5)),
    Field("types_filter", "typesFilter", "[]string", (5, 5)),
)
