"""The check of a `timeout` argument."""

from __future__ import annotations

import math
import sys

from kclient.errors import ArgumentError


def checked_timeout(timeout: float) -> float:
    """Return the seconds; a number too large for a float is infinite. Raise ArgumentError for other values."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0:  # as with NaN
        raise ArgumentError(f"A timeout is a number of seconds, 0 or more, not {timeout!r}.")
    return float(timeout) if timeout <= sys.float_info.max else math.inf
