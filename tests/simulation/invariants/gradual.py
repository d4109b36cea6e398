"""Members that keep what they have while a group rebalances: cooperative ones, and those of the consumer protocol."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import attrs

from kclient.embedded.received_request import ReceivedRequest
from kclient.errors import KclientError
from kclient.generated.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kclient.generated.sync_group_response import SyncGroupResponse
from kclient.group.subscription_codec import decode_assignment
from kclient.protocol.message import Message
from kclient.simulation.process import current_name
from kclient.types import TopicPartition
from tests.simulation.application import Member
from tests.simulation.invariants.windows import disturbed
from tests.simulation.watch import Handed, Invariant

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

SLACK: Final = 0.01  # from a response that is read to the flow that acts on it
SHORT: Final = 1.0
LONG: Final = 6.0


@attrs.frozen
class Granted:
    """The assignment that a member got last, and when."""

    at: float
    partitions: frozenset[TopicPartition]


class Grants(Invariant):
    """The assignment that each member got. `granted` is by the name of the application."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.granted: dict[str, Granted] = {}

    def began(self, member: Member) -> None:
        self.granted.pop(member.name, None)

    def exchanged(self, request: Message, response: Message) -> None:
        if isinstance(response, SyncGroupResponse) and not response.error_code:
            self._is_told(_of_sync(response))
        elif isinstance(response, ConsumerGroupHeartbeatResponse) and response.assignment is not None:
            self._is_told(self._of_heartbeat(response))

    def _is_told(self, partitions: Iterable[TopicPartition]) -> None:
        self.granted[current_name()] = Granted(self.stage.now, frozenset(partitions))

    def _of_heartbeat(self, response: ConsumerGroupHeartbeatResponse) -> Iterable[TopicPartition]:
        names = {topic.topic_id: topic.name for topic in self.stage.cluster.state.topics.values()}
        for topic in response.assignment.topic_partitions if response.assignment is not None else ():
            for number in topic.partitions if topic.topic_id in names else ():
                yield TopicPartition(names[topic.topic_id], number)


def _of_sync(response: SyncGroupResponse) -> Iterable[TopicPartition]:
    try:
        return decode_assignment(response.assignment).partitions
    except KclientError:
        return ()


class NothingOfWhatGoes(Grants):
    """What is about to be given up is delivered no more, from the first poll that can know it."""

    id = "I-11"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.polls: dict[str, float] = {}  # when the last one began

    def poll_began(self, member: Member, timeout: float) -> None:
        self.polls[member.name] = self.stage.now

    def delivered(self, handed: Handed) -> None:
        granted = self.granted.get(handed.member.name)
        if granted is None or handed.tp in granted.partitions or not handed.member.is_cooperative:
            return
        if self.polls[handed.member.name] > granted.at + SLACK:
            self.broken(f"{handed}, and was told at {granted.at:.3f} s to give it up")


class OnlyWhatGoes(Grants):
    """A member that keeps partitions is asked to revoke only what it is to give up."""

    id = "I-12"

    def revoked(self, member: Member, partitions: Iterable[TopicPartition]) -> None:
        granted = self.granted.get(member.name)
        if granted is None or not member.is_cooperative or "poll" not in member.inside:
            return
        kept = [tp for tp in partitions if tp in granted.partitions]
        if kept:
            self.broken(f"{member} is to give up {kept[0]}, which it was given at {granted.at:.3f} s")


class Uninterrupted(Invariant):
    """While the others take their time, who has joined already reads on what it keeps.

    Looked at where nothing else is wrong, and only for members of which nothing at all comes.
    """

    id = "I-22"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.joining: dict[str, float] = {}
        self.ends: dict[str, dict[TopicPartition, int]] = {}  # of the logs, when a member had joined
        self.looks = 0
        scenario = stage.scenario
        self.applies = not (scenario.transactions and scenario.isolation == "read_committed")

    def requested(self, call: ReceivedRequest) -> None:
        if call.api == "JoinGroup":
            self.joining[call.client_id] = self.stage.now
            self.ends.pop(call.client_id, None)

    def answered(self, call: ReceivedRequest, response: Message | None) -> None:
        if call.api in ("SyncGroup", "JoinGroup", "Heartbeat"):
            self._is_over(call.client_id)

    def began(self, member: Member) -> None:
        self._is_over(member.name)

    def delivered(self, handed: Handed) -> None:
        self.ends.pop(handed.member.name, None)

    def _is_over(self, name: str) -> None:
        self.joining.pop(name, None)
        self.ends.pop(name, None)

    def poll_ended(self, member: Member, count: int) -> None:
        since = self.joining.get(member.name)
        if since is None or count or not self.applies or not member.is_cooperative:
            return
        ends = self.ends.get(member.name)
        if ends is None:
            if self.stage.now > since + SHORT:
                self.ends[member.name] = {tp: self.stage.ledger.ends.get(tp, 0) for tp in member.holdings}
                self.joining[member.name] = self.stage.now
        elif self.stage.now > since + LONG and not disturbed(self.stage, since):
            self._look(member, ends)

    def _look(self, member: Member, ends: dict[TopicPartition, int]) -> None:
        self.looks += 1
        self.ends[member.name] = {}
        for tp, end in ends.items():
            holding = member.holdings.get(tp)
            if holding is None or holding.paused or holding.next is None:
                continue
            row = self.stage.ledger.first_visible(tp, holding.next, end)
            if row is not None:
                self.broken(
                    f"{member} is handed nothing while it waits for others, and {tp} has {row.offset}"
                )
                return


ALL = [NothingOfWhatGoes, OnlyWhatGoes, Uninterrupted]
