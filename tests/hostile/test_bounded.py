"""The harness itself: what it returns, and each limit broken."""

from __future__ import annotations

import pytest

from tests.hostile.bounded import run_bounded

SAMPLES = "tests.hostile.harness_samples"


def test_the_result_of_the_function_comes_back() -> None:
    assert run_bounded(f"{SAMPLES}:add", 2, 3, seconds=5, peak_mb=200).result == 5


@pytest.mark.parametrize("function", ["compute", "wait"])
def test_time_above_the_limit_fails(function: str) -> None:
    with pytest.raises(AssertionError, match=r"took \d.\d\d s, not 0.1 s"):
        run_bounded(f"{SAMPLES}:{function}", 0.5, seconds=0.1, peak_mb=200)


def test_memory_above_the_limit_fails() -> None:
    with pytest.raises(AssertionError, match=r"took \d+ MB, not 150 MB"):
        run_bounded(f"{SAMPLES}:fill", 200, seconds=20, peak_mb=150)


def test_a_runaway_ends_in_a_memory_error() -> None:
    with pytest.raises(AssertionError, match="MemoryError"):
        run_bounded(f"{SAMPLES}:fill", 2000, seconds=20, peak_mb=150, address_space_mb=1000)


def test_a_blocked_loop_shows() -> None:
    outcome = run_bounded(f"{SAMPLES}:block_the_loop", 0.4, seconds=20, peak_mb=200)
    assert outcome.result == "done"
    assert outcome.blocked >= 0.3
