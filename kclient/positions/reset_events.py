"""Reports of positions that the log lost: one WARNING for each response, one event for each partition.

`PositionUpdater` passes the events to a callback; the log record carries them too, as `offset_resets`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import attrs

from kclient.log import get_logger
from kclient.types import TopicPartition

logger = get_logger("kclient.positions")

TRUNCATED = "truncated"


@attrs.frozen
class OffsetReset:
    """The log did not hold offset `lost` of the partition any more, and reading goes on at `position`.

    `strategy` is the policy that chose the position: earliest, latest, by_duration; or `truncated` where the new
    leader returned the offset at which its log diverges.
    """

    partition: TopicPartition
    lost: int
    position: int
    strategy: str

    @property
    def skipped(self) -> int:
        """How many offsets are skipped; 0 where reading goes back."""
        return max(0, self.position - self.lost)

    def __str__(self) -> str:
        distance = f"{self.skipped} records skipped" if self.skipped else f"{self.lost - self.position} back"
        return f"{self.partition} from {self.lost} to {self.position} ({self.strategy}), {distance}"


OnOffsetReset: TypeAlias = Callable[[OffsetReset], None]


def report_resets(resets: Sequence[OffsetReset], on_offset_reset: OnOffsetReset) -> None:
    """Log the lost positions of one response, and call `on_offset_reset` for each."""
    if not resets:
        return
    logger.warning(
        "Positions were not in the log any more and jumped: %s%s. %d records skipped in all",
        "; ".join(map(str, resets[:5])),
        f"; and {len(resets) - 5} more" if len(resets) > 5 else "",
        sum(reset.skipped for reset in resets),
        extra={"offset_resets": tuple(resets)},
    )
    for reset in resets:
        on_offset_reset(reset)
