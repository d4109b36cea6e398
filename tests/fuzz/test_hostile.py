"""Malicious bytes: counts and lengths that lie, varints without end, and valid messages that cost most memory.

The bounds are those of H-02: nothing is allocated for a count that the bytes left cannot hold, no allocation is
above 8 times the input and all of them together are not above 64 times.
"""

from __future__ import annotations

import struct
import tracemalloc

import pytest

from kclient.errors import ProtocolDecodeError
from kclient.protocol import decode, encode
from kclient.protocol.primitives import MAX_TAGS
from kclient.protocol.registry import MESSAGES, message_class
from tests.fuzz.strategies import crowded, pairs, specs

ELEMENTS = 500
SLACK = 20_000  # bytes that an error with its traceback, and the first import of a module, may take

HUGE_COUNTS = {
    "int32 2^31-1": struct.pack(">i", 2**31 - 1),
    "int32 -2": struct.pack(">i", -2),
    "varint 2^32-1": b"\xff\xff\xff\xff\x0f",
    "varint 2^31": b"\x80\x80\x80\x80\x08",
    "varint of 11 bytes": b"\xff" * 10 + b"\x01",
    "varint without end": b"\xff" * 64,
    "int16 32767": b"\x7f\xff",
    "int16 -2": b"\xff\xfe",
}


def peak_of(name: str, version: int, data: bytes | memoryview) -> tuple[int, bool]:
    """The most memory that decoding holds at once, and whether the bytes were a message."""
    message_class(name)
    tracemalloc.start()
    try:
        decode(name, version, data)
        whole = True
    except ProtocolDecodeError:
        whole = False
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak, whole


@pytest.mark.spec("H-02", "H-03", "H-04", "H-05")
@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_a_lying_length_at_any_place_allocates_nothing(name: str) -> None:
    """Every place of a message of zeros is replaced by each lie in turn, at its newest and its oldest version."""
    entry = MESSAGES[name]
    for version in sorted({entry.lowest, entry.highest}):
        for lie in HUGE_COUNTS.values():
            for place in range(24):
                data = bytes(place) + lie + bytes(64)
                peak, _ = peak_of(name, version, data)
                assert peak <= 64 * len(data) + SLACK, (version, lie, place)


@pytest.mark.spec("H-02")
@pytest.mark.parametrize(("name", "version"), pairs())
def test_the_costliest_message_of_its_size(name: str, version: int) -> None:
    """Each array in turn holds hundreds of smallest elements, and again with an unknown tag in each."""
    flexible = version in specs()[name].flexible
    for message in [
        *crowded(name, version, ELEMENTS),
        *(crowded(name, version, ELEMENTS, tag=100) if flexible else ()),
    ]:
        data = encode(message, version)
        peak, whole = peak_of(name, version, data)
        assert whole
        assert peak <= 64 * len(data) + SLACK, peak / len(data)


@pytest.mark.spec("H-02", "H-05")
@pytest.mark.parametrize(("name", "version"), [("FetchResponse", 12), ("HeartbeatResponse", 4)])
@pytest.mark.parametrize("size", [0, 1, 2])
def test_as_many_unknown_tags_as_there_may_be(name: str, version: int, size: int) -> None:
    tags = b"".join(varint(200 + number) + varint(size) + bytes(size) for number in range(MAX_TAGS))
    data = encode(message_class(name)(), version)[:-1] + varint(MAX_TAGS) + tags
    for buffer in (data, memoryview(data)):
        peak, whole = peak_of(name, version, buffer)
        assert whole
        assert peak <= 64 * len(data), peak / len(data)


@pytest.mark.spec("H-02")
def test_no_single_allocation_is_above_eight_times_the_input() -> None:
    """The largest block alive while ten thousand elements are read: the list of them."""
    elements = 20_000
    data = struct.pack(">i", elements) + bytes(3 * elements)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolDecodeError):
            decode("FetchResponse", 0, data)
        largest = max(trace.size for trace in tracemalloc.take_snapshot().traces)
    finally:
        tracemalloc.stop()
    assert largest <= 8 * len(data)


@pytest.mark.spec("H-05")
def test_a_tagged_field_that_nests_itself_ends() -> None:
    """Tags inside a tag are bytes to us: nesting is as deep as the schema, never as deep as the input."""
    inner = b"\x00"
    for _ in range(1000):
        inner = b"\x01" + varint(100) + varint(len(inner)) + inner
    decode("HeartbeatResponse", 4, bytes(6) + inner)


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))
