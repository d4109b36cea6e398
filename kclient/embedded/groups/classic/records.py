"""The record of a classic group in `__consumer_offsets`, written and read back."""

from __future__ import annotations

from collections.abc import Mapping

from kclient.embedded.groups.classic.metadata import (
    ClassicGroupMember,
    ClassicGroupMetadata,
    ClassicGroupState,
)
from kclient.embedded.groups.records import record
from kclient.embedded.releases import Release
from kclient.generated.group_metadata_key import GroupMetadataKey
from kclient.generated.group_metadata_value import GroupMetadataValue, MemberMetadata
from kclient.records.writer import NewRecord


def group_version(release: Release) -> int:
    """Return the version of the group record that brokers of this release write."""
    if release >= Release.parse("2.3"):
        return 3
    if release >= Release.parse("2.1"):
        return 2
    return 1 if release >= Release.parse("0.10.1") else 0


def group_tombstone(group_id: str, timestamp: int) -> NewRecord:
    """Return the tombstone of a classic group."""
    return record(GroupMetadataKey(group=group_id), None, timestamp=timestamp)


def group_record(group: ClassicGroupMetadata, assignments: Mapping[str, bytes]) -> NewRecord:
    """Return the record of the group with these assignments, as brokers of the release write it."""
    state = group.coordinator.broker.state
    version = group_version(state.release)
    value = GroupMetadataValue(
        protocol_type=group.type_of_protocol or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=-1 if group.since_ms is None or version < 2 else group.since_ms,
        members=[_row(group, member, assignments, version) for member in group.members.values()],
    )
    return record(GroupMetadataKey(group=group.group_id), value, version, state.clock.wall_ms())


def _row(
    group: ClassicGroupMetadata, member: ClassicGroupMember, assignments: Mapping[str, bytes], version: int
) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id if version >= 3 else None,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms if version >= 1 else -1,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(group.protocol),
        assignment=assignments[member.member_id],
    )


def read_into(group: ClassicGroupMetadata, value: GroupMetadataValue) -> None:
    """Load a group from its record. A group with members was stable when the record was written."""
    group.type_of_protocol = value.protocol_type or None
    group.state = ClassicGroupState.STABLE if value.members else ClassicGroupState.EMPTY
    group.since_ms = None if value.current_state_timestamp < 0 else value.current_state_timestamp
    group.generation, group.protocol = value.generation, value.protocol
    for row in value.members:
        group.add(_member(row, value.protocol or ""))
    group.leader = value.leader
    group.subscribed = group.topics_of_members()


def _member(row: MemberMetadata, protocol: str) -> ClassicGroupMember:
    timeout = row.session_timeout if row.rebalance_timeout < 0 else row.rebalance_timeout
    return ClassicGroupMember(
        member_id=row.member_id,
        instance_id=row.group_instance_id,
        client_id=row.client_id,
        client_host=row.client_host,
        rebalance_timeout_ms=timeout,
        session_timeout_ms=row.session_timeout,
        protocols=[(protocol, row.subscription)],
        assignment=row.assignment,
    )
