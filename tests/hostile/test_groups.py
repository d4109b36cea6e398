"""Assignments of partitions that do not exist, by the member that leads a group or by its coordinator."""

from __future__ import annotations

import pytest

from tests.hostile.bounded import run_bounded
from tests.hostile.groups import CLOSE_SECONDS, POLL_SECONDS

ASSIGNED = "tests.hostile.groups:assigned_without_end"
SLACK = 1.0


@pytest.mark.parametrize(
    ("protocol", "count", "error"),
    [
        ("classic", 5_000_000, "has more than 100,000 entries"),
        ("classic", 250_000, "249,998 of its 250,000 partitions do not exist"),
        ("consumer", 2_100_000, "has more than 250,000 entries"),
        ("consumer", 500_000, None),
    ],
)
def test_millions_of_assigned_partitions_hold_up_neither_poll_nor_close(
    protocol: str, count: int, error: str | None
) -> None:
    outcome = run_bounded(ASSIGNED, protocol, count, error is not None, seconds=10, peak_mb=500)
    assert max(outcome.result["polls"]) < POLL_SECONDS + SLACK
    assert outcome.result["close"] < CLOSE_SECONDS + SLACK
    assert outcome.blocked < 1
    assert outcome.result["owned"] == 0
    found = outcome.result["errors"]
    assert found == [] if error is None else (len(found) == 1 and error in found[0]), found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_partitions_that_metadata_does_not_name_yet_are_taken_over(protocol: str) -> None:
    outcome = run_bounded(ASSIGNED, protocol, 500, False, seconds=10, peak_mb=200)
    assert outcome.result["owned"] == 500
    assert outcome.result["errors"] == []


def test_a_coordinator_cannot_hurry_heartbeats_beyond_the_retry_backoff() -> None:
    outcome = run_bounded("tests.hostile.groups:heartbeats_per_second", 1, seconds=20, peak_mb=200)
    assert outcome.result < 15


def test_a_name_that_no_topic_can_have_is_not_matched_against_a_pattern() -> None:
    outcome = run_bounded("tests.hostile.groups:pattern_against_a_long_name", 3_000, seconds=5, peak_mb=200)
    assert outcome.result["topics"] == ["eu-west-a-events"]
    assert outcome.blocked < 0.5
