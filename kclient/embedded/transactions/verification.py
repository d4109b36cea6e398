"""A partition leader verifies with the coordinator that a transaction may write to its partition (KIP-890).

A producer of transactions V2 does not send AddPartitionsToTxn: the leader adds the partition with the first write. For
an older producer the leader verifies, from 3.6 on, that the partition was added. Brokers before 3.6 accepted every
write, so a late write left a transaction open for ever.

Older request versions have no PRODUCER_FENCED: `txn_error_code` maps it to INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.partition import NO_LEADER, TRANSACTIONS_TOPIC, Partition
from kclient.embedded.releases import Release
from kclient.embedded.state import ClusterState
from kclient.embedded.transactions.coordinator import TransactionCoordinator, transactions_of
from kclient.embedded.transactions.transaction import V2, ProducerIdAndEpoch
from kclient.group.offsets_topic import offsets_topic_partition
from kclient.protocol.errors import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    INVALID_PRODUCER_EPOCH,
    INVALID_TXN_STATE,
    NOT_COORDINATOR,
    NOT_ENOUGH_REPLICAS,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    PRODUCER_FENCED,
    TRANSACTION_ABORTABLE,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
from kclient.records.batch import Batch
from kclient.types import TopicPartition

FENCED_SINCE: Final = 2  # of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn


def txn_error_code(version: int, exc: ApiError, fenced_since: int) -> int:
    """Return the error code, or the one that older request versions know."""
    if exc.code == PRODUCER_FENCED and version < fenced_since:
        return INVALID_PRODUCER_EPOCH
    return exc.code


PRODUCE_ABORTABLE_SINCE: Final = 11
PRODUCE_ADDS_SINCE: Final = 12
VERIFIED_SINCE: Final = Release.parse("3.6")
RETRIABLE_COORDINATOR_ERRORS: Final = (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    NOT_COORDINATOR,
)


def verify_batch(
    state: ClusterState,
    version: int,
    transactional_id: str | None,
    partition: Partition,
    batch: Batch,
) -> None:
    """Verify that a batch of a Produce request of this version may join its transaction. Raise ApiError otherwise."""
    if transactional_id is None:
        raise ApiError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    producer = ProducerIdAndEpoch(batch.producer_id, batch.producer_epoch)
    if not has_open_transaction(partition, producer):
        adds, knows_abortable = version >= PRODUCE_ADDS_SINCE, version >= PRODUCE_ABORTABLE_SINCE
        verify_or_add_partition(
            state,
            transactional_id,
            producer,
            partition.tp,
            adds=adds,
            knows_abortable=knows_abortable,
        )
        if adds and batch.base_sequence != 0 and producer.producer_id not in partition.log.producers.known:
            raise ApiError(
                OUT_OF_ORDER_SEQUENCE_NUMBER
            )  # a producer whose state was deleted restarts at sequence 0


def has_open_transaction(partition: Partition, producer: ProducerIdAndEpoch) -> bool:
    """Whether the log has an open transaction of the producer: then the partition is verified already."""
    producers = partition.log.producers
    known = producers.known.get(producer.producer_id)
    return known is not None and known.epoch == producer.epoch and producer.producer_id in producers.open


def verify_or_add_partition(
    state: ClusterState,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    tp: TopicPartition,
    *,
    adds: bool,
    knows_abortable: bool,
) -> None:
    """Add a partition to the producer's transaction (`adds`), or verify that it was added. Raise ApiError otherwise.

    `knows_abortable`: whether the request's version has TRANSACTION_ABORTABLE; older ones get INVALID_TXN_STATE.
    """
    if not adds and state.release < VERIFIED_SINCE:
        return
    try:
        coordinator = _coordinator(state, transactional_id)
        if adds:
            coordinator.add_partitions(transactional_id, producer, [tp], V2)
        elif not coordinator.verify_partition(transactional_id, producer, tp):
            raise ApiError(TRANSACTION_ABORTABLE if knows_abortable else INVALID_TXN_STATE)
    except ApiError as exc:
        raise ApiError(_partition_leader_error(exc.code, adds)) from None


def _coordinator(state: ClusterState, transactional_id: str) -> TransactionCoordinator:
    number = offsets_topic_partition(transactional_id, state.settings.transaction_state_log_num_partitions)
    partition = state.partition(TopicPartition(TRANSACTIONS_TOPIC, number))
    if partition is None or partition.leader == NO_LEADER:
        raise ApiError(COORDINATOR_NOT_AVAILABLE)
    broker = state.brokers[partition.leader]
    if not broker.running or broker.paused:
        raise ApiError(COORDINATOR_NOT_AVAILABLE)
    return transactions_of(broker)


def _partition_leader_error(code: int, adds: bool) -> int:
    """Return the error of a partition leader for an error of the coordinator."""
    if code in RETRIABLE_COORDINATOR_ERRORS or (code == CONCURRENT_TRANSACTIONS and not adds):
        return NOT_ENOUGH_REPLICAS
    return INVALID_PRODUCER_EPOCH if code == PRODUCER_FENCED else code
