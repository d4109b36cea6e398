"""Small value types of the public API that all packages use. Imports nothing else of kclient."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import attrs

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # PEP 696, before Python 3.13

    K_co = TypeVar("K_co", covariant=True, default=bytes)
    V_co = TypeVar("V_co", covariant=True, default=bytes)
else:
    from typing import TypeVar

    K_co = TypeVar("K_co", covariant=True)
    V_co = TypeVar("V_co", covariant=True)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
"""A record's headers in their order, duplicates kept. A value may be null."""

DeserializerFunction: TypeAlias = Callable[[str, Headers, bytes], T]
"""Takes the topic, the headers and the bytes of a key or value; never null."""


class Deserializer(Protocol[T_co]):
    """An object that makes keys or values of bytes, as Java's interface of this name.

    `configure(settings, is_key)` and `close()` are called if it has them. With a true attribute `may_block` it may
    wait, for a registry perhaps: an AsyncConsumer calls it in a thread, and its event loop goes on.
    """

    def deserialize(self, topic: str, headers: Headers, data: bytes, /) -> T_co:
        """Return the key or value that `data` holds. Null is never given to it."""
        ...


DeserializerLike: TypeAlias = DeserializerFunction[T] | Deserializer[T] | type[Deserializer[T]]
"""What `key_deserializer` and `value_deserializer` may be."""


class TopicPartition(NamedTuple):
    """A partition of a topic: the topic's name and the partition's number, counted from 0."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TimestampType(enum.IntEnum):
    """The source of a record's timestamp: none (message format 0), the producer, or the broker."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class IsolationLevel(enum.IntEnum):
    """What a fetch may return: all below the high watermark, or below the last stable offset without aborted data."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@attrs.frozen
class SubscriptionPattern:
    """A pattern of topic names that the brokers resolve: for `subscribe(pattern=…)` with the consumer group protocol.

    `pattern` is a regular expression in the syntax of RE2/J that whole names match. Topics that appear later are
    added automatically, and the client does not need to know of other topics. Needs Apache Kafka 4.0.
    """

    pattern: str


@attrs.frozen
class OffsetAndMetadata:
    """A position to commit or to seek to.

    `offset` is the next offset to consume (last processed + 1). `leader_epoch` is the epoch of the last consumed
    record's batch, None where unknown; `metadata` is free text of at most 4,096 bytes by the broker's default.
    """

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


@attrs.frozen
class OffsetAndTimestamp:
    """A response of `offsets_for_times`: the first offset whose timestamp (ms since 1970, UTC) is not earlier."""

    offset: int
    timestamp: int
    leader_epoch: int | None = None


class LeaderAndEpoch(NamedTuple):
    """The last known leader of a partition: broker id and leader epoch, each None if unknown."""

    node_id: int | None
    epoch: int | None


@attrs.frozen
class Broker:
    """A broker: its id, the address it is advertised with, and its rack. What Java calls a Node."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


@attrs.frozen
class PartitionInfo:
    """The metadata of a partition: broker ids of the leader (None: no leader now), the replicas, and those in sync.

    `brokers` are those of the same response, by id; the properties look the ids up there. Infos are equal whatever the
    addresses.
    """

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...] = ()
    in_sync_replicas: tuple[int, ...] = ()
    offline_replicas: tuple[int, ...] = ()
    brokers: Mapping[int, Broker] = attrs.field(factory=dict, eq=False, repr=False)

    @property
    def leader_broker(self) -> Broker | None:
        """The leader with its address; None while there is none."""
        return None if self.leader is None else self._broker(self.leader)

    @property
    def replica_brokers(self) -> tuple[Broker, ...]:
        """The replicas with their addresses. As in Java, one that is down has host "" and port −1."""
        return tuple(map(self._broker, self.replicas))

    @property
    def in_sync_replica_brokers(self) -> tuple[Broker, ...]:
        """The replicas in sync, with their addresses."""
        return tuple(map(self._broker, self.in_sync_replicas))

    @property
    def offline_replica_brokers(self) -> tuple[Broker, ...]:
        """The replicas that are offline, with their addresses where their broker is up."""
        return tuple(map(self._broker, self.offline_replicas))

    def _broker(self, node_id: int) -> Broker:
        return self.brokers.get(node_id) or Broker(node_id, "", -1)


@attrs.frozen
class GroupMetadata:
    """This consumer's membership in its group; generation −1 and an empty member id while it has not joined."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


@attrs.frozen(repr=False)
class DeadLetter:
    """A record that could not be decoded, as a dead-letter sink gets it: its bytes, and where it came from.

    `headers` are those of the record, followed by `kclient.error.topic`, `.partition`, `.offset`, `.timestamp`,
    `.part` (key or value), `.class` and `.message` (of the deserializer's exception). `timestamp` is in ms since 1970.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    def __repr__(self) -> str:
        return f"<DeadLetter {self.topic}-{self.partition}@{self.offset}>"
