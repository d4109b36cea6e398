"""The producer state of a log: sequences of idempotent producers, open and aborted transactions.

A batch that was appended before is recognized by its sequences among the last five of its producer. The last stable
offset is where the oldest transaction begins that is open, or whose end has not reached all in-sync replicas yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.releases import Release
from kclient.protocol.errors import (
    INVALID_PRODUCER_EPOCH,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_PRODUCER_ID,
)
from kclient.records.aborted import control_type
from kclient.records.batch import Batch
from kclient.records.sections import MAX_DECOMPRESSED_BATCH_BYTES

REMEMBERED_BATCHES: Final = 5
SEQUENCES: Final = 2**31
ABORT: Final = 0
COMMIT: Final = 1


@attrs.define(eq=False)
class ProducerStateEntry:
    """One producer id: its epoch and its last batches."""

    epoch: int
    recent: deque[Batch] = attrs.field(factory=lambda: deque(maxlen=REMEMBERED_BATCHES))


@attrs.frozen
class AbortedTxn:
    """A transaction that was aborted: its first offset and that of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


class ProducerStateManager:
    """The producers of one log."""

    def __init__(self) -> None:
        self.known: dict[int, ProducerStateEntry] = {}
        self.open: dict[int, int] = {}  # producer id → first offset of its open transaction
        self.aborted: list[AbortedTxn] = []
        self._ended: dict[
            int, int
        ] = {}  # first offset of a transaction → its marker's, until that is replicated

    @classmethod
    def replayed(cls, headers: Iterable[Batch]) -> ProducerStateManager:
        """Return the producer state of these batches, as after a truncation."""
        producers = cls()
        for header in headers:
            producers.record(header)
        return producers

    # --- sequences

    def check(self, header: Batch, release: Release) -> Batch | None:
        """Whether a batch of an idempotent producer comes next; the earlier batch if it is a repetition of that.

        Raise ApiError. See KIP-98, KIP-360.
        """
        producer = self.known.get(header.producer_id)
        if producer is None:
            if header.base_sequence != 0 and release < Release.parse("2.5"):
                early = release < Release.parse("1.0")
                raise ApiError(OUT_OF_ORDER_SEQUENCE_NUMBER if early else UNKNOWN_PRODUCER_ID)
            return None
        if header.producer_epoch < producer.epoch:
            raise ApiError(INVALID_PRODUCER_EPOCH)
        if (earlier := _repeated(producer, header)) is not None:
            return earlier
        if header.base_sequence != _next_sequence(producer, header):
            raise ApiError(OUT_OF_ORDER_SEQUENCE_NUMBER)
        return None

    # --- transactions

    def record(self, header: Batch) -> None:
        """Update the producer state with an appended batch."""
        if header.producer_id < 0:
            return
        producer = self.known.setdefault(header.producer_id, ProducerStateEntry(header.producer_epoch))
        if header.producer_epoch > producer.epoch:
            producer.epoch = header.producer_epoch
            producer.recent.clear()
        if header.is_control:
            self._end(header)
            return
        if header.base_sequence >= 0:
            producer.recent.append(header)
        if header.is_transactional:
            self.open.setdefault(header.producer_id, header.base_offset)

    def _end(self, marker: Batch) -> None:
        kind = control_type(marker, MAX_DECOMPRESSED_BATCH_BYTES)
        if kind not in (ABORT, COMMIT) or marker.producer_id not in self.open:
            return
        first = self.open.pop(marker.producer_id)
        self._ended[first] = marker.last_offset
        if kind == ABORT:
            self.aborted.append(AbortedTxn(marker.producer_id, first, marker.last_offset))

    def first_unstable(self, high_watermark: int) -> int | None:
        """Return the first offset of the oldest transaction that is open or not fully replicated."""
        if self._ended:
            self._ended = {first: end for first, end in self._ended.items() if end >= high_watermark}
        return min([*self.open.values(), *self._ended], default=None)

    def aborted_in(self, start: int, end: int) -> list[AbortedTxn]:
        """The aborted transactions that reach into the offsets from `start` to before `end`."""
        return [one for one in self.aborted if one.last_offset >= start and one.first_offset < end]


def _repeated(producer: ProducerStateEntry, header: Batch) -> Batch | None:
    for earlier in producer.recent:
        if (
            earlier.producer_epoch == header.producer_epoch
            and earlier.base_sequence == header.base_sequence
            and earlier.last_sequence == header.last_sequence
        ):
            return earlier
    return None


def _next_sequence(producer: ProducerStateEntry, header: Batch) -> int:
    """The sequence that must come; a new epoch begins at 0, and so does one of which nothing is remembered."""
    if header.producer_epoch != producer.epoch or not producer.recent:
        return 0
    return (producer.recent[-1].last_sequence + 1) % SEQUENCES
