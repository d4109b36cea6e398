"""Where a partition begins that has no position: the strategies, and which of them the configuration asks for.

Two questions, kept apart: nothing was ever committed, and the position is not in the log any more. Java's
`auto.offset.reset` answers both. Left unset, a partition without a commit begins at the end, while a position that the
log lost is an error: an offset never jumps unless somebody asked for it.

Spec: S0-41, U-01, B.1.1.
"""

from __future__ import annotations

import attrs

from kclient.config.durations import parse_iso_duration_ms

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2


@attrs.frozen
class ResetStrategy:
    """`earliest`, `latest`, or `by_duration` with how long ago (ms) the first wanted record was written."""

    name: str
    duration_ms: int | None = None

    def timestamp(self, wall_ms: int) -> int:
        """What ListOffsets asks for, with the clock read when the request is built.

        Spec: S0-44, B.8.
        """
        if self.duration_ms is not None:
            return max(0, wall_ms - self.duration_ms)
        return LATEST_TIMESTAMP if self.name == "latest" else EARLIEST_TIMESTAMP


EARLIEST = ResetStrategy("earliest")
LATEST = ResetStrategy("latest")


@attrs.frozen
class ResetPolicy:
    """What to do without a committed offset, and with a position that the log does not hold. None: tell the user."""

    on_no_offset: ResetStrategy | None
    on_out_of_range: ResetStrategy | None


def reset_policy(auto_offset_reset: str | None) -> ResetPolicy:
    """The policy of a checked configuration's `auto_offset_reset`; None means that the key was not set.

    Spec: U-01, S0-41.
    """
    if auto_offset_reset is None:
        return ResetPolicy(on_no_offset=LATEST, on_out_of_range=None)
    name, _, duration = auto_offset_reset.partition(":")
    if name == "by_duration":
        strategy: ResetStrategy | None = ResetStrategy(name, parse_iso_duration_ms(duration))
    else:
        strategy = {"earliest": EARLIEST, "latest": LATEST, "none": None}[name]
    return ResetPolicy(on_no_offset=strategy, on_out_of_range=strategy)
