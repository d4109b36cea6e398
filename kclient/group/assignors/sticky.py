"""`sticky` and `cooperative-sticky`: as even as can be, and everybody keeps as much as that allows.

They share out alike. `sticky` belongs to eager groups, whose members give up everything before they join: what a
member had it tells in user data. Members with `cooperative-sticky` keep their partitions while they join and tell
them in the subscription; what goes from one to another is held back until its owner has given it up, which makes the
group join once more.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from kclient.group.assignors.base import (
    COOPERATIVE,
    EAGER,
    Assignment,
    Assignor,
    Member,
    Subscription,
    Topics,
    as_assignments,
    utf16_key,
)
from kclient.group.assignors.constrained import share_evenly
from kclient.group.assignors.general import share_by_subscription
from kclient.group.assignors.java_order import in_map_order
from kclient.group.assignors.past import NO_GENERATION, Claim, read_past
from kclient.group.assignors.racks import Racks
from kclient.group.assignors.sticky_user_data import (
    StickyUserData,
    decode_cooperative,
    decode_sticky,
    encode_cooperative,
    encode_sticky,
)
from kclient.types import GroupMetadata, TopicPartition

Shares = dict[str, list[TopicPartition]]
Had = Mapping[str, Container[TopicPartition]]


class StickyAssignor(Assignor):
    """The assignor that brokers and other clients know as `sticky`."""

    name = "sticky"

    def __init__(self) -> None:
        self._had: StickyUserData | None = None

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """The last assignment and its generation; nothing before the first one."""
        return None if self._had is None else encode_sticky(self._had)

    def on_assignment(self, assignment: Assignment, metadata: GroupMetadata) -> None:
        """Remember it for the next rebalance."""
        self._had = StickyUserData(assignment.partitions, metadata.generation_id)

    def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
        """Share out by what the members say in user data."""
        claims = {each.member_id: _told(each.subscription) for each in members}
        shares, _ = share_out(topics, members, claims)
        return as_assignments(shares)


class CooperativeStickyAssignor(Assignor):
    """The assignor that brokers and other clients know as `cooperative-sticky`."""

    name = "cooperative-sticky"
    supported_protocols = (COOPERATIVE, EAGER)

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """The generation of the last assignment; the partitions are in the subscription itself."""
        return encode_cooperative(self._generation)

    def on_assignment(self, assignment: Assignment, metadata: GroupMetadata) -> None:
        """Remember the generation for the next rebalance."""
        self._generation = metadata.generation_id

    def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
        """Share out by what the members own, and hold back what somebody else still has."""
        claims = {each.member_id: _owned(each.subscription) for each in members}
        shares, had = share_out(topics, members, claims)
        return as_assignments(_without_transfers(shares, had, claims))


def share_out(topics: Topics, members: Sequence[Member], claims: Mapping[str, Claim]) -> tuple[Shares, Had]:
    """The partitions of every member, and which ones each may go on with at once because it has them.

    Where members contradict each other and want different topics, a member goes on with whatever it claims, as in Java.
    """
    wanted = dict.fromkeys(topic for member in members for topic in member.subscription.topics)
    known = {topic: topics[topic] for topic in sorted(wanted, key=utf16_key) if topics.get(topic)}
    past = read_past({member_id: claims[member_id] for member_id in in_map_order(claims)}, known)
    if not known:
        return {member_id: [] for member_id in claims}, past.owned
    racks = Racks.between(known, members)
    if all(frozenset(member.subscription.topics) == wanted.keys() for member in members):
        return share_evenly(known, past, racks), past.undisputed()
    claimed = {member_id: frozenset(claim.partitions) for member_id, claim in claims.items()}
    return share_by_subscription(known, members, past, racks), claimed


def _told(subscription: Subscription) -> Claim:
    """What a member of an eager group says that it had. Its subscription cannot say it: it has given up everything."""
    had = decode_sticky(subscription.user_data)
    return Claim(had.partitions, NO_GENERATION if had.generation is None else had.generation)


def _owned(subscription: Subscription) -> Claim:
    """What a member still has; old ones tell the generation in user data."""
    generation = subscription.generation_id
    if generation is None:
        generation = decode_cooperative(subscription.user_data)
    return Claim(subscription.owned_partitions, generation)


def _without_transfers(shares: Shares, had: Had, claims: Mapping[str, Claim]) -> Shares:
    """Leave out what one member would get while another still has it."""
    somebodys = {partition for claim in claims.values() for partition in claim.partitions}
    return {
        member_id: [each for each in partitions if each in had[member_id] or each not in somebodys]
        for member_id, partitions in shares.items()
    }
