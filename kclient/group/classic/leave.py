"""LeaveGroup: a member leaves, so that the group reassigns its partitions immediately.

Nothing is sent for a static member: it is expected to return, and keeps its partitions until its session times out
(KIP-345). `close()` can override this for both kinds of member. The response is only logged; the member leaves anyway.
"""

from __future__ import annotations

import asyncio
from typing import Final

from kclient.errors import KclientError
from kclient.generated.leave_group_request import LeaveGroupRequest, MemberIdentity
from kclient.generated.leave_group_response import LeaveGroupResponse
from kclient.group.coordinator import COORDINATOR_PURPOSE, Coordinator, Response, VersionedRequest
from kclient.log import get_logger
from kclient.protocol.errors import NONE, error

logger: Final = get_logger("kclient.group")

MEMBERS_SINCE: Final = 3  # Kafka 2.4: LeaveGroup takes a list of members
REASON_CHARACTERS: Final = 255
CONNECTING_SECONDS: Final = 1.0


def sends_leave(leave: bool | None, instance_id: str | None) -> bool:
    """Whether to send LeaveGroup: as `leave` says; if it is None, for a dynamic member only."""
    return instance_id is None if leave is None else leave


async def send_leave(
    coordinator: Coordinator, member_id: str, reason: str, timeout: float, *, joining: bool
) -> None:
    """Send one LeaveGroup and wait for its response, at most `timeout` seconds. Never raises KclientError.

    A broker answers the requests of a connection in order, and JoinGroup late: a member that leaves while `joining`
    uses another connection. The whole group waits for that member, so connecting gets at least CONNECTING_SECONDS,
    even if no time is left.
    """
    member = MemberIdentity(member_id=member_id, reason=reason[:REASON_CHARACTERS])
    requests = (
        VersionedRequest(
            LeaveGroupRequest(group_id=coordinator.group_id, members=[member]), lowest=MEMBERS_SINCE
        ),
        VersionedRequest(
            LeaveGroupRequest(group_id=coordinator.group_id, member_id=member_id), highest=MEMBERS_SINCE - 1
        ),
    )
    response = await send_leave_request(
        coordinator,
        LeaveGroupResponse,
        *requests,
        timeout=max(timeout, CONNECTING_SECONDS) if joining else timeout,
        purpose="leave" if joining else COORDINATOR_PURPOSE,
    )
    if response is None:
        return
    codes = [response.error_code, *(member.error_code for member in response.members)]
    refused = next((code for code in codes if code != NONE), None)
    if refused is not None:
        logger.info(
            "group %s: leaving was answered with %s (%d)", coordinator.group_id, error(refused).name, refused
        )


async def send_leave_request(
    coordinator: Coordinator,
    response_type: type[Response],
    *requests: VersionedRequest,
    timeout: float,
    purpose: str = COORDINATOR_PURPOSE,
) -> Response | None:
    """Send a request that leaves the group; return the response if it comes within `timeout` seconds, else None.

    After the timeout the connection stays open: a late response is not a fault of the connection.
    """
    try:
        async with asyncio.timeout(timeout):
            return await coordinator.request(response_type, *requests, purpose=purpose)
    except TimeoutError:
        logger.info("group %s: leaving was not confirmed within %g s", coordinator.group_id, timeout)
    except KclientError as exc:
        logger.info("group %s: leaving was not confirmed: %s", coordinator.group_id, exc.text)
    return None
