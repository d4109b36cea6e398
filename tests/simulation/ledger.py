"""The truth about every record: who wrote it, where it lies, whether a reader may see it, and why no longer.

The publisher enters what it appended; the cluster tells what became of it. Nothing here looks at the client.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from kclient.embedded.observer import Observer
from kclient.embedded.topics import Partition
from kclient.types import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kclient.embedded.call import Call
    from kclient.protocol.message import Message
    from tests.simulation.watch import Watch

OPEN = "open"
VISIBLE = "visible"
ABORTED = "aborted"


@attrs.define(eq=False)
class Row:
    """One record. `number` is its own in the whole run; `gone` says why it is in the log no more."""

    number: int
    tp: TopicPartition
    topic_id: bytes
    offset: int
    epoch: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int
    state: str = VISIBLE
    gone: str = ""


class Ledger(Observer):
    """See the module. `rows[tp]` holds what lies in the log now, by offset."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.rows: dict[TopicPartition, dict[int, Row]] = {}
        self.all: list[Row] = []
        self.committed_offsets: dict[TopicPartition, int] = {}

    def enter(self, row: Row) -> None:
        """The publisher appended a record."""
        self.rows.setdefault(row.tp, {})[row.offset] = row
        self.all.append(row)

    def finish(self, rows: list[Row], state: str) -> None:
        """A transaction ended."""
        for row in rows:
            row.state = state

    def at(self, tp: TopicPartition, offset: int) -> Row | None:
        """The record that lies there now."""
        return self.rows.get(tp, {}).get(offset)

    def between(self, tp: TopicPartition, start: int, end: int) -> Iterator[Row]:
        """The records that lie in [start, end) now, by offset."""
        rows = self.rows.get(tp, {})
        for offset in range(start, end):
            if (row := rows.get(offset)) is not None:
                yield row

    # --- what the cluster tells

    def truncated(self, partition: Partition, to: int) -> None:
        self._drop(partition.tp, lambda offset: offset >= to, "truncated")
        self.watch.truncated(partition, to)

    def log_start_moved(self, partition: Partition, to: int) -> None:
        self._drop(partition.tp, lambda offset: offset < to, "expired")
        self.watch.log_start_moved(partition, to)

    def compacted(self, partition: Partition, removed: list[int]) -> None:
        gone = set(removed)
        self._drop(partition.tp, lambda offset: offset in gone, "compacted")

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        for tp in [tp for tp in self.rows if tp.topic == name]:
            self._drop(tp, lambda offset: True, "deleted")

    def _drop(self, tp: TopicPartition, where: object, why: str) -> None:
        rows = self.rows.get(tp, {})
        for offset in [offset for offset in rows if where(offset)]:  # type: ignore[operator]
            rows.pop(offset).gone = why

    def leader_changed(self, partition: Partition) -> None:
        self.watch.leader_changed(partition)

    def committed(
        self, group_id: str, member_id: str, generation: int, offsets: dict[TopicPartition, OffsetAndMetadata]
    ) -> None:
        for tp, offset in offsets.items():
            self.committed_offsets[tp] = offset.offset
        self.watch.accepted(group_id, member_id, generation, offsets)

    def rebalanced(self, group_id: str, generation: int, owned: dict[str, list[TopicPartition]]) -> None:
        self.watch.rebalanced(group_id, generation, owned)

    def requested(self, call: Call) -> None:
        self.watch.requested(call)

    def answered(self, call: Call, answer: Message | None) -> None:
        self.watch.answered(call, answer)
