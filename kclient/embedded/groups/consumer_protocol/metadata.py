"""A group of the consumer protocol (KIP-848): its epochs, its members, and their target assignments.

The group epoch grows with every change of members, subscriptions or topics; the assignment epoch follows when targets
are computed; each member's epoch follows that when it has revoked what it must. The state of the group is derived:

| state       | when                                                             |
|-------------|------------------------------------------------------------------|
| Empty       | it has no members                                                |
| Assigning   | the group epoch is ahead of the assignment epoch                 |
| Reconciling | some member does not own its target of the assignment epoch yet  |
| Stable      | every member owns its target                                     |
| Dead        | it was deleted, or moved to another coordinator                  |

Only `journal.Journal` changes it. A commit must carry the current member epoch. From Kafka 4.3 on a commit in an older
epoch is accepted for partitions that the member has owned since that epoch (KIP-1251): the member has not received its
new epoch yet.
"""

from __future__ import annotations

import enum
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any, ClassVar, Final

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.consumer_protocol.member import (
    ConsumerGroupMember,
    MemberTimers,
    TopicIdPartition,
)
from kclient.embedded.groups.coordinator import CONSUMER, Committer, CoordinatorGroup
from kclient.embedded.groups.offsets import CommittedOffset
from kclient.embedded.partition import Partition, Topic
from kclient.embedded.releases import Release
from kclient.embedded.state import ClusterState
from kclient.protocol.errors import (
    ILLEGAL_GENERATION,
    STALE_MEMBER_EPOCH,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_VERSION,
)
from kclient.types import TopicPartition

NO_EPOCH: Final = -1
FIRST_VERSION: Final = 9  # the first OffsetCommit version for members of this protocol
ASSIGNMENT_EPOCHS: Final = Release.parse("4.3")
BEGIN_AT_ONE: Final = Release.parse("4.3")  # epoch 1 has no targets; the first ones are those of epoch 2


class ConsumerGroupState(enum.Enum):
    """The values are those of ListGroups and ConsumerGroupDescribe."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


@attrs.frozen
class ResolvedRegularExpression:
    """The topics that a regular expression matches, and the wall time of the resolution in ms."""

    topics: tuple[str, ...]
    at_ms: int


def _first_epoch(group: ConsumerGroupMetadata) -> int:
    return int(group.cluster.release >= BEGIN_AT_ONE)


@attrs.define(eq=False)
class ConsumerGroupMetadata(CoordinatorGroup):
    """See the module docstring. `holders`: partition → the member that owns it or has yet to revoke it."""

    kind: ClassVar[str] = CONSUMER

    epoch: int = attrs.field(default=attrs.Factory(_first_epoch, takes_self=True))
    metadata_hash: int = 0
    assignment_epoch: int = attrs.field(default=attrs.Factory(_first_epoch, takes_self=True))
    assigned_at_ms: int = 0
    members: dict[str, ConsumerGroupMember] = attrs.field(factory=dict)
    targets: dict[str, tuple[TopicIdPartition, ...]] = attrs.field(factory=dict)
    patterns: dict[str, ResolvedRegularExpression] = attrs.field(factory=dict)
    holders: dict[TopicIdPartition, str] = attrs.field(factory=dict)
    topics_seen: tuple[str, ...] = ()  # all topics at the last resolution of the regular expressions
    dead: bool = False
    timers: MemberTimers = attrs.field(
        default=attrs.Factory(lambda group: MemberTimers(group.coordinator.broker), takes_self=True)
    )

    @property
    def cluster(self) -> ClusterState:
        """The state of the cluster."""
        return self.coordinator.broker.state

    # --- rollback

    def snapshot(self) -> dict[str, Any]:
        """Return a copy of all that a journal may change."""
        return {name: copy(getattr(self, name)) for name in _CHANGEABLE}

    def restore_snapshot(self, snapshot: dict[str, Any]) -> None:
        """Restore a snapshot."""
        for name, value in snapshot.items():
            setattr(self, name, value)

    # --- state

    @property
    def state(self) -> ConsumerGroupState:
        """See the module docstring."""
        if self.dead:
            return ConsumerGroupState.DEAD
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        settled = all(member.reached(self.assignment_epoch) for member in self.members.values())
        return ConsumerGroupState.STABLE if settled else ConsumerGroupState.RECONCILING

    def static_member(self, instance_id: str) -> ConsumerGroupMember | None:
        """Return the member with this instance id."""
        return next((one for one in self.members.values() if one.instance_id == instance_id), None)

    def topics_of(self, member: ConsumerGroupMember) -> tuple[str, ...]:
        """Return the names of a member's subscribed topics, those of its regular expression included."""
        resolved = self.patterns.get(member.regex)
        return tuple(dict.fromkeys((*member.topics, *(resolved.topics if resolved else ()))))

    @property
    def assignor(self) -> str:
        """The assignor with the most votes; the first configured one of several, or without votes."""
        known = self.cluster.settings.group_consumer_assignors.split(",")
        votes = Counter(member.assignor for member in self.members.values())
        return max(known, key=lambda name: votes[name])

    # --- interface of all groups

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str | None:
        return "consumer"

    @property
    def empty(self) -> bool:
        return not self.members

    def check_commit(self, committer: Committer, partitions: Sequence[TopicPartition]) -> None:
        """Raise ApiError unless the committer is a member in a fitting epoch, or no member and the group is empty."""
        anonymous = (
            committer.generation == NO_EPOCH and not committer.member_id and committer.instance_id is None
        )
        if (committer.generation < 0 and self.empty) or (committer.transactional and anonymous):
            return
        member = self._member(committer.member_id)
        if member.classic is None and not committer.transactional and committer.api_version < FIRST_VERSION:
            raise ApiError(UNSUPPORTED_VERSION)
        if committer.generation == member.epoch:
            return
        older = committer.generation < member.epoch
        if not older or not self._owned_since(member, committer.generation, partitions):
            raise ApiError(_wrong_epoch(member))

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise ApiError unless the request names a member in its current epoch, or no member."""
        if member_id is None:
            if member_epoch >= 0:
                raise ApiError(UNKNOWN_SERVER_ERROR)  # brokers fail on this combination
            return
        member = self._member(member_id)
        if member_epoch != member.epoch:
            raise ApiError(_wrong_epoch(member))

    def _member(self, member_id: str) -> ConsumerGroupMember:
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(UNKNOWN_MEMBER_ID)
        return member

    def _owned_since(
        self, member: ConsumerGroupMember, epoch: int, partitions: Sequence[TopicPartition]
    ) -> bool:
        """Return whether the member has owned all of these partitions since this epoch or an older one (KIP-1251)."""
        if self.cluster.release < ASSIGNMENT_EPOCHS:
            return False
        since = {**member.assigned, **member.revoking}
        for tp in partitions:
            topic = self.cluster.topics.get(tp.topic)
            if topic is None or since.get(TopicIdPartition(topic.topic_id, tp.partition), epoch + 1) > epoch:
                return False
        return True

    def check_offset_delete(self) -> None:
        """Allow it: only offsets of subscribed topics are protected."""

    def subscribes_to(self, topic: str) -> bool:
        return any(topic in self.topics_of(member) for member in self.members.values())

    def retention_begins(self, tp: TopicPartition, commit: CommittedOffset) -> int | None:
        return None if self.subscribes_to(tp.topic) else commit.commit_ms

    def end(self, code: int) -> None:
        self.dead = True
        self.timers.stop_all()


_CHANGEABLE: Final = (
    *("epoch", "metadata_hash", "assignment_epoch", "assigned_at_ms"),
    *("members", "targets", "patterns", "holders"),
)


# --- the subscribed topics


def subscribed_topics(group: ConsumerGroupMetadata) -> list[Topic]:
    """Return the existing topics that members subscribe to, by name."""
    names = {name: None for member in group.members.values() for name in group.topics_of(member)}
    return [group.cluster.topics[name] for name in sorted(names) if name in group.cluster.topics]


def metadata_hash(group: ConsumerGroupMetadata) -> int:
    """Return a signed 64-bit hash of the subscribed topics, their ids, partitions and racks; 0 without topics."""
    with_racks = any(broker.rack is not None for broker in group.cluster.brokers.values())
    return hash_of(
        (
            topic.name,
            topic.topic_id,
            len(topic.partitions),
            [replica_racks(group, one) for one in topic.partitions] if with_racks else [],
        )
        for topic in subscribed_topics(group)
    )


def hash_of(topics: Iterable[tuple[str, bytes, int, Sequence[Sequence[str]]]]) -> int:
    """Hash topics in the order of their names: name, id, number of partitions, racks of the replicas."""
    whole = hashlib.blake2b(digest_size=8)
    known = False
    for name, topic_id, partitions, racks in topics:
        known = True
        whole.update(repr((name, topic_id, partitions, list(racks) if any(racks) else [])).encode())
    return int.from_bytes(whole.digest(), "big", signed=True) if known else 0


def replica_racks(group: ConsumerGroupMetadata, partition: Partition) -> list[str]:
    """Return the racks of a partition's replicas, in alphabetical order."""
    racks = {group.cluster.brokers[node].rack for node in partition.replicas}
    return sorted(rack for rack in racks if rack is not None)


def _wrong_epoch(member: ConsumerGroupMember) -> int:
    return STALE_MEMBER_EPOCH if member.classic is None else ILLEGAL_GENERATION
