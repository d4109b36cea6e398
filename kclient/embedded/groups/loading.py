"""Load groups from a partition of `__consumer_offsets`: the last value of each key, with transactions applied.

Offsets of a transaction precede its marker in the log. A commit marker makes them visible, an abort marker drops them;
if the log ends before the marker, they are pending.
"""

from __future__ import annotations

import struct
from typing import Final

from kclient.embedded.groups.classic.group import ClassicGroup
from kclient.embedded.groups.classic.records import read_into
from kclient.embedded.groups.coordinator import CoordinatorGroup, GroupCoordinator
from kclient.embedded.groups.records import COMMITS, GROUP, OffsetsTopicRow, commit_of
from kclient.embedded.log import StoredBatch
from kclient.embedded.partition import Partition
from kclient.embedded.state import BrokerState
from kclient.group.offsets_topic import OffsetsRecord, read_offsets_record
from kclient.records.sections import columns_for, open_batch
from kclient.types import TopicPartition

_MARKER: Final = struct.Struct(">hh")
_COMMIT_MARKER: Final = 1


Values = dict[bytes, tuple[bytes | None, int]]  # key → value and offset


def groups_of(broker: BrokerState) -> GroupCoordinator:
    """Return the group coordinator of a broker."""
    return broker.broker_local(GroupCoordinator, lambda: GroupCoordinator(broker, load))


def load(coordinator: GroupCoordinator, partition: Partition) -> dict[str, CoordinatorGroup]:
    """Return the groups of a partition's log."""
    values, pending = _replay(partition)
    rows: dict[str, list[OffsetsTopicRow]] = {}
    for row in _rows(values):
        rows.setdefault(row.group_id, []).append(row)
    groups = {group_id: _group(coordinator, group_id, found) for group_id, found in rows.items()}
    for producer_id, waiting in pending.items():
        for row in _rows(waiting):
            group_id = row.group_id
            if group_id not in groups:
                groups[group_id] = ClassicGroup(coordinator, group_id)
            groups[group_id].offsets.pend(producer_id, _tp(row), commit_of(row.value, row.at))
    return groups


def _replay(partition: Partition) -> tuple[Values, dict[int, Values]]:
    """Return the last value of each key, and the pending values of each producer."""
    values: Values = {}
    pending: dict[int, Values] = {}
    for stored in partition.log.from_offset(partition.log.start):
        header = stored.header
        records = _records(stored)
        if header.is_control:
            waiting = pending.pop(header.producer_id, {})
            if records and _MARKER.unpack_from(records[0][0])[1] == _COMMIT_MARKER:
                _merge(values, waiting)
            continue
        into = pending.setdefault(header.producer_id, {}) if header.is_transactional else values
        for key, value, offset in records:
            into.pop(key, None)
            into[key] = value, offset
    return values, pending


def _merge(values: Values, committed: Values) -> None:
    """Merge committed values; the later record counts, whichever became visible first."""
    for key, (value, at) in committed.items():
        if key not in values or values[key][1] < at:
            values.pop(key, None)
            values[key] = value, at


def _records(stored: StoredBatch) -> list[tuple[bytes, bytes | None, int]]:
    section = open_batch(stored.header, check_crcs=False)
    columns = columns_for(section)
    section.read_into(columns, stored.header.count)
    rows = zip(columns.raw_keys(), columns.raw_values(), columns.offsets, strict=True)
    return [(key, value, offset) for key, value, offset in rows if key is not None]


def _rows(values: Values) -> list[OffsetsTopicRow]:
    found = []
    for key, (value, at) in values.items():
        record = read_offsets_record(key, value)
        if value is not None and isinstance(record, OffsetsRecord):
            found.append(OffsetsTopicRow(record.record_type, record.group_id, record.key, record.value, at))
    return found


def _tp(row: OffsetsTopicRow) -> TopicPartition:
    return TopicPartition(row.key.topic, row.key.partition)


def _group(coordinator: GroupCoordinator, group_id: str, rows: list[OffsetsTopicRow]) -> CoordinatorGroup:
    """Build a group; it is classic unless it has records of the consumer protocol."""
    classic = next((row.value for row in rows if row.kind == GROUP), None)
    others = [row for row in rows if row.kind not in (*COMMITS, GROUP)]
    group: CoordinatorGroup
    if others:
        # Imported only for such a group.
        from kclient.embedded.groups.consumer_protocol.group import ConsumerGroup
        from kclient.embedded.groups.consumer_protocol.records import read_rows

        group = ConsumerGroup(coordinator, group_id)
        read_rows(group, others)
    else:
        group = ClassicGroup(coordinator, group_id)
        if classic is not None:
            read_into(group, classic)
    for row in rows:
        if row.kind in COMMITS:
            group.offsets.put(_tp(row), commit_of(row.value, row.at))
    return group
