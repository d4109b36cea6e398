"""Which strategy a configuration asks for, and what it asks the broker."""

from __future__ import annotations

import pytest

from kclient.positions.state import EARLIEST, LATEST, ResetStrategy, reset_policy
from tests.positions.fake_cluster import config


@pytest.mark.spec("U-01", "E1")
def test_unset_means_latest_without_a_commit_and_an_error_for_a_lost_position() -> None:
    policy = reset_policy(config())
    assert policy.on_no_committed_offset == LATEST
    assert policy.on_offset_out_of_range is None


@pytest.mark.parametrize(
    ("value", "strategy"),
    [
        ("earliest", EARLIEST),
        ("latest", LATEST),
        ("none", None),
        ("by_duration:PT1H", ResetStrategy("by_duration", 3_600_000)),
    ],
)
@pytest.mark.spec("S0-41", "U-01")
def test_a_value_governs_both_questions(value: str, strategy: ResetStrategy | None) -> None:
    policy = reset_policy(config(auto_offset_reset=value))
    assert policy.on_no_committed_offset == strategy
    assert policy.on_offset_out_of_range == strategy


@pytest.mark.spec("S0-41", "S0-44", "B.8")
def test_timestamps_of_the_strategies() -> None:
    assert EARLIEST.timestamp(wall_ms=10_000) == -2
    assert LATEST.timestamp(wall_ms=10_000) == -1
    assert ResetStrategy("by_duration", 4_000).timestamp(wall_ms=10_000) == 6_000
    assert ResetStrategy("by_duration", 40_000).timestamp(wall_ms=10_000) == 0
