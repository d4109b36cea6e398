"""DeleteGroups: delete a group without members, and all that it has committed (KIP-229)."""

from __future__ import annotations

from kclient.config import Config
from kclient.generated.delete_groups_request import DeleteGroupsRequest
from kclient.generated.delete_groups_response import DeleteGroupsResponse
from kclient.group.coordinator import Coordinator, VersionedRequest, request_until_answered
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
from kclient.runtime import Runtime


async def delete_group(coordinator: Coordinator, config: Config, runtime: Runtime) -> None:
    """Delete a group without members, and all that it has committed. The caller sets the timeout.

    Raises GroupAuthorizationError, BrokerError (NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND), VersionError for brokers before
    1.1, and what `Coordinator.ensure` raises.
    """
    group_id = coordinator.group_id
    response = await request_until_answered(
        coordinator,
        DeleteGroupsResponse,
        VersionedRequest(DeleteGroupsRequest(groups_names=[group_id])),
        code_of=_code,
        config=config,
        runtime=runtime,
    )
    if (code := _code(response)) != codes.NONE:
        message = response.results[0].error_message if response.results else None
        raise broker_error(code, f"Deleting group {group_id}", group=group_id, message=message)


def _code(response: DeleteGroupsResponse) -> int:
    return response.results[0].error_code if response.results else codes.GROUP_ID_NOT_FOUND
