"""Compressed batches that cost far more to unpack than their size tells."""

from __future__ import annotations

import pytest

from kclient.records.compression import Compression
from tests.hostile.batches import MIB, tiny_frames
from tests.hostile.bounded import run_bounded

CODECS = [codec for codec in Compression if codec is not Compression.NONE]


@pytest.mark.spec("H-14", "H-16")
@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name.lower())
def test_8_mb_of_tiny_frames_are_a_corrupt_batch_within_a_second(codec: Compression) -> None:
    data = tiny_frames(codec, 8 * MIB).hex()
    seen = run_bounded("tests.hostile.reading:take", data, seconds=1, peak_mb=300).result
    assert seen["error"] == "CorruptBatchError"
    assert "more than" in seen["text"]
