"""What an assignor is, and the orders that all of them share.

Members and topics are ordered as Java orders text, by UTF-16 code units, so that groups of mixed clients agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

import attrs

from kclient.errors import UsageError
from kclient.types import GroupMetadata, TopicPartition

EAGER: Final = "EAGER"
COOPERATIVE: Final = "COOPERATIVE"

Topics = Mapping[str, Sequence[frozenset[str]]]
"""Topic → one entry for each partition, from 0: the racks of its replicas, empty where unknown."""


@attrs.frozen
class Subscription:
    """What a member sends to the leader with JoinGroup.

    `topics` is what it wants. `owned_partitions` and `generation_id` are what it kept from the last rebalance,
    `rack_id` where it is; each is empty or None where unknown. `user_data` belongs to the assignor.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int | None = None
    rack_id: str | None = None


@attrs.frozen
class Assignment:
    """What the leader assigns to a member: its partitions, and data of the assignor."""

    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None


@attrs.frozen
class Member:
    """A member of the group as the leader sees it."""

    member_id: str
    subscription: Subscription
    group_instance_id: str | None = None


@runtime_checkable
class Assignor(Protocol):
    """How partitions are shared out. Inherit from it and write `name` and `assign`; the rest has defaults.

    `name` is what goes over the wire: all members of a group must know it under the same name. `supported_protocols`
    says in which ways of rebalancing it may be used:

        EAGER         every member gives up all its partitions before it joins
        COOPERATIVE   members keep theirs, and give up after the join what goes to others; then the group joins again.
                      So `assign` must leave out what goes from one member to another until that one has given it up

    `assign` runs in the group's leader, on a thread of its own; the other two run on the loop and must not block. None
    may change what it is given. What one raises, the next poll raises as UsageError.
    """

    name: str
    supported_protocols: Sequence[str] = (EAGER,)

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """Bytes that this member sends to the leader's assignor with its subscription."""
        return None

    def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
        """Share out the partitions of `topics`: one assignment for every member id, empty ones included.

        `topics` holds the subscribed topics that exist; `members` are in the coordinator's order.
        """
        ...

    def on_assignment(self, assignment: Assignment, metadata: GroupMetadata) -> None:
        """This member's own assignment, after each rebalance that chose this assignor, and as whom it got it."""
        return None


def assignor_failed(name: str, error: BaseException, doing: str, consequence: str) -> UsageError:
    """Return the error for a custom assignor that raised; raise it `from` that exception."""
    return UsageError(
        f"The assignor {name!r} raised {type(error).__name__} {doing}. {consequence} Correct the assignor."
    )


def utf16_key(text: str) -> bytes:
    """Sort key that orders text as Java does, by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def partition_key(partition: TopicPartition) -> tuple[bytes, int]:
    """Sort key: by topic as Java orders text, then by number."""
    return utf16_key(partition.topic), partition.partition


def member_key(member: Member) -> tuple[int, bytes]:
    """Sort key: members with an instance id first, by it; the others by member id."""
    if member.group_instance_id is not None:
        return 0, utf16_key(member.group_instance_id)
    return 1, utf16_key(member.member_id)


def subscribers(topics: Topics, members: Sequence[Member]) -> dict[str, list[Member]]:
    """For each topic that has partitions, in order of names: the members that want it, in member order."""
    wanted_by: dict[str, list[Member]] = {
        topic: [] for topic in sorted(topics, key=utf16_key) if topics[topic]
    }
    for member in sorted(members, key=member_key):
        for topic in dict.fromkeys(member.subscription.topics):
            if topic in wanted_by:
                wanted_by[topic].append(member)
    return {topic: members for topic, members in wanted_by.items() if members}


def as_assignments(partitions: Mapping[str, Sequence[TopicPartition]]) -> dict[str, Assignment]:
    """Assignments without user data."""
    return {member_id: Assignment(tuple(given)) for member_id, given in partitions.items()}
