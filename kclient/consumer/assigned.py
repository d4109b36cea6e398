"""The assigned partitions: their positions, buffered records and delivered records change together.

assign               positions of removed partitions go, and with them their buffered and undelivered records
return_undelivered   iteration stops, or a seek: positions move back to the first record not handed out
stop_delivery        before a revocation: positions move back, and nothing more is fetched or returned
"""

from __future__ import annotations

from collections.abc import Iterable

from kclient.consumer.delivered import DeliveredRecords, nothing_delivered
from kclient.consumer.metrics import ConsumerMetrics
from kclient.fetch.buffer import FetchBuffer
from kclient.positions.state import UNKNOWN_LEADER
from kclient.positions.table import Positions
from kclient.positions.updater import PositionUpdater
from kclient.types import OffsetAndMetadata, TopicPartition


class AssignedPartitions:
    """The assigned partitions of one consumer, and the records of the last poll."""

    def __init__(
        self,
        positions: Positions,
        buffer: FetchBuffer,
        position_updater: PositionUpdater,
        metrics: ConsumerMetrics,
    ) -> None:
        self.positions = positions
        self.delivered: DeliveredRecords = nothing_delivered()
        self._buffer = buffer
        self._position_updater = position_updater
        self._metrics = metrics

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Make these the assigned partitions. Drop buffered and undelivered records of all others."""
        wanted = dict.fromkeys(partitions)
        new = [tp for tp in wanted if tp not in self.positions]
        # Before the positions of removed partitions go: records that iteration holds of them must not be handed out.
        self.return_undelivered(tp for tp in self.positions.assigned() if tp not in wanted)
        self.positions.assign(wanted)
        # The next poll starts the lookup: on_partitions_assigned may commit or seek first.
        self.positions.defer_lookup(new)
        self._metrics.assignment_changed()
        self._buffer.retain(wanted)
        # An OffsetFetch of the previous generation may still be in flight, for partitions that are gone.
        self._position_updater.cancel_committed_lookup()

    def stop_unsubscribed(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop the records of partitions that left the subscription and stay assigned until the rebalance."""
        unsubscribed = tuple(partitions)
        self.return_undelivered(unsubscribed)
        self._buffer.drop(unsubscribed)

    def stop_delivery(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch and return nothing more of these, so that a commit covers all delivered records."""
        stopped = tuple(partitions)
        self.return_undelivered(stopped)
        self.positions.mark_pending_revocation(stopped)

    # --- delivered records

    def return_undelivered(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Move the positions back to the first record that iteration has not handed out yet."""
        self._rewind(self.delivered.return_undelivered(partitions))

    def return_all(self) -> None:
        """The poll that delivered these records was interrupted before it returned: deliver them again."""
        delivered, self.delivered = self.delivered, nothing_delivered()
        self._rewind(delivered.return_all())

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what an explicit commit stores: the positions after all returned records.

        While an interrupted application closes, the committable offsets.
        """
        return self.delivered.consumed(self.positions.all_consumed())

    def committable(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what an automatic commit stores: the positions after all processed records."""
        return self.delivered.committable(self.positions.all_consumed())

    def delivered_counts(self) -> dict[TopicPartition, int]:
        """Return how many records of each partition were delivered and are not committable yet."""
        return self.delivered.count_from(self.committable())

    def return_of_deleted_topics(self) -> None:
        """Drop undelivered records of topics that were deleted since; they cannot be fetched again."""
        gone = [tp for tp, state in self.positions.items() if state.delivered_topic_is_gone]
        if gone:
            self.return_undelivered(gone)

    def _rewind(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        for tp, offset in offsets.items():
            state = self.positions.find(tp)
            if state is None or state.delivered_topic_is_gone:
                continue
            # Only back: the application may have seeked to an earlier offset since the poll.
            if state.position is not None and offset.offset < state.position.offset:
                self.positions.seek(tp, offset, state.position.leader)
            elif state.lost_offset is not None and offset.offset < state.lost_offset:
                # The position after these records is not in the log any more; the records may be.
                self.positions.seek(tp, offset, UNKNOWN_LEADER)
