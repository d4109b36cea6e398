"""The committed offsets of one group, and those that are not committed yet.

An offset that came with a transaction waits under its producer until the transaction ends. A plain one is being
written until its record is on all in-sync replicas; of two that overlap, the one with the later record counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from kclient.embedded.settings import Settings
from kclient.protocol.primitives import ZERO_UUID
from kclient.types import OffsetAndMetadata, TopicPartition


@attrs.frozen
class CommittedOffset:
    """One committed offset. `at` is the offset of its own record in `__consumer_offsets`, −1 before it is written."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_ms: int = 0  # wall clock
    expire_ms: int | None = None  # only where the commit asked for a retention of its own
    topic_id: bytes = ZERO_UUID
    at: int = -1

    def plain(self) -> OffsetAndMetadata:
        """As users know it."""
        epoch = None if self.leader_epoch < 0 else self.leader_epoch
        return OffsetAndMetadata(self.offset, epoch, self.metadata)


def metadata_too_long(settings: Settings, metadata: str | None) -> bool:
    """Whether metadata of a commit is longer than brokers keep: they count UTF-16 units, not bytes."""
    return len((metadata or "").encode("utf-16-le")) // 2 > settings.offset_metadata_max_bytes


@attrs.define(eq=False)
class GroupOffsets:
    """See the module. `pending` is by producer id, `writing` counts the plain commits under way, and `removed` has the
    log offset of the tombstone that came meanwhile."""

    committed: dict[TopicPartition, CommittedOffset] = attrs.field(factory=dict)
    pending: dict[int, dict[TopicPartition, CommittedOffset]] = attrs.field(factory=dict)
    writing: dict[TopicPartition, int] = attrs.field(factory=dict)
    removed: dict[TopicPartition, int] = attrs.field(factory=dict)

    def __bool__(self) -> bool:
        return bool(self.committed or self.pending)

    def put(self, tp: TopicPartition, commit: CommittedOffset) -> None:
        """Commit an offset, unless a later record has done so or has removed it."""
        known = self.committed.get(tp)
        last = self.removed.get(tp, -1) if known is None else known.at
        if last <= commit.at:
            self.committed[tp] = commit

    def known(self) -> list[TopicPartition]:
        """What is committed or being written."""
        return list({**self.committed, **self.writing})

    def remove(self, tp: TopicPartition, at: int = -1) -> None:
        """Forget a committed offset and what waits for it, if there is any. `at` is where its tombstone is."""
        if tp in self.writing:
            self.removed[tp] = at
        for waiting in self.pending.values():
            waiting.pop(tp, None)
        self.committed.pop(tp, None)

    def pend(self, producer_id: int, tp: TopicPartition, commit: CommittedOffset) -> None:
        """Keep an offset until the producer's transaction ends."""
        self.pending.setdefault(producer_id, {})[tp] = commit

    def complete(self, producer_id: int, committed: bool) -> dict[TopicPartition, CommittedOffset]:
        """End a transaction: what it committed is visible now, or gone. Gives back what became visible."""
        waiting = self.pending.pop(producer_id, {})
        if not committed:
            return {}
        for tp, commit in waiting.items():
            self.put(tp, commit)
        return waiting

    def begin(self, partitions: Iterable[TopicPartition]) -> None:
        """Plain commits of these partitions are under way, until `end`."""
        for tp in partitions:
            self.writing[tp] = self.writing.get(tp, 0) + 1

    def end(self, partitions: Iterable[TopicPartition]) -> None:
        """The commits that began are written, or have failed."""
        for tp in partitions:
            self.writing[tp] -= 1
            if not self.writing[tp]:
                del self.writing[tp]
                self.removed.pop(tp, None)

    def in_transaction(self, tp: TopicPartition) -> bool:
        """Whether a transaction that has not ended has an offset for it."""
        return any(tp in waiting for waiting in self.pending.values())

    def expired(
        self,
        counts_from: Callable[[TopicPartition, CommittedOffset], int | None],
        now_ms: int,
        retention_ms: int,
    ) -> list[TopicPartition]:
        """Whose retention is over; `counts_from` gives its beginning, None where it is protected."""
        found = []
        for tp, commit in self.committed.items():
            begin = counts_from(tp, commit)
            if begin is None or self.in_transaction(tp) or tp in self.writing:
                continue
            if now_ms >= (begin + retention_ms if commit.expire_ms is None else commit.expire_ms):
                found.append(tp)
        return found
