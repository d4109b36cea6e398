"""The last heartbeat: telling the coordinator that a member goes, so that others get its partitions at once.

    epoch −1   does not come back: a dynamic member, or one that is told to leave for good
    epoch −2   a static member, whose place and partitions wait for it
    nothing    a dynamic member that is told to stay: it is missed when its session ends

An answer never stops the leaving; it is only logged.
"""

from __future__ import annotations

from kclient.generated.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kclient.group.consumer_protocol.standing import LEAVE_EPOCH, LEAVE_FOR_A_WHILE_EPOCH
from kclient.group.coordinator import Coordinator
from kclient.group.form import Form
from kclient.group.leave import last_answer
from kclient.log import get_logger
from kclient.protocol.errors import GROUP_ID_NOT_FOUND, NONE, UNKNOWN_MEMBER_ID, error

logger = get_logger("kclient.group")

GONE = (UNKNOWN_MEMBER_ID, GROUP_ID_NOT_FOUND)


def leave_epoch(leave: bool | None, instance_id: str | None) -> int | None:
    """The epoch of the last heartbeat, None where none is sent. `leave` is what the caller wants, None: as is usual."""
    if leave or (leave is None and instance_id is None):
        return LEAVE_EPOCH
    return None if instance_id is None else LEAVE_FOR_A_WHILE_EPOCH


async def send_last(coordinator: Coordinator, form: Form, timeout: float) -> None:
    """Send it and wait for its answer, at most `timeout` seconds. Never raises KclientError."""
    response = await last_answer(coordinator, ConsumerGroupHeartbeatResponse, form, timeout=timeout)
    if response is not None and (code := response.error_code) not in (NONE, *GONE):
        logger.info(
            "group %s: leaving was answered with %s (%d)", coordinator.group_id, error(code).name, code
        )
