"""Brokers that announce long responses and do not send them."""

from __future__ import annotations

import pytest

from tests.hostile.bounded import run_bounded


@pytest.mark.parametrize("sent", [0, 2_097_152])
def test_what_is_only_announced_takes_no_memory(sent: int) -> None:
    outcome = run_bounded(
        "tests.hostile.brokers:announced_frames", 60, 100_000_000, sent, seconds=4, peak_mb=300
    )
    assert outcome.result == {"PortClosedError": 60}
    assert outcome.blocked < 1
