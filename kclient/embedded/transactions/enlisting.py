"""The leader of a partition asks the coordinator about a transaction that writes there for the first time. KIP-890.

A producer of transactions V2 has not added the partition: the leader does so now. Of an older one the leader makes sure
that it has, from 3.6 on; before that brokers took whatever came, and a write that was late left a transaction open for
ever.
"""

from __future__ import annotations

from typing import Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.releases import Release
from kclient.embedded.request_context import RequestContext
from kclient.embedded.state import NO_LEADER, TRANSACTIONS_TOPIC, ClusterState, Partition
from kclient.embedded.transactions import calls
from kclient.embedded.transactions.coordinator import TransactionCoordinator
from kclient.embedded.transactions.transaction import V2, Producer
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

PRODUCE_ABORTABLE_SINCE: Final = 11
PRODUCE_ADDS_SINCE: Final = 12
VERIFIED_SINCE: Final = Release.parse("3.6")
ASK_AGAIN: Final = (COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR)


def enlist_batch(
    call: RequestContext, transactional_id: str | None, partition: Partition, batch: Batch
) -> None:
    """See to it that a batch of a Produce request may go into its transaction. Raises ApiError."""
    if transactional_id is None:
        raise ApiError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    producer = Producer(batch.producer_id, batch.producer_epoch)
    if not writes_already(partition, producer):
        adds, knows_abortable = call.version >= PRODUCE_ADDS_SINCE, call.version >= PRODUCE_ABORTABLE_SINCE
        enlist(
            call.state,
            transactional_id,
            producer,
            partition.tp,
            adds=adds,
            knows_abortable=knows_abortable,
        )
        if adds and batch.base_sequence != 0 and producer.producer_id not in partition.log.producers.known:
            raise ApiError(
                OUT_OF_ORDER_SEQUENCE_NUMBER
            )  # whose records are gone from the log must begin anew


def writes_already(partition: Partition, producer: Producer) -> bool:
    """Whether the log holds an open transaction of the producer, so that nobody needs to be asked."""
    producers = partition.log.producers
    known = producers.known.get(producer.producer_id)
    return known is not None and known.epoch == producer.epoch and producer.producer_id in producers.open


def enlist(
    state: ClusterState,
    transactional_id: str,
    producer: Producer,
    tp: TopicPartition,
    *,
    adds: bool,
    knows_abortable: bool,
) -> None:
    """Make a partition part of the producer's transaction (`adds`), or see that it is. Raises ApiError.

    `knows_abortable`: whether the request's version has TRANSACTION_ABORTABLE; older ones are told INVALID_TXN_STATE.
    """
    if not adds and state.release < VERIFIED_SINCE:
        return
    try:
        coordinator = _coordinator(state, transactional_id)
        if adds:
            calls.add(coordinator, transactional_id, producer, [tp], V2)
        elif not calls.verify(coordinator, transactional_id, producer, tp):
            raise ApiError(TRANSACTION_ABORTABLE if knows_abortable else INVALID_TXN_STATE)
    except ApiError as exc:
        raise ApiError(_as_leaders_say(exc.code, adds)) from None


def _coordinator(state: ClusterState, transactional_id: str) -> TransactionCoordinator:
    number = offsets_topic_partition(transactional_id, state.settings.transaction_state_log_num_partitions)
    partition = state.partition(TopicPartition(TRANSACTIONS_TOPIC, number))
    if partition is None or partition.leader == NO_LEADER:
        raise ApiError(COORDINATOR_NOT_AVAILABLE)
    broker = state.brokers[partition.leader]
    if not broker.running or broker.paused:
        raise ApiError(COORDINATOR_NOT_AVAILABLE)
    return broker.transactions


def _as_leaders_say(code: int, adds: bool) -> int:
    """Producers expect the errors of a partition's leader, not those of a coordinator."""
    if code in ASK_AGAIN or (code == CONCURRENT_TRANSACTIONS and not adds):
        return NOT_ENOUGH_REPLICAS
    return INVALID_PRODUCER_EPOCH if code == PRODUCER_FENCED else code
