"""Windows and rates, on a clock that the test turns."""

from __future__ import annotations

from math import isnan

import pytest

from kclient.metrics.sensor import Sensor, Windows


@pytest.mark.spec("B.19.1")
def test_extremes_and_mean_are_of_the_last_windows_and_totals_of_the_whole_life() -> None:
    sensor = Sensor(Windows(30, 2))
    sensor.record(10, 100)
    sensor.record(2, 129)
    sensor.record(6, 131)  # a second window
    assert (sensor.avg(131), sensor.max(131), sensor.min(131)) == (6, 10, 2)
    assert (sensor.avg(160), sensor.max(160), sensor.min(160)) == (6, 6, 6)  # the first began 60 s ago
    assert all(map(isnan, (sensor.avg(191), sensor.max(191), sensor.min(191))))
    assert (sensor.events, sensor.total) == (3, 18)


@pytest.mark.spec("B.19.1")
def test_a_rate_goes_by_all_windows_but_the_newest_at_least() -> None:
    sensor = Sensor(Windows(30, 2))
    assert sensor.rate(100) == sensor.event_rate(100) == 0
    sensor.record(60, 100)
    assert (sensor.rate(100), sensor.event_rate(100)) == (2, pytest.approx(1 / 30))
    assert sensor.rate(110) == 60 / 40  # ten seconds of this window, and one that was empty
    assert sensor.rate(145) == 60 / 45
    sensor.record(30, 150)
    assert sensor.rate(150) == 90 / 50
    assert sensor.rate(170) == 30 / 50  # the first window is over; the second began 20 s ago
    assert sensor.rate(300) == 0


@pytest.mark.spec("B.19.1")
def test_more_and_shorter_windows_remember_in_finer_steps() -> None:
    sensor = Sensor(Windows(1, 5))
    for second in range(10):
        sensor.record(second, second)
    assert (sensor.min(9), sensor.max(9), sensor.avg(9)) == (5, 9, 7)
    assert sensor.rate(9) == 35 / 4
    assert sensor.min(12) == 8
