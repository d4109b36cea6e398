"""Compressed batches that are far larger after decompression than their size suggests."""

from __future__ import annotations

import pytest

from kclient.records.compression import Compression
from tests.hostile.batches import MIB, compressed_marker, tiny_frames
from tests.hostile.bounded import run_bounded

CODECS = [codec for codec in Compression if codec is not Compression.NONE]


@pytest.mark.spec("H-14", "H-16")
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name.lower())
def test_8_mb_of_tiny_frames_are_a_corrupt_batch_within_a_second(codec: Compression) -> None:
    data = tiny_frames(codec, 8 * MIB).hex()
    seen = run_bounded("tests.hostile.reading:take", data, seconds=1, peak_mb=300).result
    assert seen["error"] == "CorruptBatchError"
    assert "more than" in seen["text"]


@pytest.mark.spec("H-17")
def test_a_marker_that_unpacks_to_100_mb_is_a_corrupt_batch() -> None:
    data = compressed_marker(100 * MIB).hex()
    seen = run_bounded("tests.hostile.reading:take", data, "READ_COMMITTED", seconds=1, peak_mb=100).result
    assert seen["error"] == "CorruptBatchError"
    assert "the records of its marker take more than 65536 bytes" in seen["text"]
