"""What several invariants want to know of the group, seen from the brokers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kclient.embedded.groups.states import State
from kclient.types import TopicPartition
from tests.simulation.application import GROUP

if TYPE_CHECKING:
    from kclient.embedded.groups.group import Group
    from tests.simulation.stage import Stage

UUID_LENGTH: Final = 37  # with the hyphen before it

Owned = Mapping[str, list[TopicPartition]]


def name_of(member_id: str) -> str:
    """The application that a member id was given to: brokers put its client id, or instance id, in front."""
    return member_id[:-UUID_LENGTH]


def group_of(stage: Stage) -> Group | None:
    """The group as its coordinator has it, None where there is no coordinator."""
    partition = stage.group_partition(GROUP)
    broker = None if partition is None else stage.cluster.state.brokers.get(partition.leader)
    return None if broker is None or not broker.running else broker.groups.groups.get(GROUP)


def is_stable(stage: Stage) -> bool:
    """Whether everybody has an assignment and nobody is on the way in or out."""
    return getattr(group_of(stage), "state", None) is State.STABLE
