"""What a chunk takes in its batches, uncompressed: for the metrics of bytes consumed."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.records.compression import Compression
from kclient.records.reader import PartitionReader
from kclient.records.writer import NewRecord, build_batch

SMALL = 8  # a record with one byte of a value: seven bytes are around it


def batch(count: int, value: bytes = b"v", base: int = 0, **options: Any) -> bytes:
    records = [NewRecord(None, value, 1000, offset=base + number) for number in range(count)]
    return build_batch(records, base_offset=base, **options)


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_a_record_takes_what_java_says_however_it_is_compressed(codec: str) -> None:
    reader = PartitionReader("t", 0, batch(5, b"x" * 100, compression=Compression[codec.upper()]), 0)
    assert reader.take(5).size_bytes == 5 * 109


def test_pieces_of_a_batch_and_of_several_add_up() -> None:
    reader = PartitionReader("t", 0, batch(5) + batch(5, base=5), 0)
    assert [reader.take(count).size_bytes for count in (2, 4, 4)] == [2 * SMALL, 4 * SMALL, 4 * SMALL]


def test_records_below_the_position_are_not_consumed() -> None:
    assert PartitionReader("t", 0, batch(10), 6).take(10).size_bytes == 4 * SMALL


def test_a_failing_deserializer_splits_the_bytes_with_the_records() -> None:
    def decode(topic: str, headers: Any, data: bytes) -> bytes:
        nonlocal failing
        if failing and data == b"v" and reader.next_offset == 0:
            failing -= 1
            if not failing:
                raise ValueError("no")
        return data

    failing = 4
    reader = PartitionReader("t", 0, batch(10), 0, value_deserializer=decode)
    sizes = [reader.take(10).size_bytes for _ in range(2)]
    assert sizes == [3 * SMALL, 7 * SMALL]
