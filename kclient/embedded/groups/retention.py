"""Offsets expire, and groups without members and offsets with them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from kclient.embedded.api_error import ApiError

if TYPE_CHECKING:
    from kclient.embedded.groups.coordinator import GroupCoordinator


def schedule(coordinator: GroupCoordinator) -> None:
    """Look for expired offsets in regular intervals, as long as the broker lives."""
    settings = coordinator.broker.state.settings
    coordinator.broker.call_later(
        settings.offsets_retention_check_interval_ms / 1000, lambda: _again(coordinator)
    )


def _again(coordinator: GroupCoordinator) -> None:
    with suppress(ApiError):  # too few replicas to write tombstones: the next round tries again
        expire(coordinator)
    schedule(coordinator)


def expire(coordinator: GroupCoordinator) -> None:
    """Remove what is over its time now. Raises ApiError where the tombstones cannot be written."""
    state = coordinator.broker.state
    now, retention_ms = state.clock.wall_ms(), state.settings.offsets_retention_minutes * 60_000
    for group in list(coordinator.groups.values()):
        expired = group.offsets.expired(group.retention_begins, now, retention_ms)
        coordinator.delete_offsets(group, expired)
        if group.empty and not group.offsets:
            coordinator.forget(group)
