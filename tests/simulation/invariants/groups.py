"""What several invariants want to know of the group, seen from the brokers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kclient.embedded.groups.classic.metadata import ClassicGroupState
from kclient.embedded.groups.consumer_protocol.metadata import ConsumerGroupState
from kclient.embedded.groups.loading import groups_of
from kclient.protocol.message import Message
from kclient.types import TopicPartition
from tests.simulation.application import GROUP

if TYPE_CHECKING:
    from kclient.embedded.groups.coordinator import CoordinatorGroup
    from tests.simulation.stage import Stage

HEARTBEAT: Final = "ConsumerGroupHeartbeat"
LEAVING: Final = -1  # the epoch of who does not come back
UUID_LENGTH: Final = 37  # with the hyphen before it

Owned = Mapping[str, list[TopicPartition]]


def name_of(stage: Stage, member_id: str) -> str:
    """The application that a member id was given to; before it spoke with it, what brokers put in front of the id."""
    return stage.ledger.who.get(member_id) or member_id[:-UUID_LENGTH]


def is_static(stage: Stage, name: str) -> bool:
    """Whether an application has an instance id."""
    member = stage.members.get(name)
    return member is not None and member.instance_id is not None


def group_of(stage: Stage) -> CoordinatorGroup | None:
    """The group as its coordinator has it, None where there is no coordinator."""
    partition = stage.group_partition(GROUP)
    broker = None if partition is None else stage.cluster.state.brokers.get(partition.leader)
    return None if broker is None or not broker.running else groups_of(broker).groups.get(GROUP)


def is_stable(stage: Stage) -> bool:
    """Whether every member has an assignment and none is joining or leaving."""
    return getattr(group_of(stage), "state", None) in (ClassicGroupState.STABLE, ConsumerGroupState.STABLE)


def leaves(api: str, message: Message) -> bool:
    """Whether a request says that a member is none any more."""
    return api == "LeaveGroup" or (api == HEARTBEAT and epoch_of(message) < 0)


def epoch_of(message: Any) -> int:
    """The member epoch of a heartbeat of the consumer protocol."""
    return int(message.member_epoch)
