"""The records of `__transaction_state`, written and read back, and the markers that end a transaction.

A marker is one control batch in each partition that the transaction wrote to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar, cast

from kclient.embedded.groups.loading import groups_of
from kclient.embedded.log import Log
from kclient.embedded.partition import NO_LEADER, OFFSETS_TOPIC, Partition
from kclient.embedded.replication import append
from kclient.embedded.state import ClusterState
from kclient.embedded.transactions.transaction import NO_ID, TransactionMetadata, TransactionState
from kclient.generated.transaction_log_key import TransactionLogKey
from kclient.generated.transaction_log_value import PartitionsSchema, TransactionLogValue
from kclient.protocol.message import Message
from kclient.protocol.registry import read_message, write_message
from kclient.records.sections import columns_for, open_batch
from kclient.records.writer import NewRecord, build_marker
from kclient.types import TopicPartition

KEY_VERSION: Final = 0
M = TypeVar("M", bound=Message)


def to_record(transaction: TransactionMetadata, value_version: int) -> NewRecord:
    """Return the record of a changed transactional id; a tombstone for a dead one."""
    key = TransactionLogKey(transactional_id=transaction.transactional_id)
    value = (
        None if transaction.state is TransactionState.DEAD else _versioned(_value(transaction), value_version)
    )
    return NewRecord(_versioned(key, KEY_VERSION), value, transaction.updated_ms)


def read_log(log: Log) -> dict[str, TransactionMetadata]:
    """Read the transactional ids of a log."""
    found: dict[str, TransactionMetadata] = {}
    for key, value in _records(log):
        transactional_id = _read(TransactionLogKey, key).transactional_id
        if value is None:
            found.pop(transactional_id, None)
        else:
            found[transactional_id] = _transaction(transactional_id, _read(TransactionLogValue, value))
    return found


def _records(log: Log) -> Iterator[tuple[bytes, bytes | None]]:
    for stored in log.batches:
        section = open_batch(stored.header)
        columns = columns_for(section)
        section.read_into(columns, stored.header.count)
        for key, value in zip(columns.raw_keys(), columns.raw_values(), strict=True):
            yield key or b"", value


def _value(transaction: TransactionMetadata) -> TransactionLogValue:
    topics: dict[str, list[int]] = {}
    for tp in transaction.partitions:
        topics.setdefault(tp.topic, []).append(tp.partition)
    rows = [PartitionsSchema(topic=name, partition_ids=numbers) for name, numbers in topics.items()]
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=_previous(transaction),
        next_producer_id=transaction.next_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None if transaction.state is TransactionState.EMPTY else rows,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.version,
    )


def _previous(transaction: TransactionMetadata) -> int:
    """Return the previous id. Brokers of 4.x write the present id if there is no previous one."""
    return transaction.producer_id if transaction.previous_id == NO_ID else transaction.previous_id


def _transaction(transactional_id: str, value: TransactionLogValue) -> TransactionMetadata:
    return TransactionMetadata(
        transactional_id,
        value.producer_id,
        value.transaction_timeout_ms,
        epoch=value.producer_epoch,
        previous_id=value.previous_producer_id,
        next_id=value.next_producer_id,
        state=TransactionState(value.transaction_status),
        partitions=[
            TopicPartition(row.topic, number)
            for row in value.transaction_partitions or ()
            for number in row.partition_ids
        ],
        started_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        version=value.client_transaction_version,
    )


def _versioned(message: Message, version: int) -> bytes:
    return version.to_bytes(2, "big") + b"".join(write_message(message, version))


def _read(kind: type[M], data: bytes) -> M:
    message, _ = read_message(kind.NAME, int.from_bytes(data[:2], "big"), data, 2)
    return cast("M", message)


def write_markers(state: ClusterState, transaction: TransactionMetadata, coordinator_epoch: int) -> bool:
    """Write the marker to every partition that has a live leader; return False if some are left."""
    left = []
    for tp in transaction.partitions:
        partition = state.partition(tp)
        if partition is None:
            continue  # its topic was deleted
        if _writable(state, partition):
            _write(state, partition, transaction, coordinator_epoch)
        else:
            left.append(tp)
    transaction.partitions = left
    return not left


def _writable(state: ClusterState, partition: Partition) -> bool:
    if partition.leader == NO_LEADER:
        return False
    leader = state.brokers[partition.leader]
    return leader.running and not leader.paused


def _write(
    state: ClusterState, partition: Partition, transaction: TransactionMetadata, coordinator_epoch: int
) -> None:
    commit = transaction.state is TransactionState.PREPARE_COMMIT
    marker = build_marker(
        commit=commit,
        offset=0,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        coordinator_epoch=coordinator_epoch,
        timestamp=state.clock.wall_ms(),
    )
    append(state, partition, marker)
    if partition.topic.name == OFFSETS_TOPIC:
        coordinator = groups_of(state.brokers[partition.leader])
        coordinator.complete(partition.number, transaction.producer_id, commit)
