"""What the application gets: everything, in order, as it was written, and released before it is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kclient.embedded.groups.loading import groups_of
from kclient.embedded.releases import Release
from kclient.errors import CorruptBatchError
from kclient.types import OffsetAndMetadata, TopicPartition
from tests.simulation.application import GROUP, Member
from tests.simulation.holding import Holding
from tests.simulation.invariants.groups import name_of
from tests.simulation.invariants.unled import KnowsThePlan
from tests.simulation.ledger import Row
from tests.simulation.watch import Handed, Invariant, Offsets

if TYPE_CHECKING:
    from kclient.embedded.partition import Partition
    from tests.simulation.stage import Stage

DAMAGING: Final = ("flip_bits",)
# Metadata 9: older brokers' epochs are not to be relied on (B.5.5).
EPOCHS_SINCE: Final = Release.parse("2.4")

COMMITS_NAME_IDS_SINCE: Final = Release.parse("4.2")  # OffsetCommit 10, OffsetFetch 10
GRACE_SECONDS: Final = 10.0  # as long as a request may be on its way


def truncations_show(stage: Stage) -> bool:
    """Whether a client can find out that a log was cut below its position and has grown again.

    A seek names no leader epoch, so after one it cannot either; the applications of a fidgety scenario seek.
    """
    return Release.parse(stage.scenario.release) >= EPOCHS_SINCE and not stage.scenario.fidgety


def missed(stage: Stage, tp: TopicPartition, start: int, end: int) -> Row | None:
    """The first record of [start, end) that had to be delivered, None where all may be passed over."""
    for row in stage.ledger.between(tp, start, end):
        if stage.ledger.is_visible(row) and not is_excused(stage, row):
            return row
    return None


def is_excused(stage: Stage, row: Row) -> bool:
    """Whether no member need be handed this: the position was of a log that is gone, and nothing shows that."""
    return (row.reborn and not topics_differ(stage)) or (row.again and not truncations_show(stage))


def topics_differ(stage: Stage) -> bool:
    """Whether positions and commits are those of one topic, not of any that has the name: all requests carry its id."""
    if Release.parse(stage.scenario.release) < COMMITS_NAME_IDS_SINCE or stage.scenario.fidgety:
        return False
    return not any(fault.kind == "other_release" for fault in stage.plan.faults)


class AtLeastOnce(Invariant):
    """When a commit is accepted, every visible record below it was delivered and released."""

    id = "I-01"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.looked: dict[TopicPartition, int] = {}  # everything below was delivered and released
        self.deleted_at = -1.0

    def truncated(self, partition: Partition, to: int) -> None:
        self.looked[partition.tp] = min(to, self.looked.get(partition.tp, 0))

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        self.looked.clear()
        self.deleted_at = self.stage.now

    def accepted(self, group_id: str, member_id: str, generation: int, offsets: Offsets) -> None:
        if self.stage.scenario.reset != "earliest":
            return  # where reading began is the group's affair: I-04 sees to what follows
        for tp, offset in offsets.items():
            if not self._speaks_of_the_old_topic(tp, member_id):
                self._look(tp, offset, member_id)

    def _speaks_of_the_old_topic(self, tp: TopicPartition, member_id: str) -> bool:
        """Whether who commits cannot know yet that the topic is another: see I-14."""
        member = self.stage.members.get(name_of(self.stage, member_id))
        holding = None if member is None else member.holdings.get(tp)
        if holding is None or self.deleted_at < 0:
            return self.stage.now < self.deleted_at + GRACE_SECONDS
        return holding.since < self.deleted_at and (holding.last is None or holding.last.gone == "deleted")

    def _look(self, tp: TopicPartition, place: OffsetAndMetadata, member_id: str) -> None:
        start, end = self.looked.get(tp, 0), place.offset
        for row in self.stage.ledger.between(tp, start, end):
            if self._is_of_a_later_log(row, place):
                end = row.offset
                break
            if not row.released and self.stage.ledger.is_visible(row) and not is_excused(self.stage, row):
                what = "was handed out and not released" if row.delivered else "was handed to nobody"
                self.broken(f"{member_id} committed {tp} at {end}, but offset {row.offset} {what}")
                break
        partition = self.stage.cluster.state.partition(tp)
        if partition is not None:
            self.looked[tp] = max(start, min(end, partition.log.end))

    def _is_of_a_later_log(self, row: Row, place: OffsetAndMetadata) -> bool:
        """Whether the commit speaks of a tail that was cut off since: it names the epoch of its data, so a member that
        goes on there is sent back to where the logs part (I-13)."""
        epoch = place.leader_epoch
        return row.again and epoch is not None and row.epoch > epoch and truncations_show(self.stage)


class Complete(KnowsThePlan):
    """After quiet, everything visible that is still in the log was delivered."""

    id = "I-02"

    def finished(self) -> None:
        if self.stage.scenario.reset != "earliest":
            return  # where reading began is the group's affair
        owed = [row for row in self.stage.ledger.undelivered() if not is_excused(self.stage, row)]
        missing = [row for row in owed if not self.is_nobodys(row.tp)]
        if missing:
            first = missing[0]
            self.broken(f"{len(missing)} records never delivered, first {first.tp} offset {first.offset}")


class InOrder(Invariant):
    """Per partition and assignment offsets strictly increase, except after a seek or a truncation."""

    id = "I-03"

    def delivered(self, handed: Handed) -> None:
        holding = handed.holding
        if holding is not None and holding.last is not None and handed.record.offset <= holding.last.offset:
            self.broken(f"{handed} after {holding.last.offset}")


class NoGap(Invariant):
    """What comes next is the smallest visible offset from the position on."""

    id = "I-04"

    def delivered(self, handed: Handed) -> None:
        holding, offset = handed.holding, handed.record.offset
        if holding is None or holding.next is None or handed.row is None or handed.row.gone:
            return  # what was in a log that is gone is unknown
        row = missed(self.stage, handed.tp, holding.next, offset)
        if row is not None and not came_from_cut_tail(self.stage, holding):
            self.broken(f"{handed}, and not {row.offset}, with position {holding.next}")


def came_from_cut_tail(stage: Stage, holding: Holding) -> bool:
    """Whether the position was in a part of the log that was lost: then I-13 says where to go on."""
    return holding.last is not None and holding.last.gone in ("truncated", "deleted")


class Bytes(Invariant):
    """What is delivered is what was written there; nothing aborted, and nothing of an open transaction."""

    id = "I-05"

    def delivered(self, handed: Handed) -> None:
        if handed.row is None:
            self.broken(f"{handed}: nothing like it was ever written there")
        elif not self.stage.ledger.is_visible(handed.row):
            self.broken(f"{handed}, which is {handed.row.state}")

    def raised(self, member: Member, call: str, error: BaseException) -> None:
        damaged = any(fault.kind in DAMAGING for fault in self.stage.plan.faults)
        if isinstance(error, CorruptBatchError) and not damaged:
            self.broken(f"{member}: {error}. Nothing was ever damaged")


class NoDuplicate(Invariant):
    """Nothing twice inside one assignment without a seek or a reset, nothing from below a seek."""

    id = "I-06"

    def delivered(self, handed: Handed) -> None:
        holding, row = handed.holding, handed.row
        if holding is None or row is None:
            return
        if row.holder is holding.era:
            self.broken(f"{handed} twice")
        elif holding.next is not None and holding.last is None and row.offset < holding.next:
            self.broken(f"{handed}, which is below its position {holding.next}")


class Positions(Invariant):
    """`position()` is after what was delivered last; a new partition begins at what is committed, else by policy."""

    id = "I-07"

    def position(self, member: Member, tp: TopicPartition, offset: int) -> None:
        holding = member.holdings.get(tp)
        if holding is None or holding.next is None:
            return
        if offset < holding.next and not came_from_cut_tail(self.stage, holding):
            self.broken(f"{member} is at {offset} of {tp} after {holding.next - 1} was handed out")
        elif offset > holding.next:
            row = missed(self.stage, tp, holding.next, offset)
            if row is not None and not came_from_cut_tail(self.stage, holding):
                self.broken(f"{member} is at {offset} of {tp}, and {row.offset} was not handed out")
        partition = self.stage.cluster.state.partition(tp)
        known = max(partition.log.end if partition else 0, self.stage.ledger.ends.get(tp, 0))
        if offset > known and not came_from_cut_tail(self.stage, holding):
            self.broken(f"{member} is at {offset} of {tp}, which never went beyond {known}")

    def delivered(self, handed: Handed) -> None:
        holding = handed.holding
        if holding is None or holding.begun or handed.row is None or handed.row.gone:
            return
        starts = self._starts(holding)
        late = [missed(self.stage, handed.tp, start, handed.record.offset) for start in starts]
        first = late[0] if late else None
        if first is not None and all(late):
            self.broken(f"{handed} first, and not {first.offset} from {starts[0]} on")

    def _starts(self, holding: Holding) -> list[int]:
        """Where reading may begin; none where the policy lets it begin anywhere."""
        ledger = self.stage.ledger
        now = ledger.committed_offsets.get(holding.tp)
        starts = [one.offset for one in (holding.committed, now) if one is not None]
        starts += self._stored_unanswered(holding.tp)
        if holding.committed is None:  # others may have committed since this member looked, and found nothing
            if self.stage.scenario.reset != "earliest":
                return []
            starts.append(0)
        old = ledger.outlived.get(holding.tp)
        return [*starts, *([] if old is None else [old.offset])]

    def _stored_unanswered(self, tp: TopicPartition) -> list[int]:
        """A coordinator that dies between writing a commit and its replicas' word finds it in the log later."""
        return [
            group.offsets.committed[tp].offset
            for broker in self.stage.cluster.state.brokers.values()
            if broker.running
            and (group := groups_of(broker).groups.get(GROUP))
            and tp in group.offsets.committed
        ]


ALL = [AtLeastOnce, Complete, InOrder, NoGap, Bytes, NoDuplicate, Positions]
