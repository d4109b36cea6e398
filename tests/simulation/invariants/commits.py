"""What is committed: by whom, for what, and never backwards."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING, Final

from kclient.embedded.releases import Release
from kclient.embedded.request_context import RequestContext
from kclient.protocol.errors import FENCED_MEMBER_EPOCH, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID
from kclient.protocol.message import Message
from kclient.simulation.process import current_name
from kclient.types import TopicPartition
from tests.simulation.application import Member
from tests.simulation.invariants.groups import Owned, is_stable, name_of
from tests.simulation.watch import Handed, Invariant, Offsets

if TYPE_CHECKING:
    from kclient.embedded.partition import Partition
    from tests.simulation.stage import Stage

OF_MEMBERS: Final = ("ConsumerGroupHeartbeatRequest", "HeartbeatRequest")
CUT_OFF: Final = (FENCED_MEMBER_EPOCH, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID)
SLACK: Final = 0.01  # from a response that is read to the flow that acts on it
ON_ITS_WAY_SECONDS: Final = 10.0  # as long as a request may be
KEPT_GENERATIONS: Final = 4
OLD_EPOCHS_SINCE: Final = Release.parse("4.3")  # of partitions that are still the member's (KIP-1251)


class Commits(Invariant):
    """Commits are monotone, for what the member owns, not beyond the log, and done where they are reported as done.

    A commit may go back where the application went back, or the log was cut. After a clean close with automatic commits
    what is committed is the position, or the log says why not.
    """

    id = "I-08"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.owned: dict[int, dict[str, frozenset[TopicPartition]]] = {}
        self.deleted_at = -ON_ITS_WAY_SECONDS
        self.held: dict[
            str, frozenset[TopicPartition]
        ] = {}  # by id, of members that have epochs of their own
        self.latest: dict[tuple[str, int, TopicPartition], int] = {}
        self.may_go_back: Counter[tuple[str, TopicPartition]] = Counter()  # how often
        self.stored: set[tuple[str, TopicPartition, int]] = set()
        self.closing: dict[str, dict[TopicPartition, int]] = {}
        self.arrived: dict[tuple[str, int, int], int] = {}  # partition and offset of a commit → its number
        self.number = count()

    # --- who may go back

    def sought(self, member: Member, tp: TopicPartition, offset: int | None) -> None:
        self.may_go_back[member.name, tp] += 1

    def jumped(self, member: Member, tp: TopicPartition, lost: int, to: int) -> None:
        self.may_go_back[member.name, tp] += 1

    went_back = jumped

    def truncated(self, partition: Partition, to: int) -> None:
        self.may_go_back.update((name, partition.tp) for name in self.stage.members)

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        self.latest.clear()
        self.deleted_at = self.stage.now

    def commit_began(self, member: Member, offsets: Offsets | None) -> None:
        """The application may commit less than the auto-commit did: it does not see markers after records."""
        committed = self.stage.ledger.committed_offsets
        for tp, offset in (offsets or {}).items():
            if tp in committed and offset.offset < committed[tp].offset:
                self.may_go_back[member.name, tp] += 1

    # --- what is accepted

    def rebalanced(self, group_id: str, generation: int, owned: Owned) -> None:
        self.owned[generation] = {name_of(self.stage, one): frozenset(mine) for one, mine in owned.items()}
        self.owned.pop(generation - KEPT_GENERATIONS, None)
        self.held.clear()

    def reconciled(self, group_id: str, member_id: str, epoch: int, owned: list[TopicPartition]) -> None:
        if epoch < 0:
            self.held.pop(member_id, None)
        else:
            self.held[member_id] = frozenset(owned)

    def accepted(self, group_id: str, member_id: str, generation: int, offsets: Offsets) -> None:
        name = name_of(self.stage, member_id)
        mine = self.held.get(member_id, self.owned.get(generation, {}).get(name))
        for tp, offset in offsets.items():
            self.stored.add((name, tp, offset.offset))
            if mine is not None and tp not in mine and not self._no_other_member_has(name, generation, tp):
                self.broken(f"{name} committed {tp}, which is not its own in generation {generation}")
            key = member_id, generation, tp
            before = self.latest.get(key, 0)
            if offset.offset < before:
                if self._came_first(name, tp, offset.offset, before):
                    continue
                if not self.may_go_back[name, tp]:
                    self.broken(f"{name} committed {tp} at {offset.offset} after {before}")
                else:
                    self.may_go_back[name, tp] -= 1
            self.latest[key] = offset.offset

    def _no_other_member_has(self, name: str, generation: int, tp: TopicPartition) -> bool:
        """Whether the commit is on its way while the partition is given up: it has no owner before that is known."""
        member = self.stage.members.get(name)
        if member is None or not member.is_cooperative:
            return False
        holding = member.holdings.get(tp)
        late = self.stage.now < self.deleted_at + ON_ITS_WAY_SECONDS
        if late or (holding is not None and holding.since < self.deleted_at):
            return (
                True  # the new topic of that name has owners at once, and this member hears of it by and by
            )
        others = [self.held, self.owned.get(generation, {})]
        return not any(tp in theirs for group in others for theirs in group.values())

    def requested(self, call: RequestContext) -> None:
        if call.api == "OffsetCommit":
            late = self._is_given_up(call)
            for topic in call.message.topics:  # type: ignore[attr-defined]
                for part in topic.partitions:
                    place = call.client_id, part.partition_index, part.committed_offset
                    if late:
                        self.arrived.setdefault(place, -1)
                    else:
                        self.arrived[place] = next(self.number)

    def _is_given_up(self, call: RequestContext) -> bool:
        """Whether the client has left: the request lay unread in the socket of a broker that stood still."""
        end = call.connection._transport
        number = getattr(end, "number", None)
        way = self.stage.world.network.connections.get(number) if number is not None else None
        return way is None or way.client.gone

    def _came_first(self, name: str, tp: TopicPartition, offset: int, before: int) -> bool:
        """Whether a broker took its time (F-08): what came over a connection that was given up is done late."""
        numbers = [self.arrived.get((name, tp.partition, one), 0) for one in (offset, before)]
        return numbers[0] < numbers[1]

    def commit_ended(self, member: Member, offsets: Offsets | None, error: BaseException | None) -> None:
        if error is None and offsets:
            for tp, offset in offsets.items():
                if (member.name, tp, offset.offset) not in self.stored:
                    self.broken(
                        f"{member} was told that {tp} is committed at {offset.offset}, and it never was"
                    )

    # --- closing

    def close_began(self, member: Member, timeout: float) -> None:
        if self.stage.quiet and self.stage.scenario.commit == "auto" and is_stable(self.stage):
            self.closing[member.name] = {
                tp: one.next
                for tp, one in member.holdings.items()
                if one.last is not None and one.next and one.last.gone != "deleted"
            }

    def logged(self, member: Member, record: logging.LogRecord) -> None:
        if member.name in self.closing and record.name == "kclient.commit":
            del self.closing[member.name]  # it says that the last commit failed

    def close_ended(self, member: Member, seconds: float, error: BaseException | None) -> None:
        committed = self.stage.ledger.committed_offsets
        for tp, offset in self.closing.pop(member.name, {}).items():
            stored = committed.get(tp)
            if stored is None or stored.offset < offset:
                self.broken(f"{member} closed with {tp} at {offset}, committed is {stored}")


class Fencing(Invariant):
    """A member that was removed cannot commit, and its partitions are lost, not revoked."""

    id = "I-09"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.generation = -1
        self.epochs: dict[str, int] = {}  # by id, of members that have epochs of their own
        self.lost_ones: set[tuple[str, TopicPartition]] = set()
        self.exactly = Release.parse(stage.scenario.release) < OLD_EPOCHS_SINCE

    def rebalanced(self, group_id: str, generation: int, owned: Owned) -> None:
        self.generation = generation
        self.epochs.clear()

    def reconciled(self, group_id: str, member_id: str, epoch: int, owned: list[TopicPartition]) -> None:
        self.epochs[member_id] = epoch

    def accepted(self, group_id: str, member_id: str, generation: int, offsets: Offsets) -> None:
        epoch = self.epochs.get(member_id)
        if epoch is not None:
            if generation > epoch or (generation < epoch and self.exactly):
                self.broken(f"{member_id} committed in epoch {generation}, and is in {epoch}")
        elif generation != self.generation:
            self.broken(
                f"{member_id} committed under generation {generation}, the group is at {self.generation}"
            )

    def revoked(self, member: Member, partitions: Iterable[TopicPartition]) -> None:
        consumer = member.consumer
        if consumer is not None and consumer.group_metadata().generation_id < 0 and list(partitions):
            self.broken(f"{member} was told that partitions are revoked, and it is no member any more")

    def lost(self, member: Member, partitions: Iterable[TopicPartition]) -> None:
        self.lost_ones.update((str(member), tp) for tp in partitions)

    def assigned(self, member: Member, partitions: Iterable[TopicPartition]) -> None:
        self.lost_ones.difference_update((str(member), tp) for tp in partitions)

    def delivered(self, handed: Handed) -> None:
        if self.lost_ones and (str(handed.member), handed.tp) in self.lost_ones:
            self.broken(f"{handed} after it had lost the partition")


class CutOff(Invariant):
    """A member that learns of its removal gets no records of its old partitions, from its next poll on."""

    id = "I-09"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.heard: dict[str, float] = {}
        self.polls: dict[str, float] = {}

    def began(self, member: Member) -> None:
        self.heard.pop(member.name, None)

    def poll_began(self, member: Member, timeout: float) -> None:
        self.polls[member.name] = self.stage.now

    def exchanged(self, request: Message, response: Message) -> None:
        if request.NAME in OF_MEMBERS and getattr(response, "error_code", 0) in CUT_OFF:
            self.heard.setdefault(current_name(), self.stage.now)

    def assigned(self, member: Member, partitions: Iterable[TopicPartition]) -> None:
        self.heard.pop(member.name, None)

    def delivered(self, handed: Handed) -> None:
        name = handed.member.name
        if name in self.heard and self.polls[name] > self.heard[name] + SLACK:
            self.broken(f"{handed}, and was told at {self.heard[name]:.3f} s that it is no member any more")
            del self.heard[name]


ALL = [Commits, CutOff, Fencing]
