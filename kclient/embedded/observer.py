"""What can be watched from outside while the cluster works: the ground truth of tests.

A watcher derives from `Observer` and joins `state.observers`. It is called synchronously, after the cluster's state has
changed; it must not change anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kclient.types import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kclient.embedded.call import Call
    from kclient.embedded.topics import Partition
    from kclient.protocol.message import Message
    from kclient.records.batch import Batch


class Observer:
    """Override what you want to know."""

    def requested(self, call: Call) -> None:
        """A request came in whole."""

    def answered(self, call: Call, answer: Message | None) -> None:
        """It was handled; None where no answer is sent."""

    def appended(self, partition: Partition, batch: Batch) -> None:
        """A batch, control batches included, is in the log with its final offsets."""

    def truncated(self, partition: Partition, to: int) -> None:
        """The log ends at `to` now."""

    def log_start_moved(self, partition: Partition, to: int) -> None:
        """Records below `to` are gone."""

    def compacted(self, partition: Partition, removed: list[int]) -> None:
        """These offsets are gone from the middle of the log."""

    def leader_changed(self, partition: Partition) -> None:
        """It has another leader, or the same one in a new epoch."""

    def broker_changed(self, node: int, change: str) -> None:
        """It was "started", "killed", "shut down", "paused" or "resumed", or it is "not counted on" any more."""

    def topic_created(self, name: str, partitions: int) -> None:
        """There is a new topic."""

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        """The topic is gone."""

    def committed(
        self, group_id: str, member_id: str, generation: int, offsets: dict[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """A commit was accepted; `generation` is −1 for one without membership, else generation or member epoch."""

    def rebalanced(self, group_id: str, generation: int, owned: dict[str, list[TopicPartition]]) -> None:
        """A generation and what each of its members owns in it; see `reconciled` too."""

    def reconciled(self, group_id: str, member_id: str, epoch: int, owned: list[TopicPartition]) -> None:
        """A member of a consumer group is in this epoch and owns this; in epoch −1 it is gone.

        Who does not ask for it is told of a generation with one member.
        """
        self.rebalanced(group_id, epoch, {member_id: owned})
