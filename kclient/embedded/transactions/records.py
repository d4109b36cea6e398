"""Transactional ids as records of `__transaction_state`, written and read back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar, cast

from kclient.embedded.log import Log
from kclient.embedded.transactions.states import State
from kclient.embedded.transactions.transaction import NO_ID, Transaction
from kclient.generated.transaction_log_key import TransactionLogKey
from kclient.generated.transaction_log_value import PartitionsSchema, TransactionLogValue
from kclient.protocol.message import Message
from kclient.protocol.registry import read_message, write_message
from kclient.records.sections import columns_for, open_batch
from kclient.records.writer import NewRecord
from kclient.types import TopicPartition

KEY_VERSION: Final = 0
M = TypeVar("M", bound=Message)


def to_record(transaction: Transaction, value_version: int) -> NewRecord:
    """What is appended when a transactional id has changed; a tombstone for one that is dead."""
    key = TransactionLogKey(transactional_id=transaction.transactional_id)
    value = None if transaction.state is State.DEAD else _versioned(_value(transaction), value_version)
    return NewRecord(_versioned(key, KEY_VERSION), value, transaction.updated_ms)


def read_log(log: Log) -> dict[str, Transaction]:
    """What a log says of its transactional ids."""
    found: dict[str, Transaction] = {}
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


def _value(transaction: Transaction) -> TransactionLogValue:
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
        transaction_partitions=None if transaction.state is State.EMPTY else rows,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.version,
    )


def _previous(transaction: Transaction) -> int:
    """Brokers of 4.x write the present id where there was none before."""
    return transaction.producer_id if transaction.previous_id == NO_ID else transaction.previous_id


def _transaction(transactional_id: str, value: TransactionLogValue) -> Transaction:
    return Transaction(
        transactional_id,
        value.producer_id,
        value.transaction_timeout_ms,
        epoch=value.producer_epoch,
        previous_id=value.previous_producer_id,
        next_id=value.next_producer_id,
        state=State(value.transaction_status),
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
