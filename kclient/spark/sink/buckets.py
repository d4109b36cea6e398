"""The bucket of a value, as Iceberg's specification counts it: murmur3 in 32 bits, seed 0. Pure, without pyiceberg.

A whole number, the days of a date and the microseconds of a time are hashed as 8 bytes, whatever their width; a text as
its UTF-8. Iceberg's Appendix B has values to check against.
"""

from __future__ import annotations

import struct
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_BITS: Final = 0xFFFF_FFFF
_C1: Final = 0xCC9E_2D51
_C2: Final = 0x1B87_3593


def buckets_of(values: pa.Array, count: int) -> pa.Array:
    """Return the bucket of each value, null for null. Each different value is hashed once."""
    encoded = values.dictionary_encode()
    found = [(murmur3(data) & 0x7FFF_FFFF) % count for data in _bytes_of(encoded.dictionary)]
    return pa.array(found, pa.int32()).take(encoded.indices)


def _bytes_of(values: pa.Array) -> list[bytes]:
    if pa.types.is_string(values.type):
        return [str(value).encode() for value in values.to_pylist()]
    if pa.types.is_binary(values.type):
        return list(values.to_pylist())
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us"))
    number = pc.cast(values, pa.int32()) if pa.types.is_date32(values.type) else values
    return [struct.pack("<q", value) for value in number.cast(pa.int64()).to_pylist()]


def murmur3(data: bytes) -> int:
    """Return the hash of bytes, without a sign."""
    whole = len(data) & ~3
    found = 0
    for (block,) in struct.iter_unpack("<I", data[:whole]):
        found ^= _mixed(block)
        found = ((found << 13 | found >> 19) * 5 + 0xE654_6B64) & _BITS
    found ^= _mixed(int.from_bytes(data[whole:], "little")) ^ len(data)
    found = (found ^ found >> 16) * 0x85EB_CA6B & _BITS
    found = (found ^ found >> 13) * 0xC2B2_AE35 & _BITS
    return found ^ found >> 16


def _mixed(block: int) -> int:
    block = block * _C1 & _BITS
    return (block << 15 | block >> 17) * _C2 & _BITS
