"""ISO 8601 durations as Kafka reads them: days, hours, minutes and seconds, as in `P1DT2H30M0.5S`."""

from __future__ import annotations

import re

_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)(?:\.(?P<fraction>\d{1,9}))?S)?)?",
    re.IGNORECASE,
)


def parse_iso_duration_ms(text: str) -> int:
    """Milliseconds of an ISO 8601 duration that is not negative. Raises ValueError for anything else."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or text.strip()[-1] in "PpTt":
        raise ValueError(f"must hold an ISO 8601 duration such as PT1H or P7D, not {text!r}")
    days, hours, minutes, seconds = (
        int(match[unit] or 0) for unit in ("days", "hours", "minutes", "seconds")
    )
    whole = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return whole * 1000 + int((match["fraction"] or "0").ljust(3, "0")[:3])
