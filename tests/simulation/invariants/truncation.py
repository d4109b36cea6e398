"""Logs that lose their tails, topics that are recreated, and positions that cannot be kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from kclient.embedded.releases import Release
from kclient.protocol.message import Message
from kclient.simulation.process import current_name
from kclient.types import OffsetAndMetadata, TopicPartition
from tests.simulation.application import Member
from tests.simulation.bounds import progress_seconds
from tests.simulation.invariants.delivery import EPOCHS_SINCE
from tests.simulation.ledger import Row
from tests.simulation.watch import Handed, Invariant

if TYPE_CHECKING:
    from kclient.embedded.partition import Partition
    from tests.simulation.stage import Stage

MOST_PARTITIONS: Final = 200
MOST_AT_ONCE: Final = 3  # deleted topics whose places are given up one by one
IDS_SINCE: Final = Release.parse("2.8")  # Metadata 10
FETCH_BY_ID_SINCE: Final = Release.parse("3.1")  # Fetch 13


class Truncation(Invariant):
    """If brokers send leader epochs, a consumer never continues or restarts in a truncated tail."""

    id = "I-13"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.cut: set[TopicPartition] = set()
        self.epochs = Release.parse(stage.scenario.release) >= EPOCHS_SINCE

    def truncated(self, partition: Partition, to: int) -> None:
        self.cut.add(partition.tp)

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        self.cut.update(TopicPartition(name, number) for number in range(MOST_PARTITIONS))

    def went_back(self, member: Member, tp: TopicPartition, start: int, to: int) -> None:
        if tp not in self.cut:
            self.broken(f"{member} went back from {start} to {to} of {tp}, which never lost anything")

    def delivered(self, handed: Handed) -> None:
        row, holding = handed.row, handed.holding
        if not self.epochs or handed.tp not in self.cut or row is None or row.gone or holding is None:
            return
        if holding.last is not None:
            self._after(handed, holding.last, row)
        elif not holding.begun and holding.committed is not None:
            self._from_commit(handed, holding.committed, row)

    def _after(self, handed: Handed, last: Row, row: Row) -> None:
        if last.topic_id != row.topic_id:
            return
        if row.epoch < last.epoch:
            self.broken(f"{handed} of epoch {row.epoch} after {last.offset} of epoch {last.epoch}")
        elif last.gone == "truncated":
            end = self._end_of(handed.tp, last.epoch)
            skipped = None if end is None else self.stage.ledger.first_visible(handed.tp, end, row.offset)
            if skipped is not None:
                self.broken(f"{handed} after {last.offset}, which was cut off, and not {skipped.offset}")

    def _from_commit(self, handed: Handed, committed: OffsetAndMetadata, row: Row) -> None:
        now = self.stage.ledger.committed_offsets.get(handed.tp)
        if committed.leader_epoch is None or now != committed:
            return
        end = self._end_of(handed.tp, committed.leader_epoch)
        if end is None or end >= committed.offset:
            return
        skipped = self.stage.ledger.first_visible(handed.tp, end, row.offset)
        if skipped is not None and not skipped.delivered:
            self.broken(
                f"{handed} from the commit of {committed.offset}, which was cut off, and not {skipped.offset}"
            )

    def _end_of(self, tp: TopicPartition, epoch: int) -> int | None:
        """Where the leader's log leaves that epoch."""
        partition = self.stage.cluster.state.partition(tp)
        if partition is None:
            return None
        end = partition.log.epochs.end_of(epoch, partition.log.end)[1]
        return None if end < 0 else end


class Recreated(Invariant):
    """Of a topic that was recreated nothing old is delivered once the new one was seen, nor long after.

    And no position in the old one is used in the new one: if brokers send topic ids, the client reports it as lost.
    If only metadata has topic ids, and fetches use names, the client cannot know before a metadata response.
    """

    id = "I-14"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.old: set[bytes] = set()
        self.ids = Release.parse(stage.scenario.release) >= IDS_SINCE
        self.by_id = Release.parse(stage.scenario.release) >= FETCH_BY_ID_SINCE
        self.known: set[tuple[str, bytes]] = set()  # who has heard of which topic
        self.seen: dict[tuple[str, TopicPartition], bytes] = {}
        self.healed_at: float | None = None

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        self.old.add(topic_id)

    def healed(self) -> None:
        self.healed_at = self.stage.now

    def exchanged(self, request: Message, response: Any) -> None:
        for topic in response.topics if response.NAME == "MetadataResponse" else ():
            self.known.add((current_name(), topic.topic_id))

    def delivered(self, handed: Handed) -> None:
        row = handed.row
        if row is None or not self.old:
            return
        key = handed.member.name, handed.tp
        if row.topic_id not in self.old:
            self.seen[key] = row.topic_id
            self._look_whence(handed, row)
        elif key in self.seen and self.seen[key] not in self.old:
            self.broken(f"{handed} of the topic that was deleted, after records of the new one")
        elif self.healed_at is not None and self.stage.now > self.healed_at + self._patience():
            self.broken(f"{handed} of the topic that was deleted, long after that")

    def _look_whence(self, handed: Handed, row: Row) -> None:
        last = None if handed.holding is None else handed.holding.last
        could_know = self.by_id or (self.ids and (handed.member.name, row.topic_id) in self.known)
        if could_know and last is not None and last.topic_id != row.topic_id:
            self.broken(
                f"{handed} of a topic that was made anew after {last.offset} of the old one, not a word said"
            )

    def _patience(self) -> float:
        scenario = self.stage.scenario
        return progress_seconds(scenario) + scenario.metadata_max_age_ms / 1000


class ResetPolicy(Invariant):
    """The reset policy speaks only where nothing is committed, or where the log does not hold the position."""

    id = "I-15"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.lowest_end: dict[TopicPartition, int] = {}
        self.ends: dict[tuple[str, TopicPartition], int] = {}  # of what could be read when they were assigned
        self.deleted = 0  # so often the topic was
        # Who gave up places in those that are gone.
        self.anew: Counter[tuple[str, TopicPartition]] = Counter()

    def assigned(self, member: Member, partitions: Iterable[TopicPartition]) -> None:
        committed = self.stage.ledger.committed_offsets
        for tp in partitions:
            self.ends.pop((str(member), tp), None)
            partition = self.stage.cluster.state.partition(tp)
            if self.stage.scenario.reset == "latest" and tp not in committed and partition is not None:
                self.ends[str(member), tp] = min(partition.high_watermark, partition.last_stable_offset)

    def truncated(self, partition: Partition, to: int) -> None:
        self.lowest_end[partition.tp] = min(to, self.lowest_end.get(partition.tp, to))

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        for number in range(MOST_PARTITIONS):
            self.lowest_end[TopicPartition(name, number)] = 0
        self.deleted += 1
        for key in self.anew:
            self.anew[key] = max(0, self.anew[key] - 1)

    def jumped(self, member: Member, tp: TopicPartition, lost: int, to: int) -> None:
        partition = self.stage.cluster.state.partition(tp)
        if partition is None:
            return
        end = min(partition.log.end, self.lowest_end.get(tp, partition.log.end))
        if partition.log.start <= lost <= end and not self._is_of_old_topic(member, tp):
            self.broken(f"{member} gave up {lost} of {tp}, which goes from {partition.log.start} to {end}")

    def _is_of_old_topic(self, member: Member, tp: TopicPartition) -> bool:
        """Whether the place was one in a topic of that name that was deleted: it is lost, whatever the offset.

        Where topics come and go faster than a member learns of them, it gives up a place in each.
        """
        key = member.name, tp
        self.anew[key] += 1
        return self.anew[key] <= min(self.deleted, MOST_AT_ONCE)

    def delivered(self, handed: Handed) -> None:
        holding = handed.holding
        if holding is None or holding.begun or handed.row is None:
            return
        now = self.stage.ledger.committed_offsets.get(handed.tp)
        starts = [one.offset for one in (holding.committed, now) if one is not None]
        lowest = 0 if holding.committed is None else min(starts)  # others may have committed since it looked
        if handed.tp in self.stage.ledger.outlived or self.lowest_end.get(handed.tp, lowest) < lowest:
            return  # the commit may be of a log that was cut
        end = self.ends.get((str(handed.member), handed.tp), 0) if handed.tp not in self.lowest_end else 0
        if handed.record.offset < lowest:
            self.broken(f"{handed} first, and {lowest} is committed")
        elif handed.record.offset < end:
            self.broken(f"{handed} first, and nothing was committed: the policy is latest, the end was {end}")


ALL = [Truncation, Recreated, ResetPolicy]
