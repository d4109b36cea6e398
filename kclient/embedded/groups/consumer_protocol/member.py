"""A member of a consumer group: its metadata, its member epoch, and the states of its reconciliation.

| state                 | member epoch         | it owns                          | it waits for                    |
|-----------------------|----------------------|----------------------------------|---------------------------------|
| STABLE                | the assignment epoch | `assigned`                       | the next target assignment      |
| UNREVOKED_PARTITIONS  | the previous one     | `assigned` and still `revoking`  | its own heartbeat without those |
| UNRELEASED_PARTITIONS | the assignment epoch | `assigned`, a part of its target | other members, to revoke theirs |

Partitions carry the id of their topic, so that a recreated topic is a different one. Each member has at most one
running timer of each kind, on the broker that coordinates the group.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.clock import Timer
from kclient.embedded.state import BrokerState


class TopicIdPartition(NamedTuple):
    """A partition under the id of its topic."""

    topic_id: bytes
    number: int


class WireTopic(Protocol):
    """A topic with partition numbers in a message of the protocol."""

    topic_id: bytes
    partitions: list[int]


def by_topic(partitions: Iterable[TopicIdPartition]) -> dict[bytes, list[int]]:
    """Return topic id → partition numbers, all ascending."""
    found: dict[bytes, list[int]] = {}
    for topic_id, number in sorted(partitions):
        found.setdefault(topic_id, []).append(number)
    return found


def from_wire(topics: Iterable[WireTopic]) -> tuple[TopicIdPartition, ...]:
    """Return the partitions of a message, ascending."""
    return tuple(
        sorted(TopicIdPartition(topic.topic_id, number) for topic in topics for number in topic.partitions)
    )


JOINING: Final = 0
LEAVING: Final = -1
LEAVING_TEMPORARILY: Final = -2  # a static member

Epochs = Mapping[TopicIdPartition, int]
"""Partition → the epoch in which the member was given it."""


class MemberState(enum.IntEnum):
    """The states of a member; the values are those of the records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


@attrs.frozen
class HostedClassicMember:
    """The JoinGroup data of a member of the classic protocol: protocols with metadata in order of preference."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@attrs.frozen
class ConsumerGroupMember:
    """A member as last written. `classic` is None for members of the consumer protocol."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    regex: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: HostedClassicMember | None = None

    epoch: int = JOINING
    previous_epoch: int = JOINING
    state: MemberState = MemberState.STABLE
    assigned: Epochs = attrs.field(factory=dict)
    revoking: Epochs = attrs.field(factory=dict)

    @property
    def holds(self) -> tuple[TopicIdPartition, ...]:
        """The partitions that no other member may get: owned, or not yet revoked."""
        return (*self.assigned, *self.revoking)

    @property
    def metadata_fields(self) -> tuple[object, ...]:
        """The fields of its metadata record."""
        return attrs.astuple(self, recurse=False)[:_PROGRESS]

    @property
    def assignment_fields(self) -> tuple[object, ...]:
        """The fields of its current assignment record."""
        return attrs.astuple(self, recurse=False)[_PROGRESS:]

    def reached(self, epoch: int) -> bool:
        """Whether it owns its whole target of this epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch


_PROGRESS: Final = [field.name for field in attrs.fields(ConsumerGroupMember)].index("epoch")


RETRY_MS: Final = 500


class MemberTimerKind(enum.Enum):
    """The timers of a member."""

    SESSION = "next heartbeat"
    REBALANCE = "revoke partitions"
    JOIN = "JoinGroup (classic)"
    SYNC = "SyncGroup (classic)"


@attrs.define(eq=False)
class MemberTimers:
    """The running timers of a group's members."""

    broker: BrokerState
    _running: dict[tuple[str, MemberTimerKind], Timer] = attrs.field(factory=dict)

    def start(self, member_id: str, kind: MemberTimerKind, ms: int, late: Callable[[], None]) -> None:
        """Start or restart a timer."""
        self.stop(member_id, kind)
        self._running[member_id, kind] = self.broker.call_later(
            ms / 1000, lambda: self._ring(member_id, kind, late)
        )

    def _ring(self, member_id: str, kind: MemberTimerKind, late: Callable[[], None]) -> None:
        try:
            late()
        except ApiError:  # the records could not be written, so nothing has changed: retry
            self.start(member_id, kind, RETRY_MS, late)

    def running(self, member_id: str, kind: MemberTimerKind) -> bool:
        """Whether the timer was started, and neither fired nor was stopped."""
        timer = self._running.get((member_id, kind))
        return timer is not None and timer.callback is not None

    def stop(self, member_id: str, *kinds: MemberTimerKind) -> None:
        """Stop the timers of these kinds, or all timers of the member."""
        for kind in kinds or MemberTimerKind:
            timer = self._running.pop((member_id, kind), None)
            if timer is not None:
                timer.cancel()

    def stop_all(self) -> None:
        """Stop the timers of all members."""
        for timer in self._running.values():
            timer.cancel()
        self._running.clear()
