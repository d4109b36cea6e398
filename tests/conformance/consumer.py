"""One member of a group of the consumer protocol, heartbeat by heartbeat; no request is sent automatically."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kclient.generated.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from kclient.generated.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
)
from kclient.generated.consumer_group_heartbeat_response import TopicPartitions as Assigned
from kclient.protocol import errors
from tests.conformance.target import Target

INTERVAL_MS = 1_000
REBALANCE_TIMEOUT_MS = 30_000

Owned = Mapping[bytes, Sequence[int]]  # topic id → partition numbers


class Member:
    """It sends its own id and, unless given, the epoch that the last good response gave it."""

    def __init__(
        self, target: Target, group: str, member_id: str, *, instance_id: str | None = None, version: int = 1
    ) -> None:
        self.target, self.group = target, target.coordinated(group)
        self.member_id, self.instance_id, self.version = member_id, instance_id, version
        self.epoch = 0

    def beat(self, epoch: int | None = None, owned: Owned | None = None, **fields: Any) -> Any:
        """One heartbeat with what it is given and nothing else."""
        if owned is not None:
            fields["topic_partitions"] = [
                TopicPartitions(topic_id=topic_id, partitions=list(numbers))
                for topic_id, numbers in owned.items()
            ]
        asked = {
            "group_id": self.group,
            "member_id": self.member_id,
            "member_epoch": self.epoch if epoch is None else epoch,
            "instance_id": self.instance_id,
            **fields,
        }
        response = self.target.ask(ConsumerGroupHeartbeatRequest(**asked), self.version)
        if response.error_code == errors.NONE:
            self.epoch = response.member_epoch
        return response

    def join(self, *topics: str, **fields: Any) -> Any:
        """The first heartbeat, with everything that it must say."""
        said = {
            "rebalance_timeout_ms": REBALANCE_TIMEOUT_MS,
            "subscribed_topic_names": list(topics),
            "owned": {},
        }
        return self.beat(0, **{**said, **fields})

    def answer(self, epoch: int, assigned: Owned | None = None) -> ConsumerGroupHeartbeatResponse:
        """The whole good response that is expected; `assigned` None where it shall say nothing of the assignment."""
        rows = [
            Assigned(topic_id=topic_id, partitions=list(numbers))
            for topic_id, numbers in (assigned or {}).items()
        ]
        return ConsumerGroupHeartbeatResponse(
            member_id=self.member_id,
            member_epoch=epoch,
            heartbeat_interval_ms=INTERVAL_MS if epoch > 0 else 0,
            assignment=None if assigned is None else Assignment(topic_partitions=rows),
        )


def refused(code: int, message: str | None) -> ConsumerGroupHeartbeatResponse:
    """The whole response to a heartbeat that fails."""
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=message)


def described(target: Target, group: str, version: int = 1) -> Any:
    """What ConsumerGroupDescribe says, members by id."""
    [row] = target.ask(ConsumerGroupDescribeRequest(group_ids=[group]), version).groups
    row.members.sort(key=lambda member: member.member_id)
    return row


def progress(target: Target, group: str) -> tuple[str, int, int, dict[str, int]]:
    """State, group epoch, assignment epoch, and the epoch of each member."""
    row = described(target, group)
    members = {member.member_id: member.member_epoch for member in row.members}
    return row.group_state, row.group_epoch, row.assignment_epoch, members
