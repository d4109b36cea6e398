"""A member of a consumer group: what it told, how far it has come, and the three states it can be in.

| state                 | its epoch            | it owns                         | it waits for                        |
|-----------------------|----------------------|---------------------------------|-------------------------------------|
| STABLE                | the one it reached   | `assigned`                      | the next target                     |
| UNREVOKED_PARTITIONS  | the one before       | `assigned` and still `revoking` | its own word that it gave those up  |
| UNRELEASED_PARTITIONS | the target's already | `assigned`, a part of its target| the others, to give up the rest     |
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

import attrs

from kclient.embedded.groups.consumer.partitions import TopicIdPartition

JOINING: Final = 0
LEAVING: Final = -1
LEAVING_FOR_A_WHILE: Final = -2  # a static member

Epochs = Mapping[TopicIdPartition, int]
"""Partition → the epoch in which the member was given it."""


class MemberState(enum.IntEnum):
    """The numbers are those of the records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


@attrs.frozen
class ClassicPart:
    """What a member of the classic protocol told when it joined: protocol name → its metadata, first choice first."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@attrs.frozen
class Member:
    """One member as it was last written. `regex` is empty without a pattern; `classic` None for the new protocol."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    regex: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicPart | None = None

    epoch: int = JOINING
    previous_epoch: int = JOINING
    state: MemberState = MemberState.STABLE
    assigned: Epochs = attrs.field(factory=dict)
    revoking: Epochs = attrs.field(factory=dict)

    @property
    def holds(self) -> tuple[TopicIdPartition, ...]:
        """Everything nobody else may have: what it owns and what it has not confirmed to have given up."""
        return (*self.assigned, *self.revoking)

    @property
    def told(self) -> tuple[object, ...]:
        """What is written of it as metadata: all but its progress."""
        return attrs.astuple(self, recurse=False)[:_PROGRESS]

    @property
    def progress(self) -> tuple[object, ...]:
        """What is written of it as its current assignment."""
        return attrs.astuple(self, recurse=False)[_PROGRESS:]

    def reached(self, epoch: int) -> bool:
        """Whether it owns all of the target of this epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch


_PROGRESS: Final = [field.name for field in attrs.fields(Member)].index("epoch")
