"""A lost position that is now somewhere else: never quietly. One WARNING for each answer, one event for each jump.

Whoever wants the events gives `PositionUpkeep` a function; the log record carries them too, as `offset_resets`.
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
    leader's log said where it parts from what was read.
    """

    partition: TopicPartition
    lost: int
    position: int
    strategy: str

    @property
    def skipped(self) -> int:
        """How many offsets nobody will read; 0 where reading goes back."""
        return max(0, self.position - self.lost)

    def __str__(self) -> str:
        distance = f"{self.skipped} records skipped" if self.skipped else f"{self.lost - self.position} back"
        return f"{self.partition} from {self.lost} to {self.position} ({self.strategy}), {distance}"


Jumped: TypeAlias = Callable[[OffsetReset], None]


def tell(jumps: Sequence[OffsetReset], jumped: Jumped) -> None:
    """Say what became of the lost positions of one answer."""
    if not jumps:
        return
    logger.warning(
        "Positions were not in the log any more and jumped: %s%s. %d records skipped in all",
        "; ".join(map(str, jumps[:5])),
        f"; and {len(jumps) - 5} more" if len(jumps) > 5 else "",
        sum(jump.skipped for jump in jumps),
        extra={"offset_resets": tuple(jumps)},
    )
    for jump in jumps:
        jumped(jump)
