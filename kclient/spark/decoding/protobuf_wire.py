"""Protobuf's encoding: a message is tags, each the number of a field and the kind of its value, with the values."""

from __future__ import annotations

import attrs

VARINT, FIXED64, LENGTH, GROUP, GROUP_END, FIXED32 = range(6)


@attrs.frozen
class Damaged(Exception):
    """Raised if the bytes are not a message."""


def width(kind: int) -> int:
    """Return the bytes of a value of fixed length. Raises Damaged for another kind."""
    if kind == FIXED64:
        return 8
    if kind == FIXED32:
        return 4
    raise Damaged


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number, and where it ends. Raises Damaged."""
    number, shift = 0, 0
    try:
        while (byte := data[at]) >= 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
            at += 1
            if shift > 63:
                raise Damaged
    except IndexError:
        raise Damaged from None
    return number | byte << shift, at + 1


def by_number(data: bytes) -> dict[int, bytes]:
    """Return the bytes of each field of a message, tags included, all that have one number together.

    `data` is whole, as protobuf's library has written it.
    """
    found: dict[int, bytearray] = {}
    at = 0
    while at < len(data):
        tag, end = varint(data, at)
        end = _end_of(data, end, tag & 7)
        found.setdefault(tag >> 3, bytearray()).extend(data[at:end])
        at = end
    return {number: bytes(each) for number, each in found.items()}


def _end_of(data: bytes, at: int, kind: int) -> int:
    """Return where a value ends."""
    if kind == VARINT:
        return varint(data, at)[1]
    if kind == LENGTH:
        size, at = varint(data, at)
        return at + size
    if kind != GROUP:
        return at + width(kind)
    while True:
        tag, at = varint(data, at)
        if tag & 7 == GROUP_END:
            return at
        at = _end_of(data, at, tag & 7)
