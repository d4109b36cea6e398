"""The order in which Java's HashMap goes through its keys.

Java's sticky assignors keep members in such maps. Where several members have a right to the partition that is one too
many, that order decides, so the same result as Java's needs the same order. It depends on the keys alone, but for
keys that fall into one bucket, which stay in the order in which they came.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

_SMALLEST_TABLE = 16


def string_hash(text: str) -> int:
    """Return `String.hashCode` as an unsigned number: base 31 over UTF-16 code units."""
    units = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for unit in struct.unpack(f">{len(units) // 2}H", units):
        found = (31 * found + unit) & 0xFFFF_FFFF
    return found


def in_map_order(keys: Iterable[str]) -> list[str]:
    """Return the keys, each once, in the order of a Java HashMap that they were put into."""
    unique = list(dict.fromkeys(keys))
    return sorted(unique, key=lambda key: bucket(string_hash(key), table_size(len(unique))))


def bucket(key_hash: int, table: int) -> int:
    """Return the bucket of a key in a table whose size is a power of two."""
    return (key_hash ^ key_hash >> 16) & (table - 1)


def table_size(entries: int) -> int:
    """Return the size of a table with so many entries: it doubles when more than three quarters are in use."""
    size = _SMALLEST_TABLE
    while entries > size * 3 // 4:
        size *= 2
    return size
