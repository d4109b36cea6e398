"""From records of `__consumer_offsets` to rows of the tables. Pure.

A commit is one row. A classic group writes itself whole: a row for each member, or one without a member when it is
empty. A group of KIP-848 writes what changed: the row says in `record` which part of it. A tombstone is a row too.
Records of newer types and damaged ones are kept as they came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from kclient.errors import ProtocolDecodeError
from kclient.generated.group_metadata_value import GroupMetadataValue
from kclient.generated.offset_commit_key import OffsetCommitKey
from kclient.generated.offset_commit_value import OffsetCommitValue
from kclient.group.offsets_topic import OffsetsRecord, UnknownOffsetsRecord, read_members, read_offsets_record

Row: TypeAlias = dict[str, Any]

EPOCHS: Final = ("epoch", "member_epoch", "assignment_epoch")


class TopicRecord(NamedTuple):
    """One record of the topic: where it stands, whether a transaction wrote it, and what it holds."""

    partition: int
    offset: int
    timestamp: int
    transactional: bool
    key: bytes | None
    value: bytes | None


def rows_of(entry: TopicRecord, names: Mapping[bytes, str]) -> Iterator[tuple[str, Row]]:
    """Yield the rows of one record, each with its table. `names` are topics by id."""
    source = {
        "src_partition": entry.partition,
        "src_offset": entry.offset,
        "record_ts": None if entry.timestamp < 0 else entry.timestamp,
    }
    try:
        for table, row in _rows(entry, names):
            yield table, row | source
    except ProtocolDecodeError as exc:
        yield "unknown", {"key": entry.key, "value": entry.value, "problem": exc.text, **source}


def _rows(entry: TopicRecord, names: Mapping[bytes, str]) -> list[tuple[str, Row]]:
    record = read_offsets_record(entry.key, entry.value)
    if isinstance(record, UnknownOffsetsRecord):
        problem = (
            "a newer type of record" if record.value_version is None else f"version {record.value_version}"
        )
        kept = {
            "record_type": record.record_type,
            "key": record.key,
            "value": record.value,
            "problem": problem,
        }
        return [("unknown", kept)]
    if isinstance(record.key, OffsetCommitKey):
        return [("commits", _commit(record.key, record.value, entry))]
    return [("groups", row) for row in _group(record, names)]


def _commit(key: OffsetCommitKey, value: object, entry: TopicRecord) -> Row:
    row = {
        "group": key.group,
        "topic": key.topic,
        "partition": key.partition,
        "tombstone": not isinstance(value, OffsetCommitValue),
        "txn": entry.transactional,
    }
    if not isinstance(value, OffsetCommitValue):
        return row
    return row | {
        "offset": value.offset,
        "leader_epoch": _unless_negative(value.leader_epoch),
        "metadata": value.metadata,
        "commit_ts": _unless_negative(value.commit_timestamp),
        "expire_ts": _unless_negative(value.expire_timestamp),
    }


def _group(record: OffsetsRecord, names: Mapping[bytes, str]) -> Iterable[Row]:
    shared = {"group": record.group_id, "record": record.name, "tombstone": record.is_tombstone}
    if isinstance(record.value, GroupMetadataValue):
        return _classic(shared, record.value)
    return [shared | _part(record, names)]


def _classic(shared: Row, value: GroupMetadataValue) -> list[Row]:
    group = shared | {
        "protocol_type": value.protocol_type,
        "protocol": value.protocol,
        "generation": value.generation,
        "leader": value.leader,
        "state_ts": _unless_negative(value.current_state_timestamp),
    }
    members = [
        group
        | {
            "member_id": member.row.member_id,
            "instance_id": member.row.group_instance_id,
            "client_id": member.row.client_id,
            "client_host": member.row.client_host,
            "rebalance_timeout_ms": _unless_negative(member.row.rebalance_timeout),
            "session_timeout_ms": member.row.session_timeout,
            "assignment": None
            if member.assignment is None
            else [{"topic": tp.topic, "partition": tp.partition} for tp in member.assignment.partitions],
        }
        for member in read_members(value)
    ]
    return members or [group]


def _part(record: OffsetsRecord, names: Mapping[bytes, str]) -> Row:
    """Return the fields that all records of KIP-848 groups share; those that a record lacks are null."""
    key, value = record.key, record.value
    row: Row = {"member_id": getattr(key, "member_id", None)}
    if value is None:
        return row
    epochs = (getattr(value, name, None) for name in EPOCHS)
    classic = getattr(value, "classic_member_metadata", None)
    owned = getattr(value, "assigned_partitions", getattr(value, "topic_partitions", None))
    return row | {
        "protocol_type": "consumer" if record.name.startswith("ConsumerGroup") else None,
        "protocol": getattr(value, "server_assignor", None),
        "generation": next((epoch for epoch in epochs if epoch is not None), None),
        "state_ts": _unless_negative(getattr(value, "assignment_timestamp", None)),
        "instance_id": getattr(value, "instance_id", None),
        "client_id": getattr(value, "client_id", None),
        "client_host": getattr(value, "client_host", None),
        "rebalance_timeout_ms": _unless_negative(getattr(value, "rebalance_timeout_ms", None)),
        "session_timeout_ms": None if classic is None else classic.session_timeout_ms,
        "assignment": None if owned is None else _owned(owned, names),
    }


def _owned(topics: Iterable[Any], names: Mapping[bytes, str]) -> list[Row]:
    return [
        {"topic": names.get(topic.topic_id), "topic_id": topic.topic_id.hex(), "partition": partition}
        for topic in topics
        for partition in topic.partitions
    ]


def _unless_negative(number: int | None) -> int | None:
    """Return None for −1, which Kafka writes for unknown."""
    return None if number is None or number < 0 else number
