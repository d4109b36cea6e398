"""Times as users type them: the same forms after every option that takes one."""

from __future__ import annotations

from datetime import datetime

import pytest

from kclient.config.values import time_ms

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("now", NOW_MS),
        ("-90s", NOW_MS - 90_000),
        ("-1.5h", NOW_MS - 5_400_000),
        ("-3d", NOW_MS - 3 * 86_400_000),
        ("-999999999d", 0),
        ("0", 0),
        ("1767225600000", 1_767_225_600_000),
        ("2026-01-01T00:00Z", 1_767_225_600_000),
        ("2026-01-01T02:00+02:00", 1_767_225_600_000),
        ("2026-01-01Z", 1_767_225_600_000),
        ("2026-01-01+02:00", 1_767_225_600_000 - 7_200_000),
        ("1901-01-01Z", 0),
    ],
)
def test_what_each_form_means(typed: str, meant: int) -> None:
    assert time_ms(typed, NOW_MS) == meant


@pytest.mark.parametrize(
    "typed",
    ["", "then", "1h", "-1w", "-1", "2026-13-01Z", "2026-01-01T25:00Z", "253402300800000", "9" * 5000],
)
def test_what_is_no_time(typed: str) -> None:
    with pytest.raises(ValueError, match="cannot be read: write "):
        time_ms(typed, NOW_MS)


@pytest.mark.parametrize("typed", ["2026-01-01", "2026-01-01T00:00"])
def test_the_advice_for_a_time_without_a_zone_works(typed: str) -> None:
    with pytest.raises(ValueError, match="without a time zone: end it with Z"):
        time_ms(typed, NOW_MS)
    assert time_ms(f"{typed}Z", NOW_MS) == datetime.fromisoformat("2026-01-01T00:00Z").timestamp() * 1000
