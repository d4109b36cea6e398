"""Groups and commits as records of `__consumer_offsets`; `kclient.group.offsets_topic` reads them back.

Key and value begin with an int16: in the key it says what the record is, in the value which version of the layout
follows. What counts is the last value under each key; a null value removes it.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import attrs

from kclient.embedded.groups.offsets import CommittedOffset
from kclient.embedded.releases import Release
from kclient.generated.offset_commit_key import OffsetCommitKey
from kclient.generated.offset_commit_value import OffsetCommitValue
from kclient.protocol.message import Message
from kclient.protocol.registry import write_message
from kclient.records.writer import NewRecord
from kclient.types import TopicPartition

COMMIT: Final = 1
COMMITS: Final = (0, COMMIT)  # one layout
GROUP: Final = 2

_INT16: Final = struct.Struct(">h")

_V1_ONLY_BEFORE: Final = Release.parse("2.1")
_TOPIC_IDS_SINCE: Final = Release.parse("4.1")


# --- any record


@attrs.frozen
class OffsetsTopicRow:
    """A valid record: its type, group, key, value, and offset."""

    kind: int
    group_id: str
    key: Any
    value: Any
    at: int


def record(key: Message, value: Message | None, version: int = 0, timestamp: int = 0) -> NewRecord:
    """Return a record of the coordinator; without a value it is a tombstone."""
    data = None if value is None else _prefixed(version, value, version)
    return NewRecord(key=_prefixed(key.API_KEY or 0, key, 0), value=data, timestamp=timestamp)


def _prefixed(prefix: int, message: Message, version: int) -> bytes:
    return b"".join([_INT16.pack(prefix), *write_message(message, version)])


# --- commits


def commit_record(release: Release, group_id: str, tp: TopicPartition, commit: CommittedOffset) -> NewRecord:
    """Return the record of a committed offset as brokers of this release write it."""
    value = OffsetCommitValue(
        offset=commit.offset,
        leader_epoch=commit.leader_epoch,
        metadata=commit.metadata,
        commit_timestamp=commit.commit_ms,
    )
    if commit.expire_ms is not None or release < _V1_ONLY_BEFORE:
        version = 1
        value.expire_timestamp = -1 if commit.expire_ms is None else commit.expire_ms
        value.leader_epoch = -1
    elif release < _TOPIC_IDS_SINCE:
        version = 3
    else:
        version = 4
        value.topic_id = commit.topic_id
    return record(_commit_key(group_id, tp), value, version, commit.commit_ms)


def commit_tombstone(group_id: str, tp: TopicPartition, timestamp: int) -> NewRecord:
    """Return the tombstone of a committed offset."""
    return record(_commit_key(group_id, tp), None, timestamp=timestamp)


def commit_of(value: OffsetCommitValue, at: int) -> CommittedOffset:
    """Return the committed offset of a record."""
    return CommittedOffset(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_ms=value.commit_timestamp,
        expire_ms=None if value.expire_timestamp < 0 else value.expire_timestamp,
        topic_id=value.topic_id,
        at=at,
    )


def _commit_key(group_id: str, tp: TopicPartition) -> OffsetCommitKey:
    return OffsetCommitKey(group=group_id, topic=tp.topic, partition=tp.partition)
