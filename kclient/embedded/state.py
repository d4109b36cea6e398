"""What the cluster is: plain objects that every broker reads and changes, apart from the APIs.

Brokers of a real cluster agree on this through their controller; here they share it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from kclient.embedded.acl import Acl
from kclient.embedded.clock import Clock
from kclient.embedded.faults import Faults
from kclient.embedded.listener import Serve, serve
from kclient.embedded.observer import Observer
from kclient.embedded.releases import Release
from kclient.embedded.settings import Settings
from kclient.embedded.topics import Partition, Topic
from kclient.embedded.users import Users
from kclient.runtime import Runtime
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.embedded.broker import Broker

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
    brokers: dict[int, Broker] = attrs.field(factory=dict)
    topics: dict[str, Topic] = attrs.field(factory=dict)
    observers: list[Observer] = attrs.field(factory=list)
    next_producer_id: int = 1000
    coordinator_load_seconds: float = 0.0  # a coordinator that takes over reads its log so long
    coordinator_start_seconds: float = 0.0  # one whose topic is new says NOT_COORDINATOR so long
    zookeeper_offsets: dict[tuple[str, TopicPartition], int] = attrs.field(factory=dict)  # group → offset
    marker_delay: float = 0.0  # seconds between the end of a transaction and its markers
    connections: int = 0  # how many there have been
    bugs: list[BaseException] = attrs.field(factory=list)  # what handlers, edits and observers failed with

    @property
    def controller_id(self) -> int:
        """The broker that changes topics: the first one that is up."""
        return next((broker.node_id for broker in self.alive()), -1)

    def alive(self) -> list[Broker]:
        """The brokers that are up, by id."""
        return [broker for broker in self.brokers.values() if broker.up]

    def topic_of_id(self, topic_id: bytes) -> Topic | None:
        """The topic with this id."""
        return next((topic for topic in self.topics.values() if topic.topic_id == topic_id), None)

    def partition(self, tp: TopicPartition) -> Partition | None:
        """A partition, None where there is no such."""
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
        """Sixteen random bytes that are no reserved uuid."""
        return self.runtime.random_bytes(15) + b"\x01"
