"""Who owns which partitions, and which calls the listeners get."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from kclient.embedded.received_request import ReceivedRequest
from kclient.errors import ListenerError
from kclient.protocol.errors import (
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_AUTHORIZATION_FAILED,
    GROUP_ID_NOT_FOUND,
    ILLEGAL_GENERATION,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
)
from kclient.protocol.message import Message
from kclient.types import TopicPartition
from tests.simulation.application import Member
from tests.simulation.invariants.groups import HEARTBEAT, Owned, is_static, leaves
from tests.simulation.watch import Handed, Invariant

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

NO_MEMBER: Final = (
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    ILLEGAL_GENERATION,
    UNKNOWN_MEMBER_ID,
    UNRELEASED_INSTANCE_ID,
)
FAILED_FOR_GOOD: Final = (GROUP_AUTHORIZATION_FAILED, GROUP_ID_NOT_FOUND)
OF_MEMBERS: Final = ("Heartbeat", "JoinGroup", "SyncGroup", "OffsetCommit", HEARTBEAT)
CALLS: Final = ("poll", "commit", "unsubscribe", "close")

Partitions = Iterable[TopicPartition]


class Exclusive(Invariant):
    """No two live members have a partition at once, but for one that the group does not count any more."""

    id = "I-10"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.members: frozenset[str] = frozenset()  # the ids of the newest generation
        self.holds: dict[
            str, frozenset[TopicPartition]
        ] = {}  # by id, of members that have epochs of their own
        self.identity: dict[str, str] = {}
        self.owners: dict[TopicPartition, dict[str, Member]] = {}

    def rebalanced(self, group_id: str, generation: int, owned: Owned) -> None:
        self.members = frozenset(owned)
        self.holds.clear()
        seen: dict[TopicPartition, str] = {}
        for member_id, partitions in owned.items():
            for tp in partitions:
                if seen.setdefault(tp, member_id) != member_id:
                    self.broken(f"generation {generation} gives {tp} to {seen[tp]} and to {member_id}")

    def reconciled(self, group_id: str, member_id: str, epoch: int, owned: list[TopicPartition]) -> None:
        if epoch < 0:
            self.members -= {member_id}
            self.holds.pop(member_id, None)
            return
        self.members |= {member_id}
        self.holds[member_id] = mine = frozenset(owned)
        for other, theirs in self.holds.items():
            if other != member_id and theirs & mine:
                self.broken(f"epoch {epoch} gives {min(theirs & mine)} to {other} and to {member_id}")

    def assigned(self, member: Member, partitions: Partitions) -> None:
        me = member.consumer.group_metadata().member_id if member.consumer is not None else ""
        self.identity[str(member)] = me
        for tp in partitions:
            owners = self.owners.setdefault(tp, {})
            for name, other in owners.items():
                both_count = me in self.members and self.identity[name] in self.members
                if other is not member and not other.over and both_count:
                    self.broken(f"{tp} was assigned to {member} while {other} has it")
            owners[str(member)] = member

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        """Members with epochs own partitions by the topic's id: those of its successor are others."""
        if self.holds:
            for tp in [tp for tp in self.owners if tp.topic == name]:
                del self.owners[tp]
        for member_id, held in self.holds.items():
            self.holds[member_id] = frozenset(tp for tp in held if tp.topic != name)

    def _let_go(self, member: Member, partitions: Partitions) -> None:
        for tp in partitions:
            self.owners.get(tp, {}).pop(str(member), None)

    revoked_ended = lost = _let_go

    def unsubscribed(self, member: Member) -> None:
        self._let_go(member, list(member.holdings))

    died = unsubscribed

    def close_ended(self, member: Member, seconds: float, error: BaseException | None) -> None:
        self._let_go(member, list(member.holdings))


class OnlyOwn(Invariant):
    """Nothing is delivered that is not assigned, or paused, or about to be revoked."""

    id = "I-11"

    def delivered(self, handed: Handed) -> None:
        if handed.holding is None:
            self.broken(f"{handed}, which is not its own")
        elif handed.holding.paused:
            self.broken(f"{handed}, which is paused")


class Callbacks(Invariant):
    """Revoked before assigned, once each, inside of the application's own calls, and what they raise comes out.

    A member keeps its id when it rejoins, and gets no on_partitions_lost, unless an error said that it is no member.
    """

    id = "I-12"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.running: set[str] = set()
        self.cut_off: set[str] = set()  # who got an error that it is no member any more, or found out
        self.known_as: dict[str, str] = {}

    # --- listeners

    def assigned(self, member: Member, partitions: Partitions) -> None:
        self._begins(member, "on_partitions_assigned")
        twice = [tp for tp in partitions if tp in member.holdings]
        if twice:
            self.broken(f"{member} was assigned {twice[0]} twice")
        self.cut_off.discard(member.name)

    def revoked(self, member: Member, partitions: Partitions) -> None:
        self._begins(member, "on_partitions_revoked")
        self._were_its_own(member, partitions)
        self.running.add(str(member))

    def revoked_ended(self, member: Member, partitions: Partitions) -> None:
        self.running.discard(str(member))

    def lost(self, member: Member, partitions: Partitions) -> None:
        self._begins(member, "on_partitions_lost")
        self._were_its_own(member, partitions)
        leaves = "close" in member.inside or "unsubscribe" in member.inside
        if member.name not in self.cut_off and not leaves:
            self.broken(f"{member} was told that partitions are lost, and nobody had cut it off")

    def _begins(self, member: Member, what: str) -> None:
        if str(member) in self.running:
            self.broken(f"{member}: {what} while on_partitions_revoked runs")
        if not any(call in CALLS for call in member.inside):
            self.broken(f"{member}: {what} outside of all calls")

    def _were_its_own(self, member: Member, partitions: Partitions) -> None:
        others = [tp for tp in partitions if tp not in member.holdings]
        if others:
            self.broken(f"{member} is to give up {others[0]}, which it does not have")

    def unsubscribed(self, member: Member) -> None:
        if member.holdings:
            self.broken(f"{member} unsubscribed, and nobody told the listener")
        self._is_cut_off(member.name)

    # --- what they raise

    def poll_ended(self, member: Member, count: int) -> None:
        if str(member) in self.running:
            self.broken(f"{member}: poll returned while on_partitions_revoked runs")
        if member.upset:
            member.upset = False
            self.broken(f"{member}: poll returned, and a callback in it had raised")

    def raised(self, member: Member, call: str, error: BaseException) -> None:
        if isinstance(error, ListenerError):
            member.upset = False

    # --- who it is

    def began(self, member: Member) -> None:
        self.known_as.pop(member.name, None)
        self.cut_off.discard(member.name)

    def logged(self, member: Member, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING and "This member leaves" in str(record.msg):
            self._is_cut_off(member.name)

    def requested(self, call: ReceivedRequest) -> None:
        if leaves(call.api, call.message):
            self._is_cut_off(call.client_id)
        elif call.api == "SyncGroup":
            self.known_as[call.client_id] = call.message.member_id  # type: ignore[attr-defined]
        elif call.api == "JoinGroup" and not is_static(self.stage, call.client_id):
            known = self.known_as.get(call.client_id)
            if known and not call.message.member_id:  # type: ignore[attr-defined]
                self.broken(f"{call.client_id} joins anew, and was {known}")

    def answered(self, call: ReceivedRequest, response: Message | None) -> None:
        if response is None or call.api not in OF_MEMBERS:
            return
        code = _error_of(response)
        for_good = call.api == HEARTBEAT and code in FAILED_FOR_GOOD
        if for_good or code in NO_MEMBER:
            self._is_cut_off(call.client_id)

    def _is_cut_off(self, name: str) -> None:
        self.cut_off.add(name)
        self.known_as.pop(name, None)


def _error_of(response: Any) -> int:
    """The error of a response to a member; of a commit that of the first partition."""
    code = getattr(response, "error_code", None)
    if code is None:
        code = next((part.error_code for topic in response.topics for part in topic.partitions), 0)
    return int(code)


ALL = [Exclusive, OnlyOwn, Callbacks]
