"""Transactions of several producers, interleaved: committed, aborted, or open for long, which stops readers (F-43).

Batches and markers go straight into the logs. A truncation may cut off a marker: the transaction is open again then,
and is ended once more in the same way, so what a reader has seen of it stays right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from kclient.embedded.partition import Partition
from kclient.embedded.replication import append
from kclient.records.writer import build_marker
from kclient.types import TopicPartition
from tests.simulation.ledger import ABORTED, OPEN, VISIBLE, Row

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

PRODUCERS: Final = 4
FIRST_PRODUCER_ID: Final = 7_000
SECONDS: Final = (0.05, 0.5, 0.5, 2.0, 2.0, 8.0, 25.0)


@attrs.define(eq=False)
class Transaction:
    """One that is open in some partitions."""

    producer_id: int
    ends_at: float
    commits: bool
    rows: dict[TopicPartition, list[Row]] = attrs.field(factory=dict)


class Transactions:
    """See the module."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._open: dict[int, Transaction] = {}
        self._sequences: dict[tuple[int, TopicPartition], int] = {}
        self._committed: dict[tuple[int, TopicPartition], bool] = {}  # how the last one ended there
        self._truncations = 0
        self._hanging = FIRST_PRODUCER_ID + PRODUCERS  # the next producer that leaves one open

    def hang(self, partition: Partition, ends_at: float, *, commits: bool) -> None:
        """Begin a transaction of a producer of its own, which writes no more until it ends."""
        self._hanging += 1
        transaction = self._open[self._hanging] = Transaction(self._hanging, ends_at, commits)
        self._write_into(transaction, partition)

    def write(self, partition: Partition) -> None:
        """A batch of some producer, in its transaction or a new one."""
        rng, stage = self._stage.publisher_rng, self._stage
        producer_id = FIRST_PRODUCER_ID + rng.randrange(PRODUCERS)
        transaction = self._open.get(producer_id)
        if transaction is None:
            ends_at = stage.now + rng.choice(SECONDS)
            transaction = self._open[producer_id] = Transaction(producer_id, ends_at, rng.random() < 0.6)
        elif stage.now >= transaction.ends_at:
            return  # it waits for its markers
        self._write_into(transaction, partition)

    def _write_into(self, transaction: Transaction, partition: Partition) -> None:
        from tests.simulation.publishing import build, new_records, write

        stage, producer_id = self._stage, transaction.producer_id
        records = new_records(stage, partition, stage.publisher_rng.choice((1, 2, 5)))
        key = producer_id, partition.tp
        sequence = self._sequences.get(key, 0)
        self._sequences[key] = sequence + len(records)
        batch = build(stage, records, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        rows = write(stage, partition, records, batch, OPEN)
        transaction.rows.setdefault(partition.tp, []).extend(rows)

    def end_due(self) -> None:
        """Write the markers whose time has come, wherever a leader can take them."""
        if self._truncations != self._stage.ledger.truncations:
            self._truncations = self._stage.ledger.truncations
            self._end_again()
        for transaction in list(self._open.values()):
            if transaction.ends_at <= self._stage.now:
                self._end(transaction)

    def end_all(self) -> bool:
        """The same, whatever the time; True while some are left."""
        for transaction in self._open.values():
            transaction.ends_at = 0.0
        self._truncations = -1
        self.end_due()
        return bool(self._open)

    def _end(self, transaction: Transaction) -> None:
        stage = self._stage
        for tp, rows in list(transaction.rows.items()):
            partition = stage.cluster.state.partition(tp)
            if partition is not None and not stage.writable(partition):
                continue
            if partition is not None:
                self._mark(partition, transaction.producer_id, commits=transaction.commits)
            stage.ledger.finish(rows, VISIBLE if transaction.commits else ABORTED)
            self._committed[transaction.producer_id, tp] = transaction.commits
            del transaction.rows[tp]
        if not transaction.rows:
            del self._open[transaction.producer_id]
            if not transaction.commits:
                self._mark_empty(transaction.producer_id)

    def _mark_empty(self, producer_id: int) -> None:
        """A producer may have enlisted a partition and written nothing to it: that one gets a marker all the same."""
        stage, rng = self._stage, self._stage.publisher_rng
        partition = rng.choice(stage.partitions() or [None])
        if (
            rng.random() < 0.3
            and partition is not None
            and stage.writable(partition)
            and producer_id not in partition.log.producers.open
        ):
            self._mark(partition, producer_id, commits=False)

    def _end_again(self) -> None:
        """Markers that were truncated away."""
        stage = self._stage
        for partition in stage.partitions():
            for producer_id, first in list(partition.log.producers.open.items()):
                transaction = self._open.get(producer_id)
                if transaction and self._began(transaction, partition.tp, first):
                    continue  # it has no marker yet
                if stage.writable(partition):
                    self._mark(
                        partition, producer_id, commits=self._was_committed(partition, producer_id, first)
                    )
                else:
                    self._truncations = -1  # later

    def _began(self, transaction: Transaction, tp: TopicPartition, first: int) -> bool:
        """Whether this is the one that is open from `first` on, and not an older one that lost its marker. Its own
        records may have expired or been compacted; those that a truncation or a new topic took began nothing.
        """
        rows = transaction.rows.get(tp, ())
        begins = next((row.offset for row in rows if row.gone not in ("truncated", "deleted")), None)
        return begins is not None and first >= begins

    def _was_committed(self, partition: Partition, producer_id: int, first: int) -> bool:
        """How the transaction ended that began here; its first record may have expired since."""
        row = next(self._stage.ledger.between(partition.tp, first, first + 1), None)
        return (
            self._committed.get((producer_id, partition.tp), False) if row is None else row.state == VISIBLE
        )

    def _mark(self, partition: Partition, producer_id: int, *, commits: bool) -> None:
        marker = build_marker(
            commit=commits,
            offset=0,
            producer_id=producer_id,
            producer_epoch=0,
            timestamp=self._stage.wall_ms(),
        )
        append(self._stage.cluster.state, partition, marker)
