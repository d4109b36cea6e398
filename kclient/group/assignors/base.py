"""The interface of assignors, and the sort orders that all of them use.

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
    """The subscription that a member sends to the leader with JoinGroup.

    `owned_partitions` and `generation_id` are kept from the last rebalance, `rack_id` is the member's rack; each is
    empty or None where unknown. `user_data` belongs to the assignor.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int | None = None
    rack_id: str | None = None


@attrs.frozen
class Assignment:
    """The assignment of one member: its partitions, and data of the assignor."""

    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None


@attrs.frozen
class Member:
    """A member of the group, as JoinGroup describes it to the leader."""

    member_id: str
    subscription: Subscription
    group_instance_id: str | None = None


@runtime_checkable
class Assignor(Protocol):
    """An assignor. Inherit from it and write `name` and `assign`; the other methods have defaults.

    `name` is sent in JoinGroup: all members of a group must use the same name. `supported_protocols` lists the
    rebalance protocols that it supports:

        EAGER         every member revokes all its partitions before it joins
        COOPERATIVE   members keep their partitions, revoke after the join those that go to others, and join again. So
                      `assign` must leave out a partition that moves until its owner has revoked it

    `assign` runs in the group's leader, on a thread of its own; the other two run on the loop and must not block. None
    may change its arguments. The next poll raises their exceptions as UsageError.
    """

    name: str
    supported_protocols: Sequence[str] = (EAGER,)

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """Return bytes for the leader's assignor, which this member sends with its subscription."""
        return None

    def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
        """Assign the partitions of `topics`: return one assignment for every member id, empty ones included.

        `topics` holds the subscribed topics that exist; `members` are in the coordinator's order.
        """
        ...

    def on_assignment(self, assignment: Assignment, metadata: GroupMetadata) -> None:
        """Called after each rebalance that used this assignor, with this member's assignment and its group metadata."""
        return None


def assignor_failed(name: str, error: BaseException, doing: str, consequence: str) -> UsageError:
    """Return the error for a custom assignor that raised; raise it `from` that exception."""
    return UsageError(
        f"The assignor {name!r} raised {type(error).__name__} {doing}. {consequence} Correct the assignor."
    )


def utf16_key(text: str) -> bytes:
    """Return a sort key that orders text as Java does, by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def partition_key(partition: TopicPartition) -> tuple[bytes, int]:
    """Return a sort key: by topic as Java orders text, then by partition number."""
    return utf16_key(partition.topic), partition.partition


def member_key(member: Member) -> tuple[int, bytes]:
    """Return a sort key: static members first, by instance id; the others by member id."""
    if member.group_instance_id is not None:
        return 0, utf16_key(member.group_instance_id)
    return 1, utf16_key(member.member_id)


def subscribers(topics: Topics, members: Sequence[Member]) -> dict[str, list[Member]]:
    """Return the subscribers of each topic that has partitions, in member order; topics in order of their names."""
    wanted_by: dict[str, list[Member]] = {
        topic: [] for topic in sorted(topics, key=utf16_key) if topics[topic]
    }
    for member in sorted(members, key=member_key):
        for topic in dict.fromkeys(member.subscription.topics):
            if topic in wanted_by:
                wanted_by[topic].append(member)
    return {topic: members for topic, members in wanted_by.items() if members}


def as_assignments(partitions: Mapping[str, Sequence[TopicPartition]]) -> dict[str, Assignment]:
    """Return the shares as assignments without user data."""
    return {member_id: Assignment(tuple(given)) for member_id, given in partitions.items()}
