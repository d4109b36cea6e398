"""HandledRecords: how often each record of the log was handled, kept where no process that dies can lose it.

The handler under test calls `add` where its effect becomes durable, as its write to a database would. What must be
handled is what lies in the logs: records that were truncated, deleted or compacted are not missed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from kclient.embedded import Observer
from kclient.embedded.partition import Partition
from kclient.records.batch import Batch
from kclient.records.records import Record
from kclient.types import TopicPartition

RecordId: TypeAlias = tuple[str, int, int]
"""Topic, partition and offset."""

SHOWN: Final = 10


class HandledRecords(Observer):
    """See the module. Made by `Simulation`."""

    def __init__(self) -> None:
        self._counts: dict[TopicPartition, Counter[int]] = {}  # by offset, 0 for what was not handled
        self._unknown: Counter[RecordId] = Counter()

    def add(self, record: Record[Any, Any]) -> None:
        """Count a record as handled once more."""
        counts = self._counts.get(TopicPartition(record.topic, record.partition))
        if counts is not None and record.offset in counts:
            counts[record.offset] += 1
        else:  # deleted meanwhile
            self._unknown[record.topic, record.partition, record.offset] += 1

    def counts(self, topic: str | None = None) -> dict[RecordId, int]:
        """Return how often each record in the logs was handled, 0 included; of one topic or of all."""
        return {
            (tp.topic, tp.partition, offset): count
            for tp, counts in sorted(self._counts.items())
            if topic in (None, tp.topic)
            for offset, count in sorted(counts.items())
        }

    def missing(self, topic: str | None = None) -> list[RecordId]:
        """Return the records that were never handled."""
        return [record for record, count in self.counts(topic).items() if not count]

    def repeated(self, topic: str | None = None) -> list[RecordId]:
        """Return the records that were handled more than once."""
        return [record for record, count in self.counts(topic).items() if count > 1]

    # --- what the cluster calls

    def appended(self, partition: Partition, batch: Batch) -> None:
        if batch.is_control or partition.tp.topic.startswith("__"):
            return
        counts = self._counts.setdefault(partition.tp, Counter())
        counts.update(dict.fromkeys(range(batch.base_offset, batch.next_offset), 0))

    def truncated(self, partition: Partition, to: int) -> None:
        self._remove(partition.tp, lambda offset: offset >= to)

    def log_start_moved(self, partition: Partition, to: int) -> None:
        self._remove(partition.tp, lambda offset: offset < to)

    def compacted(self, partition: Partition, removed: list[int]) -> None:
        self._remove(partition.tp, set(removed).__contains__)

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        for tp in [tp for tp in self._counts if tp.topic == name]:
            del self._counts[tp]

    def _remove(self, tp: TopicPartition, gone: Any) -> None:
        counts = self._counts.get(tp, Counter())
        for offset in [offset for offset in counts if gone(offset)]:
            del counts[offset]


def format_records(records: Iterable[RecordId]) -> str:
    """Return records as "orders-0@17, orders-0@18 and 5 more"."""
    names = [f"{topic}-{partition}@{offset}" for topic, partition, offset in records]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
