"""SyncGroup: the leader hands in the plan, everybody gets their part of it.

code                               action
0                                  the assignment is ours
27 REBALANCE_IN_PROGRESS           keep generation and member id, join again at once
22 ILLEGAL_GENERATION              forget the generation, keep the member id, join again at once
25 UNKNOWN_MEMBER_ID               forget generation and member id, join again at once
14 COORDINATOR_LOAD_IN_PROGRESS    join again after a pause
15, 16, lost connection            find the coordinator, join again after a pause
anything else                      raised to the user
"""

from __future__ import annotations

from collections.abc import Mapping

from kclient.config import Config
from kclient.errors import KclientError
from kclient.generated.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kclient.generated.sync_group_response import SyncGroupResponse
from kclient.group.coordinator import MOVED, Coordinator
from kclient.group.form import Form
from kclient.group.generation import Generation, MemberState, Standing, lowest_version
from kclient.group.subscription_protocol import PROTOCOL_TYPE
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes


class Sync:
    """SyncGroup of one member."""

    def __init__(self, coordinator: Coordinator, standing: Standing, config: Config) -> None:
        self._coordinator = coordinator
        self._standing = standing
        self._instance_id = config.group_instance_id

    async def sync(self, generation: Generation, plan: Mapping[str, bytes]) -> bytes:
        """Hand in the plan (empty for followers), wait for our part: the blob of an assignment. Raises KclientError."""
        self._check_still_completing(generation)
        form = Form(self._request(generation, plan), lowest_version("SyncGroup", self._instance_id))
        response = await self._coordinator.request(SyncGroupResponse, form)
        if response.error_code != codes.NONE:
            raise self._refused(response.error_code, generation)
        if (response.protocol_type or PROTOCOL_TYPE) != PROTOCOL_TYPE:
            raise self._error(
                codes.INCONSISTENT_GROUP_PROTOCOL, f"the group is of type {response.protocol_type}"
            )
        if (response.protocol_name or generation.protocol) != generation.protocol:
            raise self._error(codes.INCONSISTENT_GROUP_PROTOCOL, f"the group uses {response.protocol_name}")
        self._check_still_completing(generation)
        self._standing.synced()
        return response.assignment

    def _request(self, generation: Generation, plan: Mapping[str, bytes]) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self._coordinator.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=self._instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=generation.protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=blob)
                for member_id, blob in plan.items()
            ],
        )

    def _check_still_completing(self, generation: Generation) -> None:
        """A heartbeat may have ended the membership meanwhile: then the answer is worth nothing."""
        standing = self._standing
        if standing.generation != generation or standing.state is not MemberState.COMPLETING_REBALANCE:
            raise self._error(codes.ILLEGAL_GENERATION, "the membership ended while the group was syncing")

    def _refused(self, code: int, sent: Generation) -> KclientError:
        name = codes.error(code).name
        unchanged = self._standing.generation == sent
        if code in (codes.UNKNOWN_MEMBER_ID, codes.ILLEGAL_GENERATION) and unchanged:
            keep_member_id = code == codes.ILLEGAL_GENERATION
            self._standing.reset(f"SyncGroup answered {name}", keep_member_id=keep_member_id)
        elif code in MOVED:
            self._coordinator.mark_unknown(f"it answered SyncGroup with {name} ({code})")
        return self._error(code)

    def _error(self, code: int, message: str | None = None) -> KclientError:
        group_id = self._coordinator.group_id
        return broker_error(code, f"Syncing with group {group_id}", group=group_id, message=message)
