"""A record with millions of headers: refused by its claim, before any of them is looked at."""

from __future__ import annotations

import pytest

from tests.hostile.batches import batch, record, with_headers
from tests.hostile.bounded import run_bounded
from tests.hostile.conftest import Serve

READING = "tests.hostile.reading"
BOMB = 20_000_000
SOUND = batch(record(b"sound"), 1)


@pytest.mark.spec("B.11.1", "H-26")
def test_a_record_of_20_million_headers_is_a_typed_error_that_says_how_to_continue(serve: Serve) -> None:
    servers = serve(SOUND + with_headers(BOMB) + SOUND)
    seen = run_bounded(f"{READING}:poll_and_go_past", servers, seconds=2, peak_mb=250).result
    assert (seen["offsets"], seen["after"]) == ([0], [2])
    assert seen["error"] == "TooManyHeadersError"
    assert (seen["topic"], seen["partition"], seen["offset"], seen["next_offset"]) == ("t", 0, 1, 2)
    assert (seen["count"], seen["limit"]) == (BOMB, 10_000)
    assert "Raise max_headers_per_record, or seek to offset 2" in seen["text"]


def test_spark_refuses_the_record_too_whether_or_not_headers_are_read(serve: Serve) -> None:
    servers = serve(SOUND + with_headers(BOMB))
    seen = run_bounded(f"{READING}:read_with_spark", servers, 2, seconds=2, peak_mb=250).result
    assert (seen["error"], seen["offset"]) == ("TooManyHeadersError", 1)


def test_many_records_with_as_many_headers_as_are_allowed_are_read_one_by_one(serve: Serve) -> None:
    most, records = 10_000, 400
    bomb = with_headers(most, records)
    assert len(bomb) < 5_000
    servers = serve(bomb)
    polled = run_bounded(f"{READING}:poll_columns", servers, records, seconds=5, peak_mb=150)
    assert polled.result == {"offsets": list(range(records))}
    assert polled.blocked < 0.5
    looked_at = run_bounded(f"{READING}:poll_values", servers, records, seconds=8, peak_mb=150)
    assert looked_at.result["headers"] == [most] * records
    columns = run_bounded(f"{READING}:read_with_spark", servers, records, seconds=5, peak_mb=200)
    assert columns.result["sizes"] == [0] * records
