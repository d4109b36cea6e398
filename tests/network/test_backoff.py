"""The backoff formula, against values worked out manually."""

from __future__ import annotations

import random

import pytest

from kclient.network.backoff import Backoff


class Constant:
    """A random generator that always draws the same factor."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def uniform(self, a: float, b: float) -> float:
        assert (a, b) == (0.8, 1.2)
        return self.factor


@pytest.mark.spec("B.4.10")
def test_delays_double_up_to_the_maximum() -> None:
    backoff = Backoff(100, 1000, Constant(1.0))
    assert [round(backoff.next(), 6) for _ in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@pytest.mark.spec("B.4.10")
def test_jitter_never_exceeds_the_maximum() -> None:
    high = Backoff(50, 1000, Constant(1.2))
    assert [round(high.next(), 6) for _ in range(6)] == [0.06, 0.12, 0.24, 0.48, 0.96, 1.0]
    low = Backoff(50, 1000, Constant(0.8))
    assert [round(low.next(), 6) for _ in range(6)] == [0.04, 0.08, 0.16, 0.32, 0.64, 0.8]


@pytest.mark.spec("B.4.10")
@pytest.mark.parametrize(("base_ms", "max_ms", "seconds"), [(100, 100, 0.1), (500, 100, 0.1), (0, 0, 0.0)])
def test_a_maximum_not_above_the_base_is_a_constant_delay_without_jitter(
    base_ms: int, max_ms: int, seconds: float
) -> None:
    backoff = Backoff(base_ms, max_ms, random.Random(1))
    assert [backoff.next() for _ in range(4)] == [seconds] * 4


@pytest.mark.spec("B.4.10")
def test_reset_starts_again_at_the_shortest_delay() -> None:
    backoff = Backoff(100, 1000, Constant(1.0))
    for _ in range(5):
        backoff.next()
    assert backoff.steady
    backoff.reset()
    assert not backoff.steady
    assert backoff.next() == pytest.approx(0.1)


def test_delays_stay_within_twenty_percent() -> None:
    drawn = [Backoff(100, 1000, random.Random(seed)).next() for seed in range(200)]
    assert 0.08 <= min(drawn) < 0.09
    assert 0.11 < max(drawn) <= 0.12
