"""What the coordinator knows of one transactional id, and the only ways in which it changes.

Epochs: every InitProducerId, every fence and, for producers of transactions V2 (KIP-890), every end of a transaction
takes the next epoch, so that whatever an older epoch still sends is refused. The last epoch that a producer is given is
32,766: behind it comes another producer id with epoch 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.transactions.states import ENDING, ENDING_NEXT, FOLLOWS, PREPARED, State, Verdict
from kclient.errors import InternalError
from kclient.protocol.errors import CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED
from kclient.types import TopicPartition

NO_ID: Final = -1
NO_EPOCH: Final = -1
LAST_EPOCH: Final = 2**15 - 2
V2: Final = 2


@attrs.frozen
class Producer:
    """A producer id in one of its epochs."""

    producer_id: int
    epoch: int


@attrs.define(eq=False)
class Transaction:
    """See the module. Times in ms since 1970; `version` is the transaction.version that the producer speaks."""

    transactional_id: str
    producer_id: int
    timeout_ms: int
    epoch: int = NO_EPOCH
    last_epoch: int = NO_EPOCH  # the one before, if the producer asked for the next with it (KIP-360)
    previous_id: int = NO_ID
    next_id: int = NO_ID  # takes over when the prepared end is complete
    state: State = State.EMPTY
    partitions: list[TopicPartition] = attrs.field(factory=list)
    started_ms: int = -1
    updated_ms: int = -1
    version: int = 0

    @property
    def producer(self) -> Producer:
        """What the producer may call itself after the last answer to it."""
        return Producer(self.producer_id, self.epoch) if self.next_id == NO_ID else Producer(self.next_id, 0)

    @property
    def exhausted(self) -> bool:
        """Whether no epoch is left that a producer could be given."""
        return self.epoch >= LAST_EPOCH

    def _become(self, state: State, now_ms: int) -> None:
        if self.state not in FOLLOWS[state]:
            raise InternalError(
                f"{self.transactional_id!r} cannot go from {self.state.name} to {state.name}."
            )
        self.state = state
        self.updated_ms = now_ms

    # --- InitProducerId

    def check_init(self, expected: Producer | None) -> None:
        """Whether somebody with this id and epoch may have the next one. Raises ApiError. KIP-360."""
        if expected is None or self.epoch == NO_EPOCH or expected.producer_id == self.producer_id:
            return
        if expected.producer_id != self.previous_id or expected.epoch < LAST_EPOCH:
            raise ApiError(PRODUCER_FENCED)

    def init(
        self, expected: Producer | None, timeout_ms: int, new_id: Callable[[], int], now_ms: int
    ) -> None:
        """Begin anew in the next epoch, or under the new id; the same request twice has the same result.

        Raises ApiError for an epoch that is neither the present one nor the one before.
        """
        if self.exhausted and (expected is None or expected.epoch == self.epoch):
            self.last_epoch = NO_EPOCH if expected is None else self.epoch
            self.previous_id, self.producer_id, self.epoch = self.producer_id, new_id(), 0
        elif expected is None or expected.epoch == self.epoch or self.epoch == NO_EPOCH:
            self.last_epoch = NO_EPOCH if expected is None else self.epoch
            self.epoch += 1
        elif expected.epoch != self.last_epoch:
            raise ApiError(PRODUCER_FENCED)
        self.timeout_ms, self.started_ms = timeout_ms, -1
        self._become(State.EMPTY, now_ms)

    # --- partitions

    def check_producer(self, producer: Producer) -> None:
        """Whether a request comes from the producer of now, at a time when it may write. Raises ApiError."""
        if self.producer_id != producer.producer_id:
            raise ApiError(INVALID_PRODUCER_ID_MAPPING)
        if self.epoch != producer.epoch:
            raise ApiError(PRODUCER_FENCED)
        self.check_settled()

    def check_settled(self) -> None:
        """Whether no end is under way. Raises ApiError."""
        if self.state in PREPARED:
            raise ApiError(CONCURRENT_TRANSACTIONS)

    def add(self, partitions: Iterable[TopicPartition], version: int, now_ms: int) -> bool:
        """Let the transaction write there; False if it could already."""
        added = [tp for tp in dict.fromkeys(partitions) if tp not in self.partitions]
        if self.state is State.ONGOING and not added:
            return False
        if self.state is not State.ONGOING:
            self.started_ms = now_ms
        self.partitions += added
        self.version = version
        self._become(State.ONGOING, now_ms)
        return True

    # --- its end

    def fence(self, *, recoverable: bool) -> None:
        """Take the next epoch: the producer that has an open transaction is shut out.

        Nobody is given that epoch, unless the producer of before may ask for it (`recoverable`).
        """
        self.last_epoch = self.epoch if recoverable else NO_EPOCH
        self.epoch += 1

    def verdict(self, producer: Producer, commit: bool, version: int) -> Verdict:
        """What becomes of the producer's request to end its transaction. Raises ApiError if it is not the producer."""
        repeated = version == V2 and self._ended_as(producer)
        if producer.producer_id != self.producer_id and not repeated:
            raise ApiError(INVALID_PRODUCER_ID_MAPPING)
        if producer.epoch != self.epoch and not repeated:
            raise ApiError(PRODUCER_FENCED)
        if version == V2 and self.state in PREPARED and not repeated:
            raise ApiError(PRODUCER_FENCED)
        table = ENDING_NEXT if version == V2 and not repeated else ENDING
        return table[self.state][0 if commit else 1]

    def _ended_as(self, producer: Producer) -> bool:
        """Whether the last end took the epoch behind this one: the producer asks again for what is done."""
        if self.state not in (*PREPARED, State.COMPLETE_COMMIT, State.COMPLETE_ABORT):
            return False
        if self.epoch == 0 and producer.epoch == LAST_EPOCH:
            return producer.producer_id == self.previous_id
        return producer.producer_id == self.producer_id and producer.epoch == self.epoch - 1

    def bump(self, new_id: Callable[[], int]) -> None:
        """Take the next epoch with the end of a transaction, or a new id with the last one. KIP-890."""
        self.version = V2
        self.next_id = new_id() if self.exhausted else NO_ID
        self.last_epoch, self.epoch = self.epoch, self.epoch + 1

    def prepare(self, commit: bool, now_ms: int) -> None:
        """The end is decided: what is left are the markers."""
        if self.started_ms < 0:
            self.started_ms = now_ms
        self._become(State.PREPARE_COMMIT if commit else State.PREPARE_ABORT, now_ms)

    def complete(self, now_ms: int) -> None:
        """Every marker is written."""
        if self.next_id != NO_ID:
            self.previous_id, self.producer_id, self.next_id, self.epoch = (
                self.producer_id,
                self.next_id,
                NO_ID,
                0,
            )
        self.partitions = []
        committed = self.state is State.PREPARE_COMMIT
        self._become(State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT, now_ms)

    def expire(self, now_ms: int) -> None:
        """Nobody used the id for too long."""
        self._become(State.DEAD, now_ms)
