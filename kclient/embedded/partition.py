"""Topics and their partitions, each with its one log, its leader, and how far each replica is.

All replicas of a partition share one log; a follower that lags has a log end below the log's. That is enough to show
all that a client can see of replication: a high watermark below the log end, a follower that serves less, and the
records that are lost when such a follower becomes leader.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kclient.change_signal import ChangeSignal
from kclient.embedded.log import Log
from kclient.types import TopicPartition

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
NO_LEADER = -1


@attrs.define(eq=False)
class Partition:
    """One partition. `ends` holds the log end of each replica that lags; all others are in step with the leader."""

    topic: Topic
    number: int
    replicas: list[int]
    leader: int = NO_LEADER
    leader_epoch: int = -1
    isr: list[int] = attrs.field(factory=list)
    log: Log = attrs.field(factory=Log)
    ends: dict[int, int] = attrs.field(factory=dict)
    offline: list[int] = attrs.field(factory=list)  # replicas whose disk failed
    read_from: int | None = None  # the follower to which consumers are sent, whatever their rack
    changed: ChangeSignal = attrs.field(factory=ChangeSignal)  # appended, replicated, led by another, gone

    @property
    def tp(self) -> TopicPartition:
        """Topic and number."""
        return TopicPartition(self.topic.name, self.number)

    @property
    def high_watermark(self) -> int:
        """Every record below it is on all in-sync replicas."""
        return min([self.end_of(node) for node in self.isr], default=self.log.end)

    @property
    def last_stable_offset(self) -> int:
        """Every transaction that begins below it is over, on all in-sync replicas."""
        high_watermark = self.high_watermark
        unstable = self.log.producers.first_unstable(high_watermark)
        return high_watermark if unstable is None else max(self.log.start, min(unstable, high_watermark))

    def high_watermark_of(self, node: int) -> int:
        """The same as a replica knows it: a follower cannot serve what it does not have."""
        return min(self.high_watermark, self.end_of(node))

    def end_of(self, node: int) -> int:
        """The log end of a replica."""
        return min(self.ends.get(node, self.log.end), self.log.end)

    def lead(self, node: int) -> None:
        """Make a replica (or NO_LEADER) the leader, in a new epoch; what only the old leader had is cut off."""
        if node != NO_LEADER:
            self.log.truncate(self.end_of(node))
            self.ends.pop(node, None)
        self.leader = node
        self.leader_epoch += 1
        if node != NO_LEADER:
            self.log.epochs.begin(self.leader_epoch, self.log.end)
        self.changed.notify()


@attrs.define(eq=False)
class Topic:
    """A topic with its partitions by number, and the settings that differ from the defaults."""

    name: str
    topic_id: bytes
    partitions: list[Partition] = attrs.field(factory=list)
    config: Mapping[str, str] = attrs.field(factory=dict)
    internal: bool = False

    @property
    def log_append_time(self) -> bool:
        """Whether the broker sets the time of records, not the producer."""
        return self.config.get("message.timestamp.type") == "LogAppendTime"

    @property
    def compacted(self) -> bool:
        """Whether a newer record of a key replaces the older ones."""
        return "compact" in self.config.get("cleanup.policy", "delete")
