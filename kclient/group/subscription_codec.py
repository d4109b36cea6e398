"""The subscriptions and assignments inside JoinGroup and SyncGroup (protocol type "consumer"): int16 version, message.

We write the newest version. A version newer than ours is read as ours, and extra bytes after the message are ignored; a
truncated message or a negative version is an error. Other members write these: untrusted input, for the leader too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from kclient.errors import InternalError, ProtocolDecodeError
from kclient.generated.consumer_protocol_assignment import ConsumerProtocolAssignment
from kclient.generated.consumer_protocol_assignment import TopicPartition as AssignedTopic
from kclient.generated.consumer_protocol_subscription import ConsumerProtocolSubscription
from kclient.generated.consumer_protocol_subscription import TopicPartition as OwnedTopic
from kclient.group.assignors.base import Assignment, Subscription, partition_key, utf16_key
from kclient.protocol import registry
from kclient.protocol.message import Message
from kclient.protocol.struct_limit import SMALL_BYTES, require_few_structs
from kclient.types import TopicPartition

PROTOCOL_TYPE = "consumer"
NEWEST_VERSION = 3
NO_GENERATION = -1
MOST_STRUCTS = 100_000  # topics of a member, or eighths of its partitions

_VERSION = struct.Struct(">h")


def encode_subscription(subscription: Subscription, version: int = NEWEST_VERSION) -> bytes:
    """Encode a subscription for JoinGroup; topics and owned partitions are written in sorted order."""
    owned = _by_topic(sorted(subscription.owned_partitions, key=partition_key))
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics, key=utf16_key),
        user_data=subscription.user_data,
        owned_partitions=[OwnedTopic(topic=topic, partitions=numbers) for topic, numbers in owned.items()],
        generation_id=NO_GENERATION if subscription.generation_id is None else subscription.generation_id,
        rack_id=subscription.rack_id,
    )
    return _VERSION.pack(version) + b"".join(registry.write_message(message, version))


def encode_assignment(assignment: Assignment, version: int = NEWEST_VERSION) -> bytes:
    """Encode an assignment for SyncGroup; topics in the order of their first partition."""
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignedTopic(topic=topic, partitions=numbers)
            for topic, numbers in _by_topic(assignment.partitions).items()
        ],
        user_data=assignment.user_data,
    )
    return _VERSION.pack(version) + b"".join(registry.write_message(message, version))


def decode_subscription(blob: bytes | memoryview) -> Subscription:
    """Decode the subscription of another member. Raises ProtocolDecodeError."""
    message, _ = _read("ConsumerProtocolSubscription", blob, "subscription")
    if not isinstance(message, ConsumerProtocolSubscription):
        raise InternalError(f"the registry read {type(message).__name__} as ConsumerProtocolSubscription")
    return Subscription(
        topics=tuple(message.topics),
        user_data=message.user_data,
        owned_partitions=tuple(
            TopicPartition(owned.topic, number)
            for owned in message.owned_partitions
            for number in owned.partitions
        ),
        generation_id=None if message.generation_id == NO_GENERATION else message.generation_id,
        rack_id=message.rack_id or None,
    )


def decode_assignment(blob: bytes | memoryview) -> Assignment:
    """Decode the assignment that the leader sent. Raises ProtocolDecodeError."""
    message, _ = _read("ConsumerProtocolAssignment", blob, "assignment")
    if not isinstance(message, ConsumerProtocolAssignment):
        raise InternalError(f"the registry read {type(message).__name__} as ConsumerProtocolAssignment")
    return Assignment(
        partitions=tuple(
            TopicPartition(assigned.topic, number)
            for assigned in message.assigned_partitions
            for number in assigned.partitions
        ),
        user_data=message.user_data,
    )


def _read(name: str, blob: bytes | memoryview, what: str) -> tuple[Message, int]:
    version, body = _split(blob, what)
    if len(body) > SMALL_BYTES:
        require_few_structs(registry.message_class(name), version, body, 0, MOST_STRUCTS)
    return registry.read_message(name, version, body)


def _split(blob: bytes | memoryview, what: str) -> tuple[int, bytes | memoryview]:
    """Return the version to decode a blob with, and the message that follows it."""
    if len(blob) < _VERSION.size:
        raise ProtocolDecodeError(
            f"The group leader or a member sent a {what} of {len(blob)} bytes, too short for its version. "
            "Some member of the group has a broken assignor or lost its state. "
            "Restart that member; if it goes on, look at its assignors.",
            field="version",
        )
    (version,) = _VERSION.unpack_from(blob)
    if version < 0:
        raise ProtocolDecodeError(
            f"The version {version} of a group member's {what} is negative. "
            "Another client of the group wrote it wrong. Find out which clients share this group.id.",
            field="version",
            version=version,
        )
    return min(version, NEWEST_VERSION), blob[_VERSION.size :]


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return topics
