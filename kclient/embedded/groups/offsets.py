"""The committed and pending offsets of one group.

An offset of a transaction is pending under its producer until the transaction ends. A non-transactional one is being
written until its record is on all in-sync replicas; of two concurrent ones, the one with the later record counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from kclient.embedded.settings import Settings
from kclient.protocol.primitives import ZERO_UUID
from kclient.types import OffsetAndMetadata, TopicPartition


@attrs.frozen
class CommittedOffset:
    """A committed offset. `at` is the offset of its record in `__consumer_offsets`, −1 before it is written."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_ms: int = 0  # wall clock
    expire_ms: int | None = None  # only if the commit had its own retention time
    topic_id: bytes = ZERO_UUID
    at: int = -1

    def plain(self) -> OffsetAndMetadata:
        """Return it as the public type."""
        epoch = None if self.leader_epoch < 0 else self.leader_epoch
        return OffsetAndMetadata(self.offset, epoch, self.metadata)


def metadata_too_long(settings: Settings, metadata: str | None) -> bool:
    """Whether the metadata of a commit exceeds the limit, which brokers apply to UTF-16 units, not bytes."""
    return len((metadata or "").encode("utf-16-le")) // 2 > settings.offset_metadata_max_bytes


@attrs.define(eq=False)
class GroupOffsets:
    """The offsets of a group.

    `pending` is by producer id; `writing` counts commits that are not replicated yet; `removed` holds the offset of a
    tombstone that was written meanwhile.
    """

    committed: dict[TopicPartition, CommittedOffset] = attrs.field(factory=dict)
    pending: dict[int, dict[TopicPartition, CommittedOffset]] = attrs.field(factory=dict)
    writing: dict[TopicPartition, int] = attrs.field(factory=dict)
    removed: dict[TopicPartition, int] = attrs.field(factory=dict)

    def __bool__(self) -> bool:
        return bool(self.committed or self.pending)

    def put(self, tp: TopicPartition, commit: CommittedOffset) -> None:
        """Store an offset, unless a later record has stored or deleted it."""
        known = self.committed.get(tp)
        last = self.removed.get(tp, -1) if known is None else known.at
        if last <= commit.at:
            self.committed[tp] = commit

    def known(self) -> list[TopicPartition]:
        """Return the partitions whose offset is committed or being written."""
        return list({**self.committed, **self.writing})

    def remove(self, tp: TopicPartition, at: int = -1) -> None:
        """Delete a committed offset and pending ones of the partition. `at` is the offset of the tombstone."""
        if tp in self.writing:
            self.removed[tp] = at
        for waiting in self.pending.values():
            waiting.pop(tp, None)
        self.committed.pop(tp, None)

    def pend(self, producer_id: int, tp: TopicPartition, commit: CommittedOffset) -> None:
        """Keep a pending offset until the producer's transaction ends."""
        self.pending.setdefault(producer_id, {})[tp] = commit

    def complete(self, producer_id: int, committed: bool) -> dict[TopicPartition, CommittedOffset]:
        """End a transaction; return the offsets that become visible."""
        waiting = self.pending.pop(producer_id, {})
        if not committed:
            return {}
        for tp, commit in waiting.items():
            self.put(tp, commit)
        return waiting

    def begin(self, partitions: Iterable[TopicPartition]) -> None:
        """Note that non-transactional commits of these partitions are being written, until `end`."""
        for tp in partitions:
            self.writing[tp] = self.writing.get(tp, 0) + 1

    def end(self, partitions: Iterable[TopicPartition]) -> None:
        """Note that the commits are written, or have failed."""
        for tp in partitions:
            self.writing[tp] -= 1
            if not self.writing[tp]:
                del self.writing[tp]
                self.removed.pop(tp, None)

    def in_transaction(self, tp: TopicPartition) -> bool:
        """Whether an open transaction has an offset for the partition."""
        return any(tp in waiting for waiting in self.pending.values())

    def expired(
        self,
        counts_from: Callable[[TopicPartition, CommittedOffset], int | None],
        now_ms: int,
        retention_ms: int,
    ) -> list[TopicPartition]:
        """Return the expired partitions; `counts_from` returns when the retention began, None if protected."""
        found = []
        for tp, commit in self.committed.items():
            begin = counts_from(tp, commit)
            if begin is None or self.in_transaction(tp) or tp in self.writing:
                continue
            if now_ms >= (begin + retention_ms if commit.expire_ms is None else commit.expire_ms):
                found.append(tp)
        return found
