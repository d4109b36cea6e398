"""The transaction coordinator of a broker: the transactional ids whose partition of `__transaction_state` it leads.

Their state is in memory and, as records, in that partition. A new leader of the partition reads it back and continues:
it writes the markers of a prepared end, and restarts the timeout of an open transaction. Each id has one timer, which
its state sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.clock import Timer
from kclient.embedded.partition import TRANSACTIONS_TOPIC, Partition
from kclient.embedded.releases import Release
from kclient.embedded.replication import append
from kclient.embedded.state import BrokerState, ClusterState
from kclient.embedded.transactions.records import read_log, to_record, write_markers
from kclient.embedded.transactions.transaction import (
    PREPARED,
    V2,
    EndTxnDecision,
    ProducerIdAndEpoch,
    TransactionMetadata,
    TransactionState,
)
from kclient.group.offsets_topic import offsets_topic_partition
from kclient.protocol.errors import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_REQUEST,
    INVALID_TRANSACTION_TIMEOUT,
    INVALID_TXN_STATE,
    NOT_COORDINATOR,
)
from kclient.records.writer import build_batch
from kclient.types import TopicPartition

V2_SINCE: Final = Release.parse("4.0")
RETRY_SECONDS: Final = 0.1


class TransactionCoordinator:
    """The transactional ids of one broker. Its methods raise `ApiError` for an id that it does not coordinate."""

    def __init__(self, broker: BrokerState) -> None:
        self.broker = broker
        self.transactions: dict[str, TransactionMetadata] = {}
        self._waiting: dict[
            int, tuple[int, Timer]
        ] = {}  # leader, but not loaded yet: the error code until then
        self._timers: dict[str, Timer] = {}

    @property
    def state(self) -> ClusterState:
        """The cluster's state."""
        return self.broker.state

    def new_producer_id(self) -> int:
        """Return a new, unique producer id."""
        self.state.next_producer_id += 1
        return self.state.next_producer_id - 1

    # --- lookup

    def check(self, transactional_id: str | None) -> Partition:
        """Return the partition of a transactional id. Raise ApiError unless this broker leads it and can write."""
        if not transactional_id:
            raise ApiError(INVALID_REQUEST)
        settings = self.state.settings
        number = offsets_topic_partition(transactional_id, settings.transaction_state_log_num_partitions)
        partition = self.state.partition(TopicPartition(TRANSACTIONS_TOPIC, number))
        if partition is None or partition.leader != self.broker.node_id:
            raise ApiError(NOT_COORDINATOR)
        if number in self._waiting:
            raise ApiError(self._waiting[number][0])
        if len(partition.isr) < settings.transaction_state_log_min_isr:
            raise ApiError(COORDINATOR_NOT_AVAILABLE)
        return partition

    def known(self, transactional_id: str) -> TransactionMetadata:
        """Return the state of an initialized id. Raise ApiError for an unknown one."""
        self.check(transactional_id)
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            raise ApiError(INVALID_PRODUCER_ID_MAPPING)
        return transaction

    # --- requests

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdAndEpoch | None
    ) -> ProducerIdAndEpoch:
        """Return the producer id and epoch to write with from now on; every older epoch of the id is fenced.

        An open transaction is aborted first, and the producer retries. With `expected`, the producer's present id and
        epoch (KIP-360), a producer that another one has replaced is fenced.
        """
        state = self.state
        if not transactional_id:
            raise ApiError(INVALID_REQUEST)
        if not 0 < timeout_ms <= state.settings.transaction_max_timeout_ms:
            raise ApiError(INVALID_TRANSACTION_TIMEOUT)
        self.check(transactional_id)
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            transaction = TransactionMetadata(transactional_id, self.new_producer_id(), timeout_ms)
        transaction.check_settled()
        transaction.check_init(expected)
        if transaction.state is TransactionState.ONGOING:
            self.abort(transaction)
            raise ApiError(CONCURRENT_TRANSACTIONS)
        transaction.init(expected, timeout_ms, self.new_producer_id, state.clock.wall_ms())
        self.save(transaction)
        return transaction.producer

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Sequence[TopicPartition],
        version: int = 0,
    ) -> None:
        """Add partitions to the producer's transaction; the first ones begin it."""
        transaction = self.known(transactional_id)
        if self.state.release >= V2_SINCE:
            transaction.check_settled()  # the end may assign another id, which the producer already has
        transaction.check_producer(producer)
        if transaction.add(partitions, version, self.state.clock.wall_ms()):
            self.save(transaction)

    def verify_partition(
        self, transactional_id: str, producer: ProducerIdAndEpoch, tp: TopicPartition
    ) -> bool:
        """Return whether a partition is part of the producer's transaction."""
        transaction = self.known(transactional_id)
        transaction.check_producer(producer)
        return tp in transaction.partitions

    def end_transaction(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        commit: bool,
        version: int = 0,
    ) -> ProducerIdAndEpoch:
        """Commit or abort: prepared when this returns, the markers follow. Return the producer's next id and epoch."""
        transaction = self.known(transactional_id)
        decision = transaction.end_decision(producer, commit, version)
        if decision is EndTxnDecision.INVALID:
            raise ApiError(INVALID_TXN_STATE)
        if decision is EndTxnDecision.CONCURRENT:
            raise ApiError(CONCURRENT_TRANSACTIONS)
        if decision is EndTxnDecision.PROCEED:
            if version == V2:
                transaction.bump(self.new_producer_id)
            transaction.prepare(commit, self.state.clock.wall_ms())
            self.save(transaction)
        return transaction.producer

    # --- writing

    def save(self, transaction: TransactionMetadata) -> None:
        """Write the state of an id to the log, and set its timer."""
        partition = self.check(transaction.transactional_id)
        record = to_record(transaction, 1 if self.state.release >= V2_SINCE else 0)
        append(self.state, partition, build_batch([record]))
        self.transactions[transaction.transactional_id] = transaction
        if transaction.state is TransactionState.DEAD:
            del self.transactions[transaction.transactional_id]
        self._set_timer(transaction)

    def abort(self, transaction: TransactionMetadata) -> None:
        """Fence the producer and abort its open transaction."""
        transaction.fence(recoverable=self.state.release >= V2_SINCE)
        transaction.prepare(False, self.state.clock.wall_ms())
        self.save(transaction)

    # --- leadership

    def leader_changed(self, partition: Partition) -> None:
        """Load a partition that this broker leads now; drop the state of one that it no longer leads."""
        self._forget(partition.number)
        if partition.leader != self.broker.node_id:
            return
        fresh = partition.leader_epoch == 0
        seconds = self.state.coordinator_start_seconds if fresh else self.state.coordinator_load_seconds
        if seconds <= 0:
            self._load(partition)
            return
        timer = self.broker.call_later(seconds, lambda: self._load(partition))
        self._waiting[partition.number] = NOT_COORDINATOR if fresh else COORDINATOR_LOAD_IN_PROGRESS, timer

    def _load(self, partition: Partition) -> None:
        self._waiting.pop(partition.number, None)
        found = read_log(partition.log)
        self.transactions.update(found)
        for transaction in found.values():
            self._set_timer(transaction)

    def _forget(self, number: int) -> None:
        if number in self._waiting:
            self._waiting.pop(number)[1].cancel()
        count = self.state.settings.transaction_state_log_num_partitions
        for transactional_id in list(self.transactions):
            if offsets_topic_partition(transactional_id, count) == number:
                self.transactions.pop(transactional_id)
                self._timers.pop(transactional_id).cancel()

    # --- timers

    def _set_timer(self, transaction: TransactionMetadata) -> None:
        transactional_id = transaction.transactional_id
        if transactional_id in self._timers:
            self._timers.pop(transactional_id).cancel()
        if transaction.state is not TransactionState.DEAD:
            self.call_later(transaction, self._seconds_left(transaction))

    def call_later(self, transaction: TransactionMetadata, seconds: float) -> None:
        """Set the timer of an id."""
        timer = self.broker.call_later(seconds, lambda: self._due(transaction))
        self._timers[transaction.transactional_id] = timer

    def _seconds_left(self, transaction: TransactionMetadata) -> float:
        if transaction.state in PREPARED:
            return self.state.marker_delay
        if transaction.state is TransactionState.ONGOING:
            due_ms = transaction.started_ms + transaction.timeout_ms
        else:
            due_ms = transaction.updated_ms + self.state.settings.transactional_id_expiration_ms
        return max(0, due_ms - self.state.clock.wall_ms()) / 1000

    def _due(self, transaction: TransactionMetadata) -> None:
        """Write the markers of a prepared end, abort a timed-out transaction, or expire the id; retry on failure."""
        now_ms = self.state.clock.wall_ms()
        try:
            partition = self.check(transaction.transactional_id)
        except ApiError:
            self.call_later(transaction, RETRY_SECONDS)
            return
        if transaction.state in PREPARED:
            if not write_markers(self.state, transaction, partition.leader_epoch):
                self.call_later(transaction, RETRY_SECONDS)
                return
            transaction.complete(now_ms)
        elif transaction.state is TransactionState.ONGOING:
            self.abort(transaction)
            return
        else:
            transaction.expire(now_ms)
        self.save(transaction)


def transactions_of(broker: BrokerState) -> TransactionCoordinator:
    """Return the transaction coordinator of a broker."""
    return broker.broker_local(TransactionCoordinator, lambda: TransactionCoordinator(broker))
