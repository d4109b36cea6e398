"""How many elements a JSON document would make, counted in its text before it is read.

struct<legs: array<struct<to, by>>>     {"legs": [{}, null, {"to": "IAH"}], "other": [1, 2]}
                                                  3   3     3                no column
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import pyarrow as pa

from kclient.spark.decoding.elements import widest_item, width

TOKEN: Final = re.compile(rb'"[^"]*"?|[\[\]{},:]')
IS_EMPTY: Final = re.compile(rb"[ \t\r\n]*\]")
SHORTEST_ITEM: Final = 2  # with its comma
QUOTE: Final = ord('"')


class _Shape(NamedTuple):
    """What a type says of the documents: the fields of an object, or the items of an array and how much one makes."""

    fields: Mapping[bytes, _Shape] | None = None
    item: _Shape | None = None
    elements: int = 0


OTHER: Final = _Shape()
"""A scalar, or what makes no column."""


def longest_harmless(kind: pa.DataType, limit: int) -> int | None:
    """A text of so many bytes cannot hold too many elements, whatever it says; None where no text can."""
    widest = widest_item(kind)
    return limit * SHORTEST_ITEM // widest if widest else None


def has_more(text: bytes, kind: pa.DataType, limit: int) -> bool:
    """Whether the document would make more than `limit` elements. What is no JSON is counted as far as it goes."""
    structs, others = text.count(b"{") + text.count(b"null"), text.count(b",") + text.count(b"[")
    if structs * widest_item(kind) + others <= limit:
        return False  # as almost always: counting token by token takes ten times as long as the parser
    text = text.replace(rb"\\", rb"\u005c").replace(
        rb"\"", rb"\u0022"
    )  # so that a string ends at the next quote
    left, expected, name = limit, _shape(kind), b""
    opened, around = OTHER, [OTHER]
    for match in TOKEN.finditer(text):
        token = match[0]
        if token[0] == QUOTE:
            name = token
        elif token == b":":
            expected = opened.fields.get(_plain(name), OTHER) if opened.fields else OTHER
        elif token == b",":
            left -= opened.elements
            expected = opened.item or OTHER
        elif token == b"{":
            around.append(opened)
            opened = expected if expected.fields is not None else OTHER
        elif token == b"[":
            around.append(opened)
            opened = expected if expected.item is not None else OTHER
            expected = opened.item or OTHER
            left -= opened.elements if not IS_EMPTY.match(text, match.end()) else 0
        elif len(around) > 1:
            opened = around.pop()
        if left < 0:
            return True
    return False


@functools.lru_cache(maxsize=256)
def _shape(kind: pa.DataType) -> _Shape:
    if pa.types.is_struct(kind):
        return _Shape(fields={field.name.encode(): _shape(field.type) for field in kind})
    if pa.types.is_list(kind):
        return _Shape(item=_shape(kind.value_type), elements=width(kind.value_type))
    return OTHER


def _plain(name: bytes) -> bytes:
    if b"\\" not in name:
        return name[1:-1]
    try:
        return str(json.loads(name)).encode()
    except ValueError:  # half of a pair is no name
        return b""
