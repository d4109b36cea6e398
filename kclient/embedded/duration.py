"""How long: seconds as a number, a timedelta, or text as people write it: "10m", "1h30m", "250ms"."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Final, TypeAlias

from kclient.errors import ArgumentError

Duration: TypeAlias = float | timedelta | str

UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def seconds(duration: Duration) -> float:
    """Its seconds. Raises ArgumentError for what is no duration."""
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if isinstance(duration, int | float) and math.isfinite(duration):
        return float(duration)
    parts = PART.findall(duration) if isinstance(duration, str) else []
    if not parts or "".join(number + unit for number, unit in parts) != str(duration).replace(" ", ""):
        raise ArgumentError(
            f"{duration!r} is no duration; give seconds as a number, a timedelta, or text as '10m', '1h30m', '250ms'."
        )
    return sum(float(number) * UNITS[unit] for number, unit in parts)
