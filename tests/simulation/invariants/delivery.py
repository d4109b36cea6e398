"""What is handed to the application: everything, once, in order, as it was written."""

from __future__ import annotations

from typing import Any

from kclient.records.records import Record
from kclient.types import TopicPartition
from tests.simulation.application import Member
from tests.simulation.ledger import VISIBLE
from tests.simulation.watch import Invariant


class Complete(Invariant):
    """After quiet, everything visible that is still in the log was delivered to somebody."""

    id = "I-02"

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        self.seen: set[int] = set()

    def delivered(self, member: Member, record: Record[Any, Any]) -> None:
        row = self.stage.ledger.at(TopicPartition(record.topic, record.partition), record.offset)
        if row is not None:
            self.seen.add(row.number)

    def finished(self) -> None:
        if self.stage.scenario.reset != "earliest":
            return  # where reading began is the group's affair
        missing = [
            row
            for row in self.stage.ledger.all
            if row.state == VISIBLE and not row.gone and row.number not in self.seen
        ]
        if missing:
            first = missing[0]
            self.broken(f"{len(missing)} records never delivered, first {first.tp} offset {first.offset}")


class Bytes(Invariant):
    """What is delivered is what was written there."""

    id = "I-05"

    def delivered(self, member: Member, record: Record[Any, Any]) -> None:
        tp = TopicPartition(record.topic, record.partition)
        row = self.stage.ledger.at(tp, record.offset)
        if row is None:
            return  # truncated or expired since it was fetched
        seen = (record.key, record.value, tuple(record.headers), record.timestamp)
        if seen != (row.key, row.value, row.headers, row.timestamp):
            self.broken(f"{member} was handed something else at {tp} offset {record.offset} than was written")


class InOrder(Invariant):
    """Per partition and assignment offsets strictly increase, unless somebody seeks."""

    id = "I-03"

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        self.last: dict[tuple[str, TopicPartition], int] = {}

    def _forget(self, member: Member, partitions: Any) -> None:
        for tp in partitions:
            self.last.pop((str(member), tp), None)

    assigned = revoked = lost = _forget

    def sought(self, member: Member, tp: TopicPartition, offset: int) -> None:
        self.last.pop((str(member), tp), None)

    def unsubscribed(self, member: Member) -> None:
        for key in [key for key in self.last if key[0] == str(member)]:
            del self.last[key]

    def delivered(self, member: Member, record: Record[Any, Any]) -> None:
        key = (str(member), TopicPartition(record.topic, record.partition))
        last = self.last.get(key, -1)
        if record.offset <= last:
            self.broken(f"{member} was handed {key[1]} offset {record.offset} after {last}")
        self.last[key] = record.offset


ALL = [Complete, Bytes, InOrder]
