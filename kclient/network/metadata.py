"""The metadata cache: brokers, topics, partitions, leaders and their epochs. Pure: no loop, no clock, no IO.

Any broker answers Metadata, so a response may be older than the cache. The leader epoch decides:

    epoch in the response                  the partition's entry
    -------------------------------------  ---------------------------------------------------------------------
    absent, or Metadata before version 9   replaced; these epochs are not reliable (KAFKA-9212)
    the last one seen, or higher           replaced
    lower                                  kept, and another update is requested
    any, and the topic id is a new one     replaced: the topic was deleted and created again

A response is not trusted: impossible values (partition −1, port 70000, a broker id twice) are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from kclient.change_signal import ChangeSignal
from kclient.errors import ArgumentError, KclientError
from kclient.generated.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.log import get_logger
from kclient.network.errors import MOST_NAMES, broker_error, no_brokers
from kclient.protocol.errors import (
    INVALID_TOPIC_EXCEPTION,
    LEADER_NOT_AVAILABLE,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
    error,
)
from kclient.protocol.primitives import ZERO_UUID
from kclient.text import format_count, format_names, printable
from kclient.types import Broker, LeaderAndEpoch, TopicPartition

logger: Final = get_logger("kclient.metadata")

RELIABLE_EPOCHS_SINCE: Final = 9


@attrs.frozen
class UpdateResult:
    """The effect of a response: whether a leader epoch has changed, and whether another update is needed."""

    progress: bool
    update_needed: bool


class MetadataCache:
    """The last known state of the cluster. `version` counts the changes."""

    def __init__(self) -> None:
        self.version: int = 0
        self.changed: Final = ChangeSignal()
        self.brokers: dict[int, Broker] = {}
        self.controller_id: int | None = None
        self.cluster_id: str | None = None
        self.topics: dict[str, TopicMetadata] = {}
        self.nonexistent: frozenset[str] = frozenset()  # the last response about them said so
        self.created: frozenset[str] = frozenset()  # topics that first did not exist, and then did
        self._existed: set[str] = set()
        self._names: dict[bytes, str] = {}
        self._last_seen_epochs: dict[TopicPartition, int] = {}
        self._unauthorized: tuple[str, ...] = ()
        self._invalid: tuple[str, ...] = ()
        self._error: KclientError | None = None
        self._progress = False
        self._update_needed = False

    # --- reading

    def leader(self, tp: TopicPartition) -> LeaderAndEpoch:
        """Return the partition's leader and epoch. A leader with an older epoch than the last seen is unknown."""
        seen = self._last_seen_epochs.get(tp)
        partition = self._partition(tp)
        if partition is None:
            return LeaderAndEpoch(None, seen)
        if seen is not None and partition.leader_epoch is not None and partition.leader_epoch < seen:
            return LeaderAndEpoch(None, seen)
        leader = partition.leader if partition.leader in self.brokers else None
        return LeaderAndEpoch(leader, partition.leader_epoch)

    def partition_count(self, topic: str) -> int | None:
        """Return how many partitions the topic has; None if unknown."""
        known = self.topics.get(topic)
        return len(known.partitions) if known is not None and known.partitions else None

    def topic_id(self, topic: str) -> bytes | None:
        """Return the topic's id; None if unknown or if the brokers are older than topic ids."""
        known = self.topics.get(topic)
        return None if known is None else known.topic_id

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of the topic with this id; None if unknown."""
        return self._names.get(topic_id)

    def _partition(self, tp: TopicPartition) -> PartitionMetadata | None:
        topic = self.topics.get(tp.topic)
        return None if topic is None else topic.partitions.get(tp.partition)

    # --- updates

    def apply(self, response: MetadataResponse, version: int, *, whole: bool = True) -> UpdateResult:
        """Apply a response. Raise ConnectError if it has no usable broker.

        `whole`: it covers all topics of interest, so others are removed, and topic errors are kept for the user.
        """
        brokers = usable_brokers(response.brokers)
        if not brokers:
            raise no_brokers("a broker")
        self._progress = self._update_needed = False
        if response.cluster_id is not None and self.cluster_id not in (None, response.cluster_id):
            logger.warning("the cluster id changed from %s to %s", self.cluster_id, response.cluster_id)
        self.cluster_id = response.cluster_id or self.cluster_id
        self.controller_id = response.controller_id if response.controller_id in brokers else None
        self.brokers = brokers
        reliable = version >= RELIABLE_EPOCHS_SINCE
        topics = [self._topic(topic, reliable) for topic in response.topics if topic.name]
        found = {topic.name: topic for topic in topics if topic.error_code != UNKNOWN_TOPIC_OR_PARTITION}
        self._note_existence(topics)
        if whole:
            self.topics = found
            self._note_errors(topics)
            wanted = {topic.name for topic in topics}
            self._last_seen_epochs = {
                tp: epoch for tp, epoch in self._last_seen_epochs.items() if tp.topic in wanted
            }
        else:
            for topic in topics:
                self.topics.pop(topic.name, None)
            self.topics.update(found)
        self._names = {topic.topic_id: name for name, topic in self.topics.items() if topic.topic_id}
        self._notify()
        return UpdateResult(self._progress, self._update_needed)

    def update_last_seen_epoch(self, tp: TopicPartition, epoch: int) -> bool:
        """Note an epoch from another response. Return True if it is newer, so that an update is needed."""
        if epoch < 0:
            raise ArgumentError(f"a leader epoch is never negative, and {tp} was given {epoch}")
        seen = self._last_seen_epochs.get(tp)
        if seen is None or epoch <= seen:
            return False
        self._last_seen_epochs[tp] = epoch
        return True

    def update_leadership(
        self, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Broker] = ()
    ) -> tuple[TopicPartition, ...]:
        """Apply leaders (id, epoch) from a Fetch response (KIP-951). Return the partitions that changed."""
        brokers = self.brokers | {node.node_id: node for node in nodes if is_usable(node)}
        changed: list[TopicPartition] = []
        for tp, (leader, epoch) in leaders.items():
            known = self._partition(tp)
            if known is None or leader not in brokers or epoch <= self._last_seen_epochs.get(tp, -1):
                continue
            topic = self.topics[tp.topic]
            moved = attrs.evolve(known, leader=leader, leader_epoch=epoch)
            self.topics[tp.topic] = attrs.evolve(topic, partitions={**topic.partitions, tp.partition: moved})
            self._last_seen_epochs[tp] = epoch
            self.brokers[leader] = brokers[leader]
            changed.append(tp)
        if changed:
            self._notify()
        return tuple(changed)

    def learn_broker(self, broker: Broker) -> None:
        """Note the address of a broker that a response without racks named, such as a coordinator; its rack stays."""
        known = self.brokers.get(broker.node_id)
        if is_usable(broker) and (known is not None or len(self.brokers) < MOST_BROKERS):
            # Without the rack, the group leader would see the racks change, and change back with the next update.
            rack = broker.rack if known is None else known.rack
            self.brokers[broker.node_id] = attrs.evolve(broker, rack=rack)

    def forget_brokers(self) -> None:
        """Remove all brokers, to start over from the bootstrap servers."""
        self.brokers = {}
        self._notify()

    # --- errors for the user

    def store_error(self, error: KclientError) -> None:
        """Keep an error for the next `take_error`."""
        self._error = error

    def take_error(self) -> KclientError | None:
        """Return the error to raise from the next call of the user, and remove it. Java: maybeThrowAnyException."""
        error, self._error = self._error, None
        if error is None and self._unauthorized:
            error = broker_error(
                TOPIC_AUTHORIZATION_FAILED,
                "reading the metadata of " + format_names(self._unauthorized, MOST_NAMES),
                topics=self._unauthorized,
            )
        elif error is None and self._invalid:
            error = broker_error(
                INVALID_TOPIC_EXCEPTION,
                "reading the metadata of " + format_names(self._invalid, MOST_NAMES),
                topics=self._invalid,
            )
        self._unauthorized = self._invalid = ()
        return error

    def _note_existence(self, topics: Iterable[TopicMetadata]) -> None:
        """Note which topics do not exist, and which were created after a client had asked for them.

        ZooKeeper brokers answer LEADER_NOT_AVAILABLE for a topic that they create because of this very request.
        """
        found = {topic.name for topic in topics if topic.partitions}
        missing = {
            topic.name
            for topic in topics
            if topic.error_code == UNKNOWN_TOPIC_OR_PARTITION
            or (topic.error_code == LEADER_NOT_AVAILABLE and topic.name not in self.topics)
        }
        # Not a topic that existed before: it was deleted and created again, so its name was not misspelt.
        self.created |= (self.nonexistent & found) - self._existed
        self.nonexistent = self.nonexistent - found | missing
        self._existed |= found

    def _note_errors(self, topics: Iterable[TopicMetadata]) -> None:
        self._unauthorized = tuple(t.name for t in topics if t.error_code == TOPIC_AUTHORIZATION_FAILED)
        self._invalid = tuple(t.name for t in topics if t.error_code == INVALID_TOPIC_EXCEPTION)

    def _notify(self) -> None:
        self.version += 1
        self.changed.notify()

    # --- one topic, one partition

    def _topic(self, topic: MetadataResponseTopic, reliable: bool) -> TopicMetadata:
        name = topic.name or ""
        topic_id = None if topic.topic_id == ZERO_UUID else topic.topic_id
        code = topic.error_code
        recreated = topic_id is not None and topic_id != self.topic_id(name)
        partitions: dict[int, PartitionMetadata] = {}
        for partition in topic.partitions if code == NONE else ():
            if partition.partition_index >= 0 and partition.partition_index not in partitions:
                tp = TopicPartition(name, partition.partition_index)
                partitions[tp.partition] = self._accept(tp, partition, reliable, recreated)
        if code == NONE and not partitions:
            code = LEADER_NOT_AVAILABLE  # a topic without partitions is being created
        self._update_needed |= error(code).invalid_metadata
        return TopicMetadata(name, topic_id, topic.is_internal, code, dict(sorted(partitions.items())))

    def _accept(
        self, tp: TopicPartition, news: MetadataResponsePartition, reliable: bool, recreated: bool
    ) -> PartitionMetadata:
        """Return the partition's new entry by the table of this module."""
        self._update_needed |= error(news.error_code).invalid_metadata
        seen, known = self._last_seen_epochs.get(tp), self._partition(tp)
        leader = news.leader_id if news.leader_id >= 0 else None
        epoch = news.leader_epoch if reliable and news.leader_epoch >= 0 else None
        # Without an epoch two responses cannot be ordered: the later one counts.
        if epoch is None:
            self._last_seen_epochs.pop(tp, None)
            self._progress |= known is None or known.leader != leader
        elif seen is None or recreated or epoch >= seen:
            # The epochs of a recreated topic begin again at 0.
            self._last_seen_epochs[tp] = epoch
            self._progress |= epoch != seen
        else:
            # A broker that lags: keep the newer leader, and ask again.
            self._update_needed = True
            if known is not None:
                return known
        return PartitionMetadata(
            leader, epoch, tuple(news.replica_nodes), tuple(news.isr_nodes), tuple(news.offline_replicas)
        )


MOST_BROKERS: Final = 10_000
SHOWN_HOST: Final = 100
HOST: Final = re.compile(r"[\w.:%-]{1,255}")  # names with letters of any script, addresses, zones of IPv6
TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@attrs.frozen
class PartitionMetadata:
    """One partition: its leader and replicas, as broker ids; None where unknown."""

    leader: int | None
    leader_epoch: int | None
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()


@attrs.frozen
class TopicMetadata:
    """One topic. With an `error_code` other than 0 it has no partitions."""

    name: str
    topic_id: bytes | None = None
    internal: bool = False
    error_code: int = NONE
    partitions: Mapping[int, PartitionMetadata] = attrs.field(factory=dict)


def usable_brokers(claimed: Sequence[MetadataResponseBroker]) -> dict[int, Broker]:
    """Return the brokers of a response by id, without impossible ones; none if there are too many."""
    if len(claimed) > MOST_BROKERS:
        logger.warning(
            "metadata names %d brokers, more than %d: the response is not used", len(claimed), MOST_BROKERS
        )
        return {}
    brokers: dict[int, Broker] = {}
    impossible: list[str] = []
    for one in claimed:
        broker = Broker(one.node_id, one.host, one.port, one.rack)
        if broker.node_id in brokers or not is_usable(broker):
            impossible.append(f"id {one.node_id} at {printable(one.host, SHOWN_HOST)}, port {one.port}")
        else:
            brokers[broker.node_id] = broker
    if impossible:
        many = format_count(len(impossible), "impossible broker")
        logger.warning("metadata names %s: %s", many, format_names(impossible))
    return brokers


def is_usable(broker: Broker) -> bool:
    """Return whether id, host and port are possible."""
    return broker.node_id >= 0 and HOST.fullmatch(broker.host) is not None and 0 < broker.port <= 65_535


def is_legal_topic(name: str) -> bool:
    """Return whether Kafka allows this topic name: 1 to 249 of [a-zA-Z0-9._-], and neither "." nor ".."."""
    return TOPIC.fullmatch(name) is not None and name not in (".", "..")
