"""Where a member stands in its group, in words."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kclient.group.consumer_protocol import states as consumer
from kclient.group.generation import MemberState

if TYPE_CHECKING:
    from kclient.consumer.group_part import GroupPart

DOING: Final[Mapping[enum.Enum, str]] = {
    MemberState.UNJOINED: "not joined yet",
    MemberState.PREPARING_REBALANCE: "joining (JoinGroup waits for all members)",
    MemberState.COMPLETING_REBALANCE: "waiting for its assignment (SyncGroup)",
    **{state: state.value for state in consumer.MemberState},
    consumer.MemberState.JOINING: "joining (ConsumerGroupHeartbeat)",
}


def say_membership(group: GroupPart, topics: str, now: float) -> str:
    """One sentence. `now` is the loop's time."""
    membership = group.membership
    if membership is None:
        return f"not assigned: not in group {group.group_id} yet, wants {topics}"
    if membership.stable:
        generation = membership.generation.generation_id
        return f"member of group {group.group_id}, generation {generation}, wants {topics}"
    where = DOING[membership.state]
    since = f" for {now - membership.since:.1f} s" if membership.since else ""
    kept = len(group.rebalance.owned())
    has = f"{kept} partitions are kept meanwhile" if kept else "not assigned"
    sentence = f"{has}: group {group.group_id} {where}{since}, wants {topics}"
    if group.coordinator.node_id is None:
        sentence += "; its coordinator is being looked up"
    if membership.ended:
        sentence += f"; the membership before ended: {membership.ended}"
    return sentence
