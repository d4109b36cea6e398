"""An application that shares partitions out manually: no group, but commits under a group's name (F-49).

Each has the partitions whose number leaves its own when divided by how many there are. It assigns them again when the
topic grows, and a fidgety one puts partitions aside for a while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kclient import AsyncConsumer
from kclient.types import TopicPartition
from tests.simulation.application import TOPIC, Member
from tests.simulation.holding import Holding
from tests.simulation.manners import commit_first
from tests.simulation.probes import watched_runtime

if TYPE_CHECKING:
    from tests.simulation.stage import Stage


def owner_of(stage: Stage, tp: TopicPartition) -> str:
    """The name of the application that has a partition."""
    return f"member-{tp.partition % stage.scenario.members + 1}"


class ManualMember(Member):
    """See the module. `aside` are partitions of its own that it does not read now."""

    def __init__(
        self, stage: Stage, name: str, incarnation: int, instead: dict[str, Any] | None = None
    ) -> None:
        super().__init__(stage, name, incarnation, instead)
        self.aside: list[TopicPartition] = []

    def make_consumer(self, settings: dict[str, Any]) -> AsyncConsumer:
        """One that is in no group."""
        return AsyncConsumer(runtime=watched_runtime(self), **settings)

    async def prepare(self, consumer: AsyncConsumer) -> None:
        """Assign what is its own, if that is not what it has. While there is no topic nothing changes."""
        tps = [TopicPartition(TOPIC, part.number) for part in self.stage.partitions()]
        own = [tp for tp in tps if owner_of(self.stage, tp) == self.name and tp not in self.aside]
        if tps and set(own) != set(consumer.assignment()):
            self.let_go([tp for tp in self.holdings if tp not in own])
            await consumer.assign(own)
            committed = self.stage.ledger.committed_offsets
            new = [tp for tp in own if tp not in self.holdings]
            for tp in new:
                self.holdings[tp] = Holding(tp, self.stage.now, committed.get(tp))
            await commit_first(self, new)

    async def fidget(self, consumer: AsyncConsumer) -> None:
        """Put a partition aside, or take all of them back, beside what others do."""
        if self.rng.random() < 0.02:
            assigned = consumer.assignment()
            self.aside = [] if self.aside or len(assigned) < 2 else [self.rng.choice(assigned)]
        else:
            await super().fidget(consumer)

    async def calm_down(self, consumer: AsyncConsumer) -> None:
        """Read everything."""
        self.aside = []
        await super().calm_down(consumer)

    async def resubscribe(self, consumer: AsyncConsumer) -> None:
        """Give everything up; the next round takes it back."""
        self.holdings.clear()
        try:
            with self.calling("unsubscribe"):
                await consumer.unsubscribe()
        finally:
            self.stage.watch.unsubscribed(self)
