"""Many small batches in one fetch that hold far more together than may be in memory at once."""

from __future__ import annotations

import pytest

from tests.hostile.batches import MIB, large_values, minimal_records
from tests.hostile.bounded import run_bounded
from tests.hostile.conftest import Serve

COUNT, SIZE = 30, 100 * MIB
BUFFER_MB = 64
PEAK_MB = BUFFER_MB + 2 * SIZE // MIB + 150
READING = "tests.hostile.reading"


@pytest.mark.slow
@pytest.mark.spec("H-14")
@pytest.mark.parametrize("way", ["poll_values", "poll_arrow", "read_with_spark"])
def test_30_batches_of_100_mb_in_one_fetch_are_opened_one_after_the_other(serve: Serve, way: str) -> None:
    data = large_values(COUNT, SIZE)
    assert len(data) < 120_000
    seen = run_bounded(f"{READING}:{way}", serve(data), COUNT, seconds=30, peak_mb=PEAK_MB).result
    assert seen["sizes"] == [SIZE] * COUNT


@pytest.mark.slow
def test_ingest_lands_30_batches_of_100_mb_one_after_the_other(serve: Serve) -> None:
    servers = serve(large_values(COUNT, SIZE))
    seen = run_bounded(f"{READING}:ingest", servers, COUNT, seconds=60, peak_mb=PEAK_MB).result
    assert seen == {"rows": COUNT}


def test_a_poll_decodes_only_the_records_it_returns_of_half_a_million(serve: Serve) -> None:
    count = 500_000
    servers = serve(minimal_records(count))
    polled = run_bounded(f"{READING}:poll_columns_once", servers, seconds=2, peak_mb=100)
    assert polled.result == {"offsets": list(range(500))}
    assert polled.blocked < 0.2
