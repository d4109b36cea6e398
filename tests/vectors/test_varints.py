"""Varints at the edges of their widths, against Java's bytes, and what is refused."""

from __future__ import annotations

import pytest

from kclient.protocol.primitives import (
    Malformed,
    read_uvarint,
    read_varint,
    read_varlong,
    uvarint,
    varint,
    varlong,
)
from tests.vectors.cases import Case, vectors

KINDS = {
    "varlong": (read_varlong, varlong),
    "varint": (read_varint, varint),
    "unsigned_varint": (read_uvarint, uvarint),
}
CASES = vectors("varints")


@pytest.mark.spec("D-70", "D-72", "H-04")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_java_varints_in_both_directions(case: Case) -> None:
    for kind, (read, write) in KINDS.items():
        if kind in case:
            data = bytes.fromhex(case[kind])
            assert read(b"?" + data + b"?", 1) == (case["value"], 1 + len(data))
            assert write(case["value"]) == data


@pytest.mark.spec("D-72", "H-04")
@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("unsigned_varint", b"\xff" * 5 + b"\x01"),  # a sixth byte
        ("unsigned_varint", b"\xff\xff\xff\xff\x1f"),  # 33 bits
        ("varint", b"\x80" * 5 + b"\x00"),
        ("varlong", b"\xff" * 10 + b"\x01"),  # an eleventh byte
        ("varlong", b"\xff" * 9 + b"\x02"),  # 65 bits
    ],
)
def test_a_varint_longer_than_its_type_is_refused(kind: str, data: bytes) -> None:
    with pytest.raises(Malformed):
        KINDS[kind][0](data, 0)


@pytest.mark.spec("H-04")
def test_a_varint_that_wastes_bytes_is_read_as_java_reads_it() -> None:
    assert read_uvarint(b"\x80\x00", 0) == (0, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_varint_is_refused(kind: str) -> None:
    with pytest.raises(IndexError):
        KINDS[kind][0](b"\x80\x80", 0)
