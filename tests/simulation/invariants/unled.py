"""Groups without a leader: before 3.2 a static leader that rejoins gets no response that it leads (KIP-814).

The broker keeps the assignment and waits; partitions that appear then have no owner until another member joins or
leaves. No client can detect it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kclient.embedded.releases import Release
from kclient.types import TopicPartition
from tests.simulation.grouping import CLASSIC
from tests.simulation.invariants.groups import Owned
from tests.simulation.watch import Invariant

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

LEADERS_ARE_TOLD_SINCE: Final = Release.parse("3.2")


class KnowsThePlan(Invariant):
    """Sees what the newest plan gives to members."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.planned: frozenset[TopicPartition] = frozenset()
        scenario = stage.scenario
        old = Release.parse(scenario.release) < LEADERS_ARE_TOLD_SINCE
        self.may_be_unled = old and scenario.static and scenario.protocol == CLASSIC

    def rebalanced(self, group_id: str, generation: int, owned: Owned) -> None:
        self.planned = frozenset(tp for partitions in owned.values() for tp in partitions)

    def is_nobodys(self, tp: TopicPartition) -> bool:
        """Whether no plan gives this partition to anybody, and none need come."""
        return self.may_be_unled and tp not in self.planned
