"""What counts as a timeout, in every call that takes one."""

from __future__ import annotations

import math
import sys

from kclient.errors import ArgumentError


def checked_timeout(timeout: float) -> float:
    """Seconds as given; more than a float holds is for ever. Raises ArgumentError for what is no number from 0 on."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0:  # as with NaN
        raise ArgumentError(f"A timeout is a number of seconds, 0 or more, not {timeout!r}.")
    return float(timeout) if timeout <= sys.float_info.max else math.inf
