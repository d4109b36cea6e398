"""Varints and CRCs against Java's."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from kclient.errors import CorruptBatchError
from kclient.records.batch import crc32c
from kclient.records.varint import VARINT_BITS, VARLONG_BITS, encode_signed, read_signed, read_unsigned

DATA = Path(__file__).parent / "data"


def facts(name: str) -> list[dict[str, Any]]:
    with gzip.open(DATA / name, "rt", encoding="ascii") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.spec("D-70", "D-72")
@pytest.mark.parametrize("fact", facts("varints.jsonl.gz"), ids=lambda fact: fact["case"])
def test_varints_are_those_of_java(fact: dict[str, Any]) -> None:
    for kind, bits in (("varint", VARINT_BITS), ("varlong", VARLONG_BITS)):
        if kind in fact:
            encoded = bytes.fromhex(fact[kind])
            assert encode_signed(fact["value"]) == encoded
            assert read_signed(b"\xff" + encoded + b"\xff", 1, bits) == (fact["value"], 1 + len(encoded))
    if "unsigned_varint" in fact:
        encoded = bytes.fromhex(fact["unsigned_varint"])
        assert read_unsigned(encoded, 0, VARINT_BITS) == (fact["value"], len(encoded))


@pytest.mark.spec("D-72", "H-04")
@pytest.mark.parametrize(
    ("encoded", "bits"),
    [
        (b"\xff\xff\xff\xff\x1f", 32),
        (b"\x80\x80\x80\x80\x80\x01", 32),
        (b"\xff" * 9 + b"\x02", 64),
        (b"\x80" * 10 + b"\x01", 64),
        (b"\x80" * 10_000, 64),
    ],
)
def test_too_many_bits_are_refused(encoded: bytes, bits: int) -> None:
    with pytest.raises(CorruptBatchError, match="bits"):
        read_unsigned(encoded, 0, bits)


@pytest.mark.spec("D-71")
@pytest.mark.parametrize("fact", facts("crc.jsonl.gz"), ids=lambda fact: fact["case"])
def test_crcs_are_those_of_java(fact: dict[str, Any]) -> None:
    data = bytes.fromhex(fact["data"])
    assert (crc32c(data), zlib.crc32(data)) == (fact["crc32c"], fact["crc32"])


@pytest.mark.spec("D-71")
def test_crc32c_of_the_check_string() -> None:
    assert crc32c(b"123456789") == 0xE3069283
