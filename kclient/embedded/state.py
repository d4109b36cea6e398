"""The state of the cluster: plain objects that every broker reads and changes, apart from the APIs.

The brokers of a real cluster agree on this state through their controller; here they share it. All replicas of a
partition share one log; a follower that lags has a log end below the log's. That is enough to show all that a client
can see of replication: a high watermark below the log end, a follower that serves less, and the records that are lost
when such a follower becomes leader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from kclient.change_signal import ChangeSignal
from kclient.embedded.auth import Acl, Users
from kclient.embedded.clock import Clock
from kclient.embedded.connection import Serve, serve
from kclient.embedded.faults import Faults
from kclient.embedded.log import Log
from kclient.embedded.observer import Observer
from kclient.embedded.releases import Release
from kclient.embedded.settings import Settings
from kclient.runtime import Runtime
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.embedded.broker import EmbeddedBroker


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


OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"


@attrs.define(eq=False)
class ClusterState:
    """One cluster. `brokers` holds those that are down as well; `topics` is in the order of creation."""

    cluster_id: str
    release: Release
    settings: Settings
    runtime: Runtime
    clock: Clock
    serve: Serve = serve  # how a broker opens a port
    acl: Acl = attrs.field(factory=Acl)
    users: Users = attrs.field(factory=Users)
    faults: Faults = attrs.field(factory=Faults)
    brokers: dict[int, EmbeddedBroker] = attrs.field(factory=dict)
    topics: dict[str, Topic] = attrs.field(factory=dict)
    observers: list[Observer] = attrs.field(factory=list)
    next_producer_id: int = 1000
    coordinator_load_seconds: float = 0.0  # how long a new coordinator loads its log
    coordinator_start_seconds: float = 0.0  # how long a coordinator of a new topic answers NOT_COORDINATOR
    zookeeper_offsets: dict[tuple[str, TopicPartition], int] = attrs.field(factory=dict)  # group → offset
    marker_delay: float = 0.0  # seconds between the end of a transaction and its markers
    connections: int = 0  # the number of connections so far
    bugs: list[BaseException] = attrs.field(factory=list)  # errors of handlers, edits and observers

    @property
    def controller_id(self) -> int:
        """The broker that changes topics: the first one that is up."""
        return next((broker.node_id for broker in self.alive()), -1)

    def alive(self) -> list[EmbeddedBroker]:
        """The brokers that are up, by id."""
        return [broker for broker in self.brokers.values() if broker.up]

    def topic_of_id(self, topic_id: bytes) -> Topic | None:
        """The topic with this id."""
        return next((topic for topic in self.topics.values() if topic.topic_id == topic_id), None)

    def partition(self, tp: TopicPartition) -> Partition | None:
        """Return a partition, or None."""
        topic = self.topics.get(tp.topic)
        if topic is None or not 0 <= tp.partition < len(topic.partitions):
            return None
        return topic.partitions[tp.partition]

    def partitions(self) -> list[Partition]:
        """All partitions of all topics."""
        return [partition for topic in self.topics.values() for partition in topic.partitions]

    def next_connection(self) -> int:
        """The number of a new connection, counted from 1."""
        self.connections += 1
        return self.connections

    def new_id(self) -> bytes:
        """Return a random uuid that is not reserved."""
        return self.runtime.random_bytes(15) + b"\x01"
