"""A consumer group read back from its records: what a coordinator does when it takes over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import attrs

from kclient.embedded.groups.consumer.group import ConsumerGroup, Resolved
from kclient.embedded.groups.consumer.member import ClassicPart, Epochs, Member, MemberState
from kclient.embedded.groups.consumer.metadata import hash_of
from kclient.embedded.groups.consumer.partitions import TopicIdPartition, from_wire

if TYPE_CHECKING:
    from kclient.embedded.groups.coordinator import GroupCoordinator


class Row(Protocol):
    """The last record under a key: its kind, its key and its value, which there is."""

    @property
    def kind(self) -> int: ...
    @property
    def key(self) -> Any: ...
    @property
    def value(self) -> Any: ...


def restore(coordinator: GroupCoordinator, group_id: str, rows: Iterable[Row]) -> ConsumerGroup:
    """The group as these records say, in any order; its timers do not run yet."""
    group = ConsumerGroup(coordinator, group_id)
    for row in rows:
        if row.kind in _SAYS:
            _SAYS[row.kind](group, row.key, row.value)
    return group


def _group(group: ConsumerGroup, key: Any, value: Any) -> None:
    group.epoch = value.epoch
    # Before 4.1 the topics have a record of their own.
    group.metadata_hash = value.metadata_hash or group.metadata_hash


def _topics(group: ConsumerGroup, key: Any, value: Any) -> None:
    topics = sorted(value.topics, key=lambda topic: topic.topic_name)
    group.metadata_hash = hash_of(
        (
            topic.topic_name,
            topic.topic_id,
            topic.num_partitions,
            [one.racks for one in topic.partition_metadata],
        )
        for topic in topics
    )


def _target_epoch(group: ConsumerGroup, key: Any, value: Any) -> None:
    group.assignment_epoch, group.assigned_at_ms = value.assignment_epoch, value.assignment_timestamp


def _member(group: ConsumerGroup, key: Any, value: Any) -> None:
    told = value.classic_member_metadata
    classic = told and ClassicPart(
        told.session_timeout_ms, tuple((one.name, bytes(one.metadata)) for one in told.supported_protocols)
    )
    group.members[key.member_id] = attrs.evolve(
        group.members.get(key.member_id) or Member(key.member_id),
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topics=tuple(value.subscribed_topic_names),
        regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=classic,
    )


def _target(group: ConsumerGroup, key: Any, value: Any) -> None:
    group.targets[key.member_id] = from_wire(value.topic_partitions)


def _current(group: ConsumerGroup, key: Any, value: Any) -> None:
    member = group.members[key.member_id] = attrs.evolve(
        group.members.get(key.member_id) or Member(key.member_id),
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
        assigned=_epochs(value.assigned_partitions, value.member_epoch),
        revoking=_epochs(value.partitions_pending_revocation, value.member_epoch),
    )
    group.holders.update(dict.fromkeys(member.holds, member.member_id))


def _pattern(group: ConsumerGroup, key: Any, value: Any) -> None:
    group.patterns[key.regular_expression] = Resolved(tuple(value.topics), value.timestamp)


def _epochs(topics: Any, member_epoch: int) -> Epochs:
    """Records of before 4.3 do not say since when; the member's epoch is the safe guess."""
    found: dict[TopicIdPartition, int] = {}
    for topic in topics:
        since = topic.assignment_epochs or [max(0, member_epoch)] * len(topic.partitions)
        for number, epoch in zip(topic.partitions, since, strict=True):
            found[TopicIdPartition(topic.topic_id, number)] = epoch
    return dict(sorted(found.items()))


_SAYS: Final[Mapping[int, Callable[[ConsumerGroup, Any, Any], None]]] = {
    3: _group,
    4: _topics,
    5: _member,
    6: _target_epoch,
    7: _target,
    8: _current,
    16: _pattern,
}
