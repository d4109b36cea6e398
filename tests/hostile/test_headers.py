"""A record with millions of headers: refused by its claim, before any of them is looked at."""

from __future__ import annotations

import pytest

from tests.hostile.batches import batch, record, with_headers
from tests.hostile.bounded import run_bounded

READING = "tests.hostile.reading"
BOMB = 20_000_000


@pytest.mark.spec("B.11.1", "H-26")
def test_a_record_of_20_million_headers_is_a_typed_error_that_says_how_to_go_on() -> None:
    seen = run_bounded(
        f"{READING}:poll_and_go_past",
        (batch(record(b"sound"), 1) + with_headers(BOMB) + batch(record(b"sound"), 1)).hex(),
        seconds=2,
        peak_mb=250,
    ).result
    assert (seen["offsets"], seen["after"]) == ([0], [2])
    assert seen["error"] == "TooManyHeadersError"
    assert (seen["topic"], seen["partition"], seen["offset"], seen["next_offset"]) == ("t", 0, 1, 2)
    assert (seen["count"], seen["limit"]) == (BOMB, 10_000)
    assert "Raise max_headers_per_record, or seek to offset 2" in seen["text"]


def test_spark_refuses_the_record_too_and_reads_no_headers_that_are_not_asked_for() -> None:
    sound = batch(record(b"sound"), 1)
    seen = run_bounded(
        f"{READING}:read_with_spark", (sound + with_headers(BOMB)).hex(), ["value"], 2, seconds=2, peak_mb=250
    ).result
    assert (seen["error"], seen["offset"]) == ("TooManyHeadersError", 1)


def test_many_records_with_as_many_headers_as_are_allowed_are_read_one_by_one() -> None:
    most, records = 10_000, 400
    bomb = with_headers(most, records)
    assert len(bomb) < 5_000
    polled = run_bounded(f"{READING}:poll_all", bomb.hex(), records, seconds=5, peak_mb=150)
    assert polled.result == {"offsets": list(range(records)), "headers": 0}
    assert polled.blocked < 0.5
    looked_at = run_bounded(f"{READING}:poll_all", bomb.hex(), records, True, seconds=5, peak_mb=150)
    assert looked_at.result["headers"] == most * records
    columns = run_bounded(
        f"{READING}:read_with_spark", bomb.hex(), ["value"], records, seconds=5, peak_mb=200
    )
    assert columns.result["offsets"] == list(range(records))
