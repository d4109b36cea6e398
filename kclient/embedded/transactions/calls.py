"""What producers, and the brokers they write to, ask of the coordinator. Whatever is not granted raises `ApiError`.

init → (add → end)*        transactions V1: the producer adds every partition, and the group it commits for
init → (write → end)*      transactions V2 (KIP-890): the leader that is written to adds its partition
"""

from __future__ import annotations

from collections.abc import Sequence

from kclient.embedded.api_error import ApiError
from kclient.embedded.transactions.coordinator import V2_SINCE, TransactionCoordinator
from kclient.embedded.transactions.states import State, Verdict
from kclient.embedded.transactions.transaction import V2, Producer, Transaction
from kclient.protocol.errors import (
    CONCURRENT_TRANSACTIONS,
    INVALID_REQUEST,
    INVALID_TRANSACTION_TIMEOUT,
    INVALID_TXN_STATE,
)
from kclient.types import TopicPartition


def init(
    coordinator: TransactionCoordinator, transactional_id: str, timeout_ms: int, expected: Producer | None
) -> Producer:
    """The id and epoch that a producer writes with from now on; whoever had the id before is shut out.

    An open transaction is aborted first, and the producer asks again. `expected` is what the producer believes to be
    (KIP-360): then it is refused if somebody else took over.
    """
    state = coordinator.state
    if not transactional_id:
        raise ApiError(INVALID_REQUEST)
    if not 0 < timeout_ms <= state.settings.transaction_max_timeout_ms:
        raise ApiError(INVALID_TRANSACTION_TIMEOUT)
    coordinator.check(transactional_id)
    transaction = coordinator.transactions.get(transactional_id)
    if transaction is None:
        transaction = Transaction(transactional_id, coordinator.new_producer_id(), timeout_ms)
    transaction.check_settled()
    transaction.check_init(expected)
    if transaction.state is State.ONGOING:
        coordinator.abort(transaction)
        raise ApiError(CONCURRENT_TRANSACTIONS)
    transaction.init(expected, timeout_ms, coordinator.new_producer_id, state.clock.wall_ms())
    coordinator.save(transaction)
    return transaction.producer


def add(
    coordinator: TransactionCoordinator,
    transactional_id: str,
    producer: Producer,
    partitions: Sequence[TopicPartition],
    version: int = 0,
) -> None:
    """Let the producer's transaction write to these partitions; the first ones begin it."""
    transaction = coordinator.known(transactional_id)
    if coordinator.state.release >= V2_SINCE:
        transaction.check_settled()  # an end may bring another id, which the producer knows already
    transaction.check_producer(producer)
    if transaction.add(partitions, version, coordinator.state.clock.wall_ms()):
        coordinator.save(transaction)


def verify(
    coordinator: TransactionCoordinator, transactional_id: str, producer: Producer, tp: TopicPartition
) -> bool:
    """Whether the producer's transaction may write to a partition."""
    transaction = coordinator.known(transactional_id)
    transaction.check_producer(producer)
    return tp in transaction.partitions


def end(
    coordinator: TransactionCoordinator,
    transactional_id: str,
    producer: Producer,
    commit: bool,
    version: int = 0,
) -> Producer:
    """Commit or abort: it is decided when this returns, the markers follow. What the producer is called from now on."""
    transaction = coordinator.known(transactional_id)
    verdict = transaction.verdict(producer, commit, version)
    if verdict is Verdict.INVALID:
        raise ApiError(INVALID_TXN_STATE)
    if verdict is Verdict.CONCURRENT:
        raise ApiError(CONCURRENT_TRANSACTIONS)
    if verdict is Verdict.PROCEED:
        if version == V2:
            transaction.bump(coordinator.new_producer_id)
        transaction.prepare(commit, coordinator.state.clock.wall_ms())
        coordinator.save(transaction)
    return transaction.producer
