"""Which group a heartbeat speaks of, and what becomes of a classic group when a member of the new protocol joins it."""

from __future__ import annotations

from typing import Final

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.classic import ClassicGroup
from kclient.embedded.groups.consumer import sessions
from kclient.embedded.groups.consumer.group import ConsumerGroup
from kclient.embedded.groups.consumer.journal import Journal
from kclient.embedded.groups.consumer.migration import upgraded
from kclient.embedded.groups.coordinator import GroupCoordinator
from kclient.embedded.groups.group import Group
from kclient.embedded.releases import Release
from kclient.protocol.errors import GROUP_ID_NOT_FOUND, REBALANCE_IN_PROGRESS, UNSUPPORTED_VERSION

ENABLED_SINCE: Final = Release.parse("4.0")  # brokers of 3.7 to 3.9 list the APIs, but serve them to nobody


@attrs.frozen
class Entered:
    """A group that a member may join. It is the coordinator's only when the member was taken: `keep`."""

    journal: Journal
    instead_of: Group | None

    def keep(self) -> None:
        """The group is the coordinator's. Who waits for the one it replaces is told to begin anew."""
        group = self.journal.group
        group.coordinator.groups[group.group_id] = group
        for member in group.members.values():
            if member.classic is not None:
                sessions.heard(group, member)
        if self.instead_of is not None:
            self.instead_of.end(REBALANCE_IN_PROGRESS)


def check_enabled(release: Release) -> None:
    """Raise ApiError where the consumer protocol is not switched on."""
    if release < ENABLED_SINCE:
        raise ApiError(UNSUPPORTED_VERSION)


def known_group(coordinator: GroupCoordinator, group_id: str, called: str) -> ConsumerGroup:
    """A consumer group that there is. Raises ApiError. `called` begins the message as brokers do."""
    group = coordinator.find(group_id)
    if group is None:
        raise ApiError(GROUP_ID_NOT_FOUND, f"{called} {group_id} not found.")
    if not isinstance(group, ConsumerGroup):
        raise ApiError(GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    return group


def group_to_join(coordinator: GroupCoordinator, group_id: str) -> Entered:
    """The group, a new one, or the one that a classic group turns into. Raises ApiError where it may not."""
    group = coordinator.find(group_id)
    if isinstance(group, ConsumerGroup):
        return Entered(Journal(group), None)
    if not isinstance(group, ClassicGroup):
        return Entered(Journal(ConsumerGroup(coordinator, group_id)), None)
    if group.empty:
        fresh = ConsumerGroup(coordinator, group_id, group.offsets)
        return Entered(Journal(fresh, group.tombstones()), group)
    return Entered(upgraded(group), group)
