"""Records of `__consumer_offsets`, as brokers of every release have written them.

    key    int16 record type, then the key's fields        value   int16 version, then the fields of that version
    a null value is a tombstone: it deletes the record with that key

Commits are types 0 (before 0.9) and 1, classic groups 2, groups of KIP-848 3 to 8 and 16, share and streams groups the
others. An unknown type or version, of a newer broker, is read as UnknownOffsetsRecord. The last record of each key
counts. Transactional commits precede their marker in the log: read with isolation_level read_committed to skip those of
aborted transactions.

`offsets_topic_partition` computes which partition holds a group, and so which broker coordinates it. It is Java's
`abs(String.hashCode())`: UTF-16 code units, 32 bits, and the smallest int becomes 0. It is neither the producer's
partitioner nor a hash of UTF-8 bytes.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable
from typing import Any, Final

import attrs

from kclient.errors import ArgumentError, ProtocolDecodeError
from kclient.generated.group_metadata_value import GroupMetadataValue, MemberMetadata
from kclient.generated.offset_commit_key import OffsetCommitKey
from kclient.generated.offset_commit_value import OffsetCommitValue
from kclient.group.assignors.base import Assignment, Subscription
from kclient.group.assignors.java_order import string_hash
from kclient.group.subscription_codec import PROTOCOL_TYPE, decode_assignment, decode_subscription
from kclient.protocol.json import to_json
from kclient.protocol.message import Message, within
from kclient.protocol.registry import MESSAGES, read_message
from kclient.types import TopicPartition


def java_hash(text: str) -> int:
    """Return Java's `String.hashCode`, a signed 32-bit number."""
    value = string_hash(text)
    return value - (1 << 32) if value >= 1 << 31 else value


def offsets_topic_partition(group_id: str, partition_count: int) -> int:
    """Return the partition of `__consumer_offsets` for a group; `partition_count` is `offsets.topic.num.partitions`.

    The same arithmetic maps a transactional id to its partition of `__transaction_state`. Raises ArgumentError for a
    topic without partitions.
    """
    if partition_count < 1:
        raise ArgumentError(
            f"A topic has at least one partition, not {partition_count}."
            " Give offsets.topic.num.partitions, 50 by default."
        )
    value = java_hash(group_id)
    magnitude = 0 if value == -(1 << 31) else abs(value)
    return magnitude % partition_count


LEGACY_COMMIT: Final = 0  # the layouts of type 1, written by 0.8
COMMIT: Final = 1
KEY_VERSION: Final = 0  # all keys have this version; their first int16 is the record type

_INT16: Final = struct.Struct(">h")
_NAMES: Final = {
    entry.api_key: name.removesuffix("Key")
    for name, entry in MESSAGES.items()
    if entry.type == "coordinator-key"
} | {LEGACY_COMMIT: "OffsetCommit"}


@attrs.frozen
class OffsetsRecord:
    """One record whose layout is known.

    `record_type` is the int16 in front of the key, `name` what Kafka calls it ("OffsetCommit", "GroupMetadata",
    "ConsumerGroupMetadata", …). `key` and `value` are messages of `kclient.generated`, `value` and `value_version`
    None in a tombstone.
    """

    record_type: int
    name: str
    key: Message
    value: Message | None
    value_version: int | None

    @property
    def group_id(self) -> str:
        """The group that the record is about."""
        return str(getattr(self.key, "group", None) or getattr(self.key, "group_id", ""))

    @property
    def is_tombstone(self) -> bool:
        """Whether the record deletes the one with the same key."""
        return self.value is None

    def to_json(self) -> dict[str, Any]:
        """Key and value in the JSON that Kafka's own formatters of this topic print."""
        key = {"type": self.record_type, "data": to_json(self.key, KEY_VERSION)}
        if self.value is None or self.value_version is None:
            return {"key": key, "value": None}
        data = to_json(self.value, self.value_version)
        return {"key": key, "value": {"version": self.value_version, "data": data}}


@attrs.frozen
class UnknownOffsetsRecord:
    """A record of an unknown type or value version, with its bytes."""

    record_type: int
    key: bytes
    value: bytes | None
    value_version: int | None

    @property
    def is_tombstone(self) -> bool:
        """Whether the record deletes the one with the same key."""
        return self.value is None

    def to_json(self) -> dict[str, Any]:
        """As `OffsetsRecord.to_json`, with the bytes after type and version as base64."""
        key = {"type": self.record_type, "data": _base64(self.key)}
        if self.value is None:
            return {"key": key, "value": None}
        return {"key": key, "value": {"version": self.value_version, "data": _base64(self.value)}}


@attrs.frozen
class WrittenMember:
    """A member of a classic group: its row in the record, with the decoded subscription and assignment.

    `subscription` and `assignment` are None in groups that are not of consumers, and `assignment` where the leader
    left the member out.
    """

    row: MemberMetadata
    subscription: Subscription | None
    assignment: Assignment | None


def read_offsets_record(key: bytes | None, value: bytes | None) -> OffsetsRecord | UnknownOffsetsRecord:
    """Decode a record of `__consumer_offsets`.

    Raises ProtocolDecodeError for damaged bytes: too short, or not a message of their type and version.
    """
    record_type = _prefix(key, "key")
    version = None if value is None else _prefix(value, "value")
    name = _NAMES.get(record_type)
    if key is None or name is None or not _readable(name, version):
        return UnknownOffsetsRecord(record_type, key or b"", value, version)
    read_key, _ = read_message(f"{name}Key", KEY_VERSION, key, _INT16.size)
    if value is None or version is None:
        return OffsetsRecord(record_type, name, read_key, None, None)
    read_value, _ = read_message(f"{name}Value", version, value, _INT16.size)
    return OffsetsRecord(record_type, name, read_key, read_value, version)


def read_members(value: GroupMetadataValue) -> tuple[WrittenMember, ...]:
    """Return the members of a classic group with subscriptions and assignments. Raises ProtocolDecodeError."""
    if value.protocol_type != PROTOCOL_TYPE:
        return tuple(WrittenMember(row, None, None) for row in value.members)
    return tuple(
        WrittenMember(
            row,
            decode_subscription(row.subscription),
            decode_assignment(row.assignment) if row.assignment else None,
        )
        for row in value.members
    )


def committed_offsets(
    records: Iterable[tuple[bytes | None, bytes | None]],
) -> dict[str, dict[TopicPartition, OffsetCommitValue]]:
    """Return group → partition → commit, from keys and values in log order; a tombstone removes a commit.

    Give it records that were read with isolation_level read_committed. Raises ProtocolDecodeError.
    """
    groups: dict[str, dict[TopicPartition, OffsetCommitValue]] = {}
    for key, value in records:
        record = read_offsets_record(key, value)
        if not isinstance(record, OffsetsRecord) or not isinstance(record.key, OffsetCommitKey):
            continue
        partition = TopicPartition(record.key.topic, record.key.partition)
        commits = groups.setdefault(record.key.group, {})
        if isinstance(record.value, OffsetCommitValue):
            commits[partition] = record.value
        else:
            commits.pop(partition, None)
    return {group_id: commits for group_id, commits in groups.items() if commits}


def _prefix(data: bytes | None, part: str) -> int:
    if data is None or len(data) < _INT16.size:
        have = "no" if data is None else f"a {part} of {len(data)} bytes as its"
        raise ProtocolDecodeError(
            f"A record of __consumer_offsets has {have} {part}; two bytes at least say what it is. "
            "The record is damaged, or of another topic. Compare the topic and the partition that were read.",
            message="record of __consumer_offsets",
            field=part,
        )
    (number,) = _INT16.unpack_from(data)
    return int(number)


def _readable(name: str, version: int | None) -> bool:
    entry = MESSAGES[f"{name}Value"]
    return version is None or within(version, (entry.lowest, entry.highest))


def _base64(data: bytes) -> str:
    return base64.b64encode(data[_INT16.size :]).decode()
