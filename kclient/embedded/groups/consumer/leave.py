"""Members that go: by their own word, because they were silent, or (static ones) only for a while."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from kclient.embedded.groups.consumer.group import ConsumerGroup
from kclient.embedded.groups.consumer.journal import Journal
from kclient.embedded.groups.consumer.member import LEAVING_FOR_A_WHILE, Member
from kclient.embedded.groups.consumer.metadata import metadata_hash
from kclient.embedded.groups.consumer.migration import downgrade_if_all_classic
from kclient.embedded.groups.consumer.patterns import forget_unused
from kclient.embedded.groups.consumer.timers import Kind
from kclient.embedded.groups.consumer.validation import known_member
from kclient.embedded.releases import Release
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kclient.generated.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse

NO_MEMBERS_NO_TARGETS_SINCE: Final = Release.parse("4.4")  # an empty group's assignment epoch is its own


def leave(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    """A heartbeat with epoch −1 or −2. Raises ApiError for somebody who is no member."""
    member = known_member(group, request.member_id, request.instance_id)
    if request.member_epoch == LEAVING_FOR_A_WHILE:
        _pause(group, member)
    else:
        remove(group, [member])
    return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)


def remove(group: ConsumerGroup, members: Sequence[Member]) -> None:
    """These are members no more; the others share what they had when they next send a heartbeat."""
    gone = [member.member_id for member in members]
    if downgrade_if_all_classic(group, gone):
        return
    journal = Journal(group)
    for member in members:
        journal.drop(member)
    forget_unused(journal)
    journal.bump(metadata_hash(group))
    if not group.members and group.cluster.release >= NO_MEMBERS_NO_TARGETS_SINCE:
        journal.assigned(0)
    journal.write()


def _pause(group: ConsumerGroup, member: Member) -> None:
    """A static member keeps its place and its partitions until its session ends, but not what it had to give up."""
    journal = Journal(group)
    away = attrs.evolve(
        member, epoch=LEAVING_FOR_A_WHILE, assigned=dict.fromkeys(member.assigned, 0), revoking={}
    )
    journal.progress(away)
    group.timers.stop(member.member_id, Kind.REBALANCE)
    journal.write()
