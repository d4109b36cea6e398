"""What `kclient.handlers` promises; that nothing is committed beyond an unfinished record is I-01."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kclient import handlers
from kclient.types import TopicPartition
from tests.simulation.application import Member
from tests.simulation.handling import CONCURRENCY, DRAIN_SECONDS, HandlingMember
from tests.simulation.ledger import Row
from tests.simulation.watch import Invariant

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

Lane = tuple[TopicPartition, bytes]


class HandledInOrder(Invariant):
    """A handler is called when all earlier records of its key have been handled, and never twice at once."""

    id = "I-41"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.running: dict[tuple[str, Lane], Row] = {}
        self.looked: dict[Lane, int] = {}  # every record of the key below was handled

    def handler_began(self, member: Member, tp: TopicPartition, row: Row) -> None:
        if row.key is None:
            return
        lane = (tp, row.key)
        other = self.running.get((str(member), lane))
        if other is not None:
            self.broken(
                f"{member} handles {tp} offset {row.offset} while it handles {other.offset} of its key"
            )
        self.running[str(member), lane] = row
        for earlier in self.stage.ledger.between(tp, self.looked.get(lane, 0), row.offset):
            if earlier.key == row.key and self.stage.ledger.is_visible(earlier) and not earlier.released:
                self.broken(f"{member} handles {tp} offset {row.offset} before {earlier.offset} of its key")
                return
        self.looked[lane] = max(row.offset, self.looked.get(lane, 0))

    def handler_ended(self, member: Member, tp: TopicPartition, row: Row) -> None:
        if row.key is not None:
            self.running.pop((str(member), (tp, row.key)), None)


class BoundedInFlight(Invariant):
    """No more handlers run than `concurrency`, and no more records are in flight than `max_in_flight`."""

    id = "I-42"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.running: Counter[str] = Counter()

    def handler_began(self, member: Member, tp: TopicPartition, row: Row) -> None:
        name = str(member)
        self.running[name] += 1
        if self.running[name] > CONCURRENCY:
            self.broken(f"{member} runs {self.running[name]} handlers at once")
        progress = None if member.consumer is None else handlers.progress(member.consumer)
        if progress is None or not isinstance(member, HandlingMember):
            return
        if progress.in_flight > member.max_in_flight:
            self.broken(f"{member} has {progress.in_flight} records in flight, limit {member.max_in_flight}")

    def handler_ended(self, member: Member, tp: TopicPartition, row: Row) -> None:
        self.running[str(member)] -= 1


class FinishedBeforeRevoked(Invariant):
    """When partitions are revoked, their handlers have finished, or had their time to; no other one begins then."""

    id = "I-43"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.began: dict[tuple[str, TopicPartition, int], float] = {}
        self.without: set[tuple[str, TopicPartition]] = set()

    def handler_began(self, member: Member, tp: TopicPartition, row: Row) -> None:
        self.began[str(member), tp, row.offset] = self.stage.now
        if (str(member), tp) in self.without:
            self.broken(f"{member} handles {tp} offset {row.offset}, and the partition was revoked or lost")

    def handler_ended(self, member: Member, tp: TopicPartition, row: Row) -> None:
        self.began.pop((str(member), tp, row.offset), None)

    def assigned(self, member: Member, partitions: Iterable[TopicPartition]) -> None:
        self.without.difference_update((str(member), tp) for tp in partitions)

    def revoked(self, member: Member, partitions: Iterable[TopicPartition]) -> None:
        gone = set(partitions)
        self.without.update((str(member), tp) for tp in gone)
        if isinstance(member, HandlingMember) and member.cancelled:
            return
        for (name, tp, offset), began in self.began.items():
            if name == str(member) and tp in gone and self.stage.now - began < DRAIN_SECONDS:
                self.broken(f"{member} handles {tp} offset {offset} while the partition is revoked")

    def lost(self, member: Member, partitions: Iterable[TopicPartition]) -> None:
        self.without.update((str(member), tp) for tp in partitions)


ALL = [HandledInOrder, BoundedInFlight, FinishedBeforeRevoked]
