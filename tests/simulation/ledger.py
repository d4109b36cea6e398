"""The truth about every record: who wrote it, where it lies, whether a reader may see it, and why no longer.

The publisher enters what it appended; the cluster reports what became of it. Nothing here looks at the client: the
application records what it got, in `delivered` and `released`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import attrs

from kclient.embedded.observer import Observer
from kclient.embedded.partition import Partition
from kclient.records.records import Record
from kclient.types import OffsetAndMetadata, TimestampType, TopicPartition

if TYPE_CHECKING:
    from kclient.embedded.received_request import ReceivedRequest
    from kclient.protocol.message import Message
    from kclient.records.batch import Batch
    from tests.simulation.watch import Watch

OPEN = "open"
VISIBLE = "visible"
ABORTED = "aborted"
NO_UUID: Final = "-00000000-0000-0000-0000-000000000000"
BEYOND: Final = 10  # markers and empty batches after the last record move positions too


@attrs.define(eq=False)
class Row:
    """One record. `number` is its own in the whole run; `gone` says why it is in the log no more.

    `again`: another record lay there before, and was lost to a truncation. `reborn`: the topic was recreated, and the
    old one went as far: a position knows no topic id and is taken over (B.5.5), so it need not be read. `delivered`:
    some application was handed it; `released`: and asked for more, committed, or closed. `holder` is what was handed it
    last (see Holding).
    """

    number: int
    tp: TopicPartition
    topic_id: bytes
    offset: int
    epoch: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    state: str = VISIBLE
    gone: str = ""
    again: bool = False
    reborn: bool = False
    delivered: bool = False
    released: bool = False
    holder: object = None

    def is_what(self, record: Record[Any, Any]) -> bool:
        """Whether this is what was delivered."""
        return (
            record.value == self.value
            and record.key == self.key
            and record.timestamp == self.timestamp
            and record.timestamp_type == self.timestamp_type
            and tuple(record.headers) == self.headers
            and record.leader_epoch in (None, self.epoch)
        )


class Ledger(Observer):
    """See the module. `rows[tp]` holds what lies in the log now, by offset; `committed` what the group has stored.

    `hides` is the isolation level: the states of records that readers must not see.
    """

    def __init__(
        self, watch: Watch, owner_of: Callable[[TopicPartition], str], *, read_committed: bool
    ) -> None:
        self.watch = watch
        self.owner_of = owner_of
        self.visible = (VISIBLE,) if read_committed else (VISIBLE, OPEN, ABORTED)
        self.rows: dict[TopicPartition, dict[int, Row]] = {}
        self.all: list[Row] = []
        self.committed_offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        self.ends: dict[TopicPartition, int] = {}  # the highest end that each log ever had
        self.former_ends: dict[TopicPartition, int] = {}  # those of topics of that name that were deleted
        self.truncations = 0
        self._log_ends: dict[TopicPartition, int] = {}
        self.outlived: dict[TopicPartition, OffsetAndMetadata] = {}  # commits from before a deletion
        self._former: dict[tuple[TopicPartition, int], list[Row]] = {}
        self.who: dict[str, str] = {}  # member id → the application that has it

    def enter(self, row: Row) -> None:
        """The publisher appended a record."""
        end = self.ends.get(row.tp, 0)
        row.again = row.offset < end
        row.reborn = row.offset < self.former_ends.get(row.tp, 0)
        self.ends[row.tp] = max(end, row.offset + 1)
        self.rows.setdefault(row.tp, {})[row.offset] = row
        self.all.append(row)

    def finish(self, rows: Iterable[Row], state: str) -> None:
        """A transaction ended."""
        for row in rows:
            row.state = state

    def is_visible(self, row: Row) -> bool:
        """Whether readers of this run's isolation level may see it."""
        return row.state in self.visible

    def at(self, tp: TopicPartition, offset: int) -> Row | None:
        """The record that lies there now."""
        return self.rows.get(tp, {}).get(offset)

    def handed_out(self, record: Record[Any, Any]) -> Row | None:
        """What an application was handed: the record that lies there now, or one that did before."""
        tp = TopicPartition(record.topic, record.partition)
        row = self.rows.get(tp, {}).get(record.offset)
        if row is not None and row.is_what(record):
            return row
        former = self._former.get((tp, record.offset), ())
        return next((one for one in reversed(former) if one.is_what(record)), None)

    def between(self, tp: TopicPartition, start: int, end: int) -> Iterator[Row]:
        """The records that lie in [start, end) now, by offset."""
        rows = self.rows.get(tp)
        if rows:
            for offset in range(start, end):
                if (row := rows.get(offset)) is not None:
                    yield row

    def first_visible(self, tp: TopicPartition, start: int, end: int) -> Row | None:
        """The first record in [start, end) that readers may see."""
        return next((row for row in self.between(tp, start, end) if row.state in self.visible), None)

    def undelivered(self) -> list[Row]:
        """What lies in a log, may be seen, and was handed to no application."""
        return [row for row in self.all if not row.delivered and not row.gone and row.state in self.visible]

    # --- what the cluster reports

    def appended(self, partition: Partition, batch: Batch) -> None:
        self._log_ends[partition.tp] = batch.last_offset + 1

    def truncated(self, partition: Partition, to: int) -> None:
        """Markers and empty batches lie after the last record too, and positions after them."""
        self.truncations += 1
        tp = partition.tp
        self.ends[tp] = max(self.ends.get(tp, 0), self._log_ends.get(tp, 0))
        batches = partition.log.batches
        # A batch that was cut in the middle is lost whole.
        kept = batches[-1].last_offset + 1 if batches else 0
        self._drop(tp, lambda offset: offset >= kept, "truncated")
        self.watch.truncated(partition, to)

    def log_start_moved(self, partition: Partition, to: int) -> None:
        self._drop(partition.tp, lambda offset: offset < to, "expired")
        self.watch.log_start_moved(partition, to)

    def compacted(self, partition: Partition, removed: list[int]) -> None:
        gone = set(removed)
        self._drop(partition.tp, lambda offset: offset in gone, "compacted")

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        for tp in [tp for tp in self._log_ends if tp.topic == name]:
            self._drop(tp, lambda offset: True, "deleted")
            self.former_ends[tp] = max(self.former_ends.get(tp, 0), self.ends.pop(tp, 0) + BEYOND)
        for tp in [tp for tp in self.committed_offsets if tp.topic == name]:
            self.outlived[tp] = self.committed_offsets.pop(tp)  # a coordinator that is down keeps it
        self.watch.topic_deleted(name, topic_id)

    def _drop(self, tp: TopicPartition, where: Callable[[int], bool], why: str) -> None:
        rows = self.rows.get(tp, {})
        for offset in [offset for offset in rows if where(offset)]:
            row = rows.pop(offset)
            row.gone = why
            self._former.setdefault((tp, offset), []).append(row)

    def leader_changed(self, partition: Partition) -> None:
        self.watch.leader_changed(partition)

    def committed(
        self, group_id: str, member_id: str, generation: int, offsets: dict[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Who is in no group has no member id; here it gets one by whose partitions these are."""
        if member_id or not offsets:
            self.watch.accepted(group_id, member_id, generation, offsets)
        for tp, offset in offsets.items() if not member_id else ():
            self.watch.accepted(group_id, f"{self.owner_of(tp)}{NO_UUID}", generation, {tp: offset})
        self.committed_offsets.update(offsets)

    def rebalanced(self, group_id: str, generation: int, owned: dict[str, list[TopicPartition]]) -> None:
        self.watch.rebalanced(group_id, generation, owned)

    def reconciled(self, group_id: str, member_id: str, epoch: int, owned: list[TopicPartition]) -> None:
        self.watch.reconciled(group_id, member_id, epoch, owned)

    def requested(self, call: ReceivedRequest) -> None:
        self._learn(call, call.message)
        self.watch.requested(call)

    def answered(self, call: ReceivedRequest, response: Message | None) -> None:
        self._learn(call, response)
        self.watch.answered(call, response)

    def _learn(self, call: ReceivedRequest, message: Message | None) -> None:
        """Members of one protocol choose their ids themselves, those of the other are given them."""
        member_id = getattr(message, "member_id", None)
        if member_id:
            self.who[member_id] = call.client_id
