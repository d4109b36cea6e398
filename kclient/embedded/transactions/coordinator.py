"""Which transactional ids a broker coordinates: those whose partition of `__transaction_state` it leads.

They live in memory and, as records, in that partition. A broker that becomes its leader reads them back from there and
goes on where the one before it stopped: a transaction whose end was prepared gets its markers, an open one its time.
Each id has one timer, which its state sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.clock import Timer
from kclient.embedded.releases import Release
from kclient.embedded.replication import append
from kclient.embedded.state import TRANSACTIONS_TOPIC, ClusterState, Partition
from kclient.embedded.transactions.markers import write_markers
from kclient.embedded.transactions.records import read_log, to_record
from kclient.embedded.transactions.states import PREPARED, State
from kclient.embedded.transactions.transaction import Transaction
from kclient.group.offsets_topic import offsets_topic_partition
from kclient.protocol.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_REQUEST,
    NOT_COORDINATOR,
)
from kclient.records.writer import build_batch
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.embedded.broker import Broker

V2_SINCE: Final = Release.parse("4.0")
AGAIN_SECONDS: Final = 0.1


class TransactionCoordinator:
    """One broker's transactional ids. Raises `ApiError` wherever one is not to be had here."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.transactions: dict[str, Transaction] = {}
        self._waiting: dict[int, tuple[int, Timer]] = {}  # led, but not read yet: what is answered meanwhile
        self._timers: dict[str, Timer] = {}

    @property
    def state(self) -> ClusterState:
        """The cluster's state."""
        return self.broker.state

    def new_producer_id(self) -> int:
        """One that nobody had before."""
        self.state.next_producer_id += 1
        return self.state.next_producer_id - 1

    # --- finding

    def check(self, transactional_id: str | None) -> Partition:
        """The partition that holds an id, if this broker leads it and may write to it."""
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

    def known(self, transactional_id: str) -> Transaction:
        """What is known of an id that has been initialised."""
        self.check(transactional_id)
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            raise ApiError(INVALID_PRODUCER_ID_MAPPING)
        return transaction

    # --- keeping

    def save(self, transaction: Transaction) -> None:
        """Write down what an id has become, and see to what follows from it."""
        partition = self.check(transaction.transactional_id)
        record = to_record(transaction, 1 if self.state.release >= V2_SINCE else 0)
        append(self.state, partition, build_batch([record]))
        self.transactions[transaction.transactional_id] = transaction
        if transaction.state is State.DEAD:
            del self.transactions[transaction.transactional_id]
        self._set_timer(transaction)

    def abort(self, transaction: Transaction) -> None:
        """Shut the producer out and abort its open transaction."""
        transaction.fence(recoverable=self.state.release >= V2_SINCE)
        transaction.prepare(False, self.state.clock.wall_ms())
        self.save(transaction)

    # --- partitions come and go

    def leader_changed(self, partition: Partition) -> None:
        """Load a partition that this broker leads now, forget one that it leads no more."""
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

    # --- time

    def _set_timer(self, transaction: Transaction) -> None:
        transactional_id = transaction.transactional_id
        if transactional_id in self._timers:
            self._timers.pop(transactional_id).cancel()
        if transaction.state is not State.DEAD:
            self.call_later(transaction, self._seconds_left(transaction))

    def call_later(self, transaction: Transaction, seconds: float) -> None:
        """Look at an id again after so long."""
        timer = self.broker.call_later(seconds, lambda: self._due(transaction))
        self._timers[transaction.transactional_id] = timer

    def _seconds_left(self, transaction: Transaction) -> float:
        if transaction.state in PREPARED:
            return self.state.marker_delay
        if transaction.state is State.ONGOING:
            due_ms = transaction.started_ms + transaction.timeout_ms
        else:
            due_ms = transaction.updated_ms + self.state.settings.transactional_id_expiration_ms
        return max(0, due_ms - self.state.clock.wall_ms()) / 1000

    def _due(self, transaction: Transaction) -> None:
        """Its time is over, or its markers are due: do that, or try again when this is possible."""
        now_ms = self.state.clock.wall_ms()
        try:
            partition = self.check(transaction.transactional_id)
        except ApiError:
            self.call_later(transaction, AGAIN_SECONDS)
            return
        if transaction.state in PREPARED:
            if not write_markers(self.state, transaction, partition.leader_epoch):
                self.call_later(transaction, AGAIN_SECONDS)
                return
            transaction.complete(now_ms)
        elif transaction.state is State.ONGOING:
            self.abort(transaction)
            return
        else:
            transaction.expire(now_ms)
        self.save(transaction)
