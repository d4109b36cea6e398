"""What `metrics()` says, against what happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kclient import AsyncConsumer
from kclient.metrics import MetricValues
from kclient.types import TopicPartition
from tests.simulation.application import Member
from tests.simulation.invariants.groups import name_of
from tests.simulation.watch import Invariant, Offsets

if TYPE_CHECKING:
    from kclient.embedded.partition import Partition
    from tests.simulation.stage import Stage

LOOK_EVERY: Final = 16  # polls


class Metrics(Invariant):
    """Records, polls, rebalances, commits and lag agree with the ledger."""

    id = "I-40"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.polls: Counter[str] = Counter()
        self.assignments: Counter[str] = Counter()
        self.commits: Counter[str] = Counter()
        self.cut = False  # a log was: its end was further than it is

    def poll_began(self, member: Member, timeout: float) -> None:
        self.polls[str(member)] += 1

    def assigned(self, member: Member, partitions: Iterable[TopicPartition]) -> None:
        self.assignments[str(member)] += 1

    def accepted(self, group_id: str, member_id: str, generation: int, offsets: Offsets) -> None:
        self.commits[name_of(self.stage, member_id)] += 1

    def poll_ended(self, member: Member, count: int) -> None:
        if member.polls % LOOK_EVERY == 0:
            self._look(member)

    def close_began(self, member: Member, timeout: float) -> None:
        self._look(member)
        if self.stage.quiet and not self.stage.ledger.undelivered():
            self._look_at_lag(member)

    def _look(self, member: Member) -> None:
        if member.consumer is not None and not member.consumer.closed:
            self._compare(member, member.consumer.metrics())
            if not self.cut and self.stage.scenario.isolation == "read_committed":
                self._look_at_most(member, member.consumer)

    def truncated(self, partition: Partition, to: int) -> None:
        self.cut = True

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        self.cut = True

    def _look_at_most(self, member: Member, consumer: AsyncConsumer) -> None:
        """What is after the last stable offset of this moment is not lag: it may not be read yet."""
        for tp, holding in member.holdings.items():
            partition = self.stage.cluster.state.partition(tp)
            if partition is None or holding.last is None or holding.next is None:
                continue
            lag, most = consumer.current_lag(tp), max(0, partition.last_stable_offset - holding.next)
            if lag is not None and lag > most:
                self.broken(
                    f"{member}: the lag of {tp} is {lag}, and no more than {most} records may be read"
                )

    def _compare(self, member: Member, seen: MetricValues) -> None:
        name = str(member)
        wanted = {
            "records-consumed-total": member.records,
            "assignments-total": self.assignments[name],
            "assigned-partitions": len(member.holdings),
        }
        for key, value in wanted.items():
            if seen.value(key) != value:
                self.broken(f"{member}: {key} is {seen.value(key):g}, and it was {value}")
        if (commits := seen.value("commit-total")) > self.commits[member.name]:
            self.broken(f"{member}: commit-total is {commits:g}, accepted were {self.commits[member.name]}")

    def _look_at_lag(self, member: Member) -> None:
        """Everything was delivered: no lag is left, whatever the isolation level.

        A truncation may leave offsets at the end that no batch holds: no reader gets past these, so they are a lag.
        A member that has left the group and not polled since knows what was so then; others read on.
        """
        consumer = member.consumer
        if consumer is None or consumer.group_metadata().generation_id < 0:
            return
        for tp in consumer.assignment():
            lag, holding = consumer.current_lag(tp), member.holdings.get(tp)
            partition = self.stage.cluster.state.partition(tp)
            if not lag or partition is None or holding is None or holding.next is None:
                continue
            batches = partition.log.batches
            if batches and batches[-1].last_offset >= holding.next:
                self.broken(f"{member}: the lag of {tp} is {lag}, and everything was handed out")


ALL = [Metrics]
