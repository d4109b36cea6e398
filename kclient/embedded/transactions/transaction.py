"""`TransactionMetadata`: the state of one transactional id, and its transitions.

    Empty ─ add ─▶ Ongoing ─ end ─▶ PrepareCommit, PrepareAbort ─ markers written ─▶ CompleteCommit, CompleteAbort
      ▲               ▲                                                                     │
      └──── init ─────┴───────────────────────────── add ───────────────────────────────────┘

Epochs: every InitProducerId, every fence and, for producers of transactions V2 (KIP-890), every end of a transaction
bumps the producer epoch, so that requests in an older epoch are rejected. The last epoch that a producer gets is
32,766; after it the coordinator assigns another producer id with epoch 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, IntEnum
from typing import Final

import attrs

from kclient.embedded.api_error import ApiError
from kclient.errors import InternalError
from kclient.protocol.errors import CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED
from kclient.types import TopicPartition


class TransactionState(IntEnum):
    """The status in the records of `__transaction_state`."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6


PREPARED: Final = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
AT_REST: Final = (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)

# state → the states that it may follow
VALID_PREVIOUS_STATES: Final = {
    TransactionState.EMPTY: AT_REST,
    TransactionState.ONGOING: (TransactionState.ONGOING, *AT_REST),
    TransactionState.PREPARE_COMMIT: (TransactionState.ONGOING,),
    TransactionState.PREPARE_ABORT: (
        TransactionState.ONGOING,
        *AT_REST,
    ),  # after an end: a producer of V2 may abort before its first write
    TransactionState.COMPLETE_COMMIT: (TransactionState.PREPARE_COMMIT,),
    TransactionState.COMPLETE_ABORT: (TransactionState.PREPARE_ABORT,),
    TransactionState.DEAD: AT_REST,
}


class EndTxnDecision(Enum):
    """The decision on an EndTxn request."""

    PROCEED = "prepare the end"
    DONE = "already ended this way: succeed again"
    CONCURRENT = "an end is in progress: the producer retries"
    INVALID = "not possible in this state"


# state → the decision on a commit, on an abort
END_TXN_V1: Final = {
    TransactionState.EMPTY: (EndTxnDecision.INVALID, EndTxnDecision.INVALID),
    TransactionState.ONGOING: (EndTxnDecision.PROCEED, EndTxnDecision.PROCEED),
    TransactionState.PREPARE_COMMIT: (EndTxnDecision.CONCURRENT, EndTxnDecision.CONCURRENT),
    TransactionState.PREPARE_ABORT: (EndTxnDecision.CONCURRENT, EndTxnDecision.CONCURRENT),
    TransactionState.COMPLETE_COMMIT: (EndTxnDecision.DONE, EndTxnDecision.INVALID),
    TransactionState.COMPLETE_ABORT: (EndTxnDecision.INVALID, EndTxnDecision.DONE),
}

# The same under KIP-890, where a repeated request has the old epoch: after the end, a request in the new epoch is about
# the next transaction, which may be aborted before it began.
END_TXN_V2: Final = {
    TransactionState.EMPTY: (EndTxnDecision.INVALID, EndTxnDecision.PROCEED),
    TransactionState.ONGOING: (EndTxnDecision.PROCEED, EndTxnDecision.PROCEED),
    TransactionState.COMPLETE_COMMIT: (EndTxnDecision.INVALID, EndTxnDecision.PROCEED),
    TransactionState.COMPLETE_ABORT: (EndTxnDecision.INVALID, EndTxnDecision.PROCEED),
}


NO_ID: Final = -1
NO_EPOCH: Final = -1
LAST_EPOCH: Final = 2**15 - 2
V2: Final = 2


@attrs.frozen
class ProducerIdAndEpoch:
    """A producer id in one of its epochs."""

    producer_id: int
    epoch: int


@attrs.define(eq=False)
class TransactionMetadata:
    """See the module. Times in ms since 1970; `version` is the transaction.version of the producer."""

    transactional_id: str
    producer_id: int
    timeout_ms: int
    epoch: int = NO_EPOCH
    last_epoch: int = NO_EPOCH  # the previous epoch, if the producer sent it to get the next one (KIP-360)
    previous_id: int = NO_ID
    next_id: int = NO_ID  # the producer id after the prepared end is complete
    state: TransactionState = TransactionState.EMPTY
    partitions: list[TopicPartition] = attrs.field(factory=list)
    started_ms: int = -1
    updated_ms: int = -1
    version: int = 0

    @property
    def producer(self) -> ProducerIdAndEpoch:
        """What the producer may call itself after the last response to it."""
        return (
            ProducerIdAndEpoch(self.producer_id, self.epoch)
            if self.next_id == NO_ID
            else ProducerIdAndEpoch(self.next_id, 0)
        )

    @property
    def exhausted(self) -> bool:
        """Whether the producer id has no epoch left."""
        return self.epoch >= LAST_EPOCH

    def _transition_to(self, state: TransactionState, now_ms: int) -> None:
        if self.state not in VALID_PREVIOUS_STATES[state]:
            raise InternalError(
                f"{self.transactional_id!r} cannot go from {self.state.name} to {state.name}."
            )
        self.state = state
        self.updated_ms = now_ms

    # --- InitProducerId

    def check_init(self, expected: ProducerIdAndEpoch | None) -> None:
        """Raise ApiError unless a producer with this id and epoch may get the next epoch. KIP-360."""
        if expected is None or self.epoch == NO_EPOCH or expected.producer_id == self.producer_id:
            return
        if expected.producer_id != self.previous_id or expected.epoch < LAST_EPOCH:
            raise ApiError(PRODUCER_FENCED)

    def init(
        self, expected: ProducerIdAndEpoch | None, timeout_ms: int, new_id: Callable[[], int], now_ms: int
    ) -> None:
        """Take the next epoch, or a new producer id; a repeated request has the same result.

        Raise ApiError for an epoch that is neither the present nor the previous one.
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
        self._transition_to(TransactionState.EMPTY, now_ms)

    # --- partitions

    def check_producer(self, producer: ProducerIdAndEpoch) -> None:
        """Raise ApiError unless the request has the present id and epoch and no end is in progress."""
        if self.producer_id != producer.producer_id:
            raise ApiError(INVALID_PRODUCER_ID_MAPPING)
        if self.epoch != producer.epoch:
            raise ApiError(PRODUCER_FENCED)
        self.check_settled()

    def check_settled(self) -> None:
        """Raise ApiError while an end is in progress."""
        if self.state in PREPARED:
            raise ApiError(CONCURRENT_TRANSACTIONS)

    def add(self, partitions: Iterable[TopicPartition], version: int, now_ms: int) -> bool:
        """Add partitions; return False if nothing changed."""
        added = [tp for tp in dict.fromkeys(partitions) if tp not in self.partitions]
        if self.state is TransactionState.ONGOING and not added:
            return False
        if self.state is not TransactionState.ONGOING:
            self.started_ms = now_ms
        self.partitions += added
        self.version = version
        self._transition_to(TransactionState.ONGOING, now_ms)
        return True

    # --- end

    def fence(self, *, recoverable: bool) -> None:
        """Bump the epoch, which fences the producer of the open transaction.

        No producer gets that epoch, unless the fenced one may request it (`recoverable`).
        """
        self.last_epoch = self.epoch if recoverable else NO_EPOCH
        self.epoch += 1

    def end_decision(self, producer: ProducerIdAndEpoch, commit: bool, version: int) -> EndTxnDecision:
        """Return the decision on an EndTxn request. Raise ApiError unless it has the present id and epoch."""
        repeated = version == V2 and self._ended_as(producer)
        if producer.producer_id != self.producer_id and not repeated:
            raise ApiError(INVALID_PRODUCER_ID_MAPPING)
        if producer.epoch != self.epoch and not repeated:
            raise ApiError(PRODUCER_FENCED)
        if version == V2 and self.state in PREPARED and not repeated:
            raise ApiError(PRODUCER_FENCED)
        table = END_TXN_V2 if version == V2 and not repeated else END_TXN_V1
        return table[self.state][0 if commit else 1]

    def _ended_as(self, producer: ProducerIdAndEpoch) -> bool:
        """Whether the last end bumped this epoch: the producer repeats a request that succeeded."""
        if self.state not in (*PREPARED, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
            return False
        if self.epoch == 0 and producer.epoch == LAST_EPOCH:
            return producer.producer_id == self.previous_id
        return producer.producer_id == self.producer_id and producer.epoch == self.epoch - 1

    def bump(self, new_id: Callable[[], int]) -> None:
        """Bump the epoch with the end of a transaction; after the last epoch a new id follows. KIP-890."""
        self.version = V2
        self.next_id = new_id() if self.exhausted else NO_ID
        self.last_epoch, self.epoch = self.epoch, self.epoch + 1

    def prepare(self, commit: bool, now_ms: int) -> None:
        """Prepare the end; the markers are written next."""
        if self.started_ms < 0:
            self.started_ms = now_ms
        self._transition_to(
            TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT, now_ms
        )

    def complete(self, now_ms: int) -> None:
        """Complete the end: every marker is written."""
        if self.next_id != NO_ID:
            self.previous_id, self.producer_id, self.next_id, self.epoch = (
                self.producer_id,
                self.next_id,
                NO_ID,
                0,
            )
        self.partitions = []
        committed = self.state is TransactionState.PREPARE_COMMIT
        self._transition_to(
            TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT, now_ms
        )

    def expire(self, now_ms: int) -> None:
        """Expire the id: it was unused for transactional.id.expiration.ms."""
        self._transition_to(TransactionState.DEAD, now_ms)
