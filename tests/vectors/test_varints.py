"""Unsigned varints at the edges of their width, against Java's bytes, and what is refused."""

from __future__ import annotations

import pytest

from kclient.protocol.primitives import Malformed, read_uvarint, uvarint
from tests.vectors.cases import Case, vectors

CASES = [case for case in vectors("varints") if "unsigned_varint" in case]


@pytest.mark.spec("D-70", "D-72", "H-04")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_java_varints_in_both_directions(case: Case) -> None:
    data = bytes.fromhex(case["unsigned_varint"])
    assert read_uvarint(b"?" + data + b"?", 1) == (case["value"], 1 + len(data))
    assert uvarint(case["value"]) == data


@pytest.mark.spec("D-72", "H-04")
@pytest.mark.parametrize("data", [b"\xff" * 5 + b"\x01", b"\x80" * 5 + b"\x00", b"\xff\xff\xff\xff\x1f"])
def test_a_varint_of_six_bytes_or_33_bits_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        read_uvarint(data, 0)


@pytest.mark.spec("H-04")
def test_a_varint_that_wastes_bytes_is_read_as_java_reads_it() -> None:
    assert read_uvarint(b"\x80\x00", 0) == (0, 2)


def test_a_cut_varint_is_refused() -> None:
    with pytest.raises(IndexError):
        read_uvarint(b"\x80\x80", 0)
