"""How long a member may be silent, and how long it may keep what it should give up. Who takes longer is sent away."""

from __future__ import annotations

from functools import partial

from kclient.embedded.groups.consumer import leave
from kclient.embedded.groups.consumer.group import ConsumerGroup
from kclient.embedded.groups.consumer.member import Member, MemberState
from kclient.embedded.groups.consumer.timers import Kind


def begin(group: ConsumerGroup, member: Member) -> None:
    """The coordinator is new: nobody is late yet."""
    heard(group, member)
    moved(group, member)


def heard(group: ConsumerGroup, member: Member) -> None:
    """The member is alive."""
    session_ms = group.cluster.settings.group_consumer_session_timeout_ms
    if member.classic is not None:
        session_ms = member.classic.session_timeout_ms
    late = partial(send_away, group, member.member_id)
    group.timers.start(member.member_id, Kind.SESSION, session_ms, late)


def moved(group: ConsumerGroup, member: Member) -> None:
    """The member's state is another one: it has its rebalance timeout to give up what it must."""
    if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
        late = partial(send_away, group, member.member_id)
        group.timers.start(member.member_id, Kind.REBALANCE, member.rebalance_timeout_ms, late)
    else:
        group.timers.stop(member.member_id, Kind.REBALANCE)


def send_away(group: ConsumerGroup, member_id: str) -> None:
    """The member took too long."""
    if not group.dead and member_id in group.members:
        leave.remove(group, [group.members[member_id]])
