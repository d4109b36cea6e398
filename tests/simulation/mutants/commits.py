"""Bugs of commits, and of what is read back of them, M-01 to M-10."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from kclient.consumer.assigned import AssignedPartitions
from kclient.consumer.group import GroupConsumer
from kclient.consumer.poll import RecordCollector
from kclient.errors import CommitFailedError, KclientError
from kclient.group import offset_fetch
from kclient.group.offset_commit import OffsetCommitter
from kclient.group.offset_fetch import CommittedOffsets, OffsetFetchAttempt, OffsetFetchResult
from kclient.types import OffsetAndMetadata, TopicPartition
from tests.simulation.mutants import plans
from tests.simulation.mutants.table import Patch, mutant

NO_MEMBER = ("evicted", "rebalancing", "not_joined")


def shift(patch: Patch, by: int) -> None:
    """Add a number to every offset that is committed."""

    async def commit(self: OffsetCommitter, offsets: Any, *, retry: bool, **options: Any) -> None:
        shifted = {tp: attrs.evolve(one, offset=max(0, one.offset + by)) for tp, one in offsets.items()}
        await before(self, shifted, retry=retry, **options)

    before = patch.put(OffsetCommitter, "commit", commit)


@mutant("M-01", "I-01", seed=47)
def commit_one_more(patch: Patch) -> None:
    """Commit one more than the position."""
    shift(patch, 1)


@mutant("M-02", "I-08", seed=1)
def commit_last(patch: Patch) -> None:
    """Commit the offset that was delivered last, not the next."""
    shift(patch, -1)


@mutant("M-03", "I-01", seed=64)
def commit_fetched(patch: Patch) -> None:
    """Auto-commit what was fetched, delivered or not."""

    def committable(self: AssignedPartitions) -> dict[TopicPartition, OffsetAndMetadata]:
        offsets = before(self)
        for tp in offsets:
            queue = self._buffer.queue(tp)
            if queue and queue[-1].end_offset is not None:
                offsets[tp] = OffsetAndMetadata(queue[-1].end_offset)
        return offsets  # type: ignore[no-any-return]

    before = patch.put(AssignedPartitions, "committable", committable)


@mutant("M-04", "I-01", seed=64)
def commit_unreleased(patch: Patch) -> None:
    """Auto-commit what a poll is about to return."""

    def auto_commit(self: GroupConsumer) -> None:
        self._assigned.due_group = self  # type: ignore[attr-defined]
        self.commits.restart_timer()

    async def collect(self: RecordCollector, max_records: int) -> Any:
        records = await before_collect(self, max_records)
        if records and (group := vars(self._assigned).pop("due_group", None)) is not None:
            before_commit(group)
        return records

    before_commit = patch.put(GroupConsumer, "auto_commit", auto_commit)
    before_collect = patch.put(RecordCollector, "collect", collect)


@mutant("M-05", "I-08", seed=13)
def retry_asynchronous_commit(patch: Patch) -> None:
    """Try asynchronous commits again, over newer ones."""

    async def commit(self: OffsetCommitter, offsets: Any, *, retry: bool, **options: Any) -> None:
        await before(self, offsets, retry=True, **options)

    before = patch.put(OffsetCommitter, "commit", commit)


@mutant("M-06", "I-08", seed=14)
def commit_again_in_next_generation(patch: Patch) -> None:
    """Send what was in a commit that was fenced with a later one, when the partition is another member's."""

    async def commit(self: OffsetCommitter, offsets: Any, *, retry: bool, **options: Any) -> None:
        fenced = vars(self).setdefault("fenced", {})
        stale = {tp: fenced.pop(tp) for tp in list(fenced) if tp not in offsets}
        try:
            await before(self, {**stale, **offsets}, retry=retry, **options)
        except CommitFailedError as exc:
            if exc.reason in NO_MEMBER:
                fenced.update(offsets)
            raise

    before = patch.put(OffsetCommitter, "commit", commit)


@mutant("M-07", "I-08", seed=72)
def swallow_commit_failure(patch: Patch) -> None:
    """Say that a commit is done that failed."""

    async def commit(self: OffsetCommitter, offsets: Any, *, retry: bool, **options: Any) -> None:
        try:
            await before(self, offsets, retry=retry, **options)
        except CommitFailedError:
            return

    before = patch.put(OffsetCommitter, "commit", commit)


@mutant("M-08", "I-15", seed=45)
def nothing_is_zero(patch: Patch) -> None:
    """Take "nothing is committed" for offset 0."""
    before = patch.put(offset_fetch, "committed_offset", lambda entry: before(entry) or OffsetAndMetadata(0))


@mutant("M-09", "I-15", look=plans.looking_at(plans.NO_ANSWERS))
def no_answer_is_nothing(patch: Patch) -> None:
    """Take an OffsetFetch without a response for "nothing is committed"."""

    async def fetch_once(self: CommittedOffsets, partitions: Sequence[TopicPartition]) -> OffsetFetchResult:
        try:
            return await before(self, partitions)  # type: ignore[no-any-return]
        except KclientError:
            return OffsetFetchResult(found=dict.fromkeys(partitions), left=[])

    before = patch.put(CommittedOffsets, "_fetch_once", fetch_once)


@mutant("M-10", "I-15", seed=119)
def left_out_is_nothing(patch: Patch) -> None:
    """Take a partition that the response leaves out for one without a commit."""

    def read(self: OffsetFetchAttempt, response: Any) -> OffsetFetchResult:
        answer: OffsetFetchResult = before(self, response)
        answered = {tp for tp, _ in self._entries(response)}
        if answer.error is None and answer.coordinator_moved is None:
            answer.found |= {tp: None for tp in answer.left if tp not in answered}
            answer.left = [tp for tp in answer.left if tp in answered]
        return answer

    before = patch.put(OffsetFetchAttempt, "read", read)
