"""Where a partition begins that has no position: the strategies, and which of them the configuration asks for.

Two questions, kept apart: nothing was ever committed, and the position is not in the log any more. `config.resets` says
which keys answer them.
"""

from __future__ import annotations

import attrs

from kclient.config import Config, resets

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2


@attrs.frozen
class ResetStrategy:
    """`earliest`, `latest`, or `by_duration` with how long ago (ms) the first wanted record was written."""

    name: str
    duration_ms: int | None = None

    def timestamp(self, wall_ms: int) -> int:
        """What ListOffsets asks for, with the clock read when the request is built."""
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


def reset_policy(config: Config) -> ResetPolicy:
    """The policy of a checked configuration."""
    without, lost = resets.answers(config.auto_offset_reset, config.on_no_offset, config.on_out_of_range)
    return ResetPolicy(on_no_offset=_strategy(without), on_out_of_range=_strategy(lost))


def _strategy(answer: resets.Answer) -> ResetStrategy | None:
    if isinstance(answer, int):
        return ResetStrategy(resets.BY_DURATION, answer)
    return {"earliest": EARLIEST, "latest": LATEST, "error": None}[answer]
