"""Zig-zag varints as records of format 2 use them: 7 bits a byte, lowest first, the sign in the lowest bit.

A varint has at most 5 bytes (32 bits), a varlong at most 10 (64 bits). Python's integers do not wrap, so both
sizes are checked here: bits beyond the width are an error. Zig-zag puts the sign into the lowest bit, so that small
negative numbers are short, too:

    value      0   −1    1   −2    2     200
    zig-zag    0    1    2    3    4     400 = 0b11_0010000
    bytes     00   01   02   03   04   90 03     7 low bits with 0x80, which means that another byte follows, then 3
"""

from __future__ import annotations

from kclient.errors import CorruptBatchError

VARINT_BITS = 32
VARLONG_BITS = 64


def read_unsigned(data: bytes, position: int, bits: int) -> tuple[int, int]:
    """Return the value before zig-zag decoding and the position after it.

    Raise CorruptBatchError if the value needs more than `bits` bits, IndexError if `data` ends within it.
    """
    value = 0
    for shift in range(0, bits, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> bits:
                break
            return value, position
    raise CorruptBatchError(f"a varint before byte {position} of its records has more than {bits} bits")


def read_signed(data: bytes, position: int, bits: int) -> tuple[int, int]:
    """Return the zig-zag decoded value and the position after it. Raise what `read_unsigned` raises."""
    value, position = read_unsigned(data, position, bits)
    return (value >> 1) ^ -(value & 1), position


def encode_signed(value: int) -> bytes:
    """Return the shortest zig-zag form of `value`, which the caller keeps within 64 bits."""
    rest = value << 1 if value >= 0 else (-value << 1) - 1
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)
