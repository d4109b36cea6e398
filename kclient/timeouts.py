"""What counts as a timeout, in every call that takes one."""

from __future__ import annotations

import math

from kclient.errors import ArgumentError


def checked_timeout(timeout: float) -> float:
    """Seconds as given. Raises ArgumentError for a negative number or none at all."""
    if (
        isinstance(timeout, bool)
        or not isinstance(timeout, int | float)
        or math.isnan(timeout)
        or timeout < 0
    ):
        raise ArgumentError(f"A timeout is a number of seconds, 0 or more, not {timeout!r}.")
    return float(timeout)
