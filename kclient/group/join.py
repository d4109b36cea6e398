"""JoinGroup: asking to be a member of the group's next generation.

The first request of a dynamic member has no member id: the coordinator answers MEMBER_ID_REQUIRED with one, and the
second request uses it, so a lost answer never leaves a member behind that nobody is. The answer to JoinGroup comes
when all members have joined or the largest rebalance timeout has passed.

    code                               action
    0                                  generation and member id are ours, heartbeats go on, sync follows
    79 MEMBER_ID_REQUIRED              keep the member id, again at once
    25 UNKNOWN_MEMBER_ID               forget generation and member id, again at once
    27 REBALANCE_IN_PROGRESS           again at once
    14 COORDINATOR_LOAD_IN_PROGRESS    again after a pause
    15, 16, lost connection            find the coordinator, again after a pause
    anything else                      raised to the user
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from kclient.config import Config
from kclient.errors import KclientError, UsageError, VersionError
from kclient.generated.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kclient.generated.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from kclient.group.assignors import Assignor, Subscription
from kclient.group.assignors.base import assignor_failed
from kclient.group.coordinator import MOVED, Coordinator
from kclient.group.form import Form
from kclient.group.generation import (
    NO_GENERATION_ID,
    Event,
    Generation,
    MemberState,
    Standing,
    lowest_version,
)
from kclient.group.heartbeat import Heartbeats
from kclient.group.subscription_protocol import PROTOCOL_TYPE, encode_subscription
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
from kclient.types import TopicPartition

REASON_CHARACTERS: Final = 255
GRACE_MS: Final = 5_000  # how much longer than the rebalance timeout the answer may take


@attrs.frozen
class Joined:
    """A generation that we belong to but whose assignment is not known yet. `members` is given to the leader only."""

    generation: Generation
    is_leader: bool
    skip_assignment: bool
    members: tuple[JoinGroupResponseMember, ...]


class Join:
    """JoinGroup of one member."""

    def __init__(
        self,
        coordinator: Coordinator,
        standing: Standing,
        heartbeats: Heartbeats,
        config: Config,
        assignors: Sequence[Assignor],
        owned: Callable[[], tuple[TopicPartition, ...]],
    ) -> None:
        self._coordinator = coordinator
        self._standing = standing
        self._heartbeats = heartbeats
        self._config = config
        self._assignors = assignors
        self._owned = owned

    async def join(self, topics: Sequence[str]) -> Joined:
        """Send one JoinGroup for a subscription to `topics` and wait for the group. Raises KclientError."""
        self._standing.advance(Event.JOINING)
        sent = self._standing.generation
        instance_id = self._config.group_instance_id
        timeout_ms = max(self._config.request_timeout_ms, self._config.max_poll_interval_ms + GRACE_MS)
        try:
            response = await self._coordinator.request(
                JoinGroupResponse,
                Form(self._request(topics, sent), lowest_version("JoinGroup", instance_id)),
                timeout=timeout_ms / 1000,
            )
        except VersionError as exc:
            raise exc if instance_id is None else self._too_old_for_static_members(exc) from exc
        if response.error_code != codes.NONE:
            raise self._refused(response, sent)
        return self._accepted(response)

    def _request(self, topics: Sequence[str], sent: Generation) -> JoinGroupRequest:
        """The request."""
        config = self._config
        reason = self._standing.rejoin_reason or ""
        return JoinGroupRequest(
            group_id=self._coordinator.group_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.max_poll_interval_ms,
            member_id=sent.member_id,
            group_instance_id=config.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(name=assignor.name, metadata=self._metadata(assignor, topics, sent))
                for assignor in self._assignors
            ],
            reason=reason[:REASON_CHARACTERS],
        )

    def _metadata(self, assignor: Assignor, topics: Sequence[str], sent: Generation) -> bytes:
        """The subscription for one assignor: an eager member owns nothing now, for it has given up all it had."""
        try:
            user_data = assignor.subscription_user_data(topics)
        except (
            Exception,
            asyncio.CancelledError,
            SystemExit,
        ) as exc:  # it must not end the loop or our task
            doing, lost = "in subscription_user_data", "This member cannot join without its subscription."
            raise assignor_failed(assignor.name, exc, doing, lost) from exc
        if not isinstance(user_data, bytes | None):
            raise UsageError(
                f"The assignor {assignor.name!r} returned {type(user_data).__name__} from subscription_user_data. "
                "Return bytes, or None where there is nothing to say."
            )
        rack_id = self._config.client_rack or None
        generation_id = None if sent.generation_id == NO_GENERATION_ID else sent.generation_id
        subscription = Subscription(tuple(topics), user_data, self._owned(), generation_id, rack_id)
        return encode_subscription(subscription)

    def _accepted(self, response: JoinGroupResponse) -> Joined:
        """Take the new generation over, unless we left while the answer was on its way."""
        if self._standing.state is not MemberState.PREPARING_REBALANCE:
            raise self._error(codes.UNKNOWN_MEMBER_ID, "the member left while it was joining")
        names = [assignor.name for assignor in self._assignors]
        if response.protocol_type not in (None, PROTOCOL_TYPE) or response.protocol_name not in names:
            chosen = f"{response.protocol_type or PROTOCOL_TYPE}/{response.protocol_name}"
            raise self._error(codes.INCONSISTENT_GROUP_PROTOCOL, f"the group chose the protocol {chosen}")
        generation = Generation(response.generation_id, response.member_id, response.protocol_name)
        self._standing.generation = generation
        self._heartbeats.switch_on()
        self._standing.advance(Event.JOINED)
        return Joined(
            generation,
            is_leader=response.leader == response.member_id,
            skip_assignment=response.skip_assignment,
            members=tuple(response.members),
        )

    def _refused(self, response: JoinGroupResponse, sent: Generation) -> KclientError:
        """What an error code changes here; returns the error that decides how the flow goes on."""
        code = response.error_code
        unchanged = self._standing.generation == sent
        if code == codes.MEMBER_ID_REQUIRED and unchanged:
            self._standing.generation = Generation(member_id=response.member_id)
        elif code == codes.UNKNOWN_MEMBER_ID and unchanged:
            self._standing.reset("JoinGroup answered UNKNOWN_MEMBER_ID")
        elif code in MOVED:
            self._coordinator.mark_unknown(f"it answered JoinGroup with {codes.error(code).name} ({code})")
        elif code == codes.UNSUPPORTED_VERSION and self._config.group_instance_id is not None:
            doing = f"Joining group {self._coordinator.group_id}"
            refused = VersionError(f"{doing} was refused with UNSUPPORTED_VERSION (35).", api="JoinGroup")
            return self._too_old_for_static_members(refused)
        return self._error(code)

    def _error(self, code: int, message: str | None = None) -> KclientError:
        group_id = self._coordinator.group_id
        return broker_error(code, f"Joining group {group_id}", group=group_id, message=message)

    def _too_old_for_static_members(self, error: VersionError) -> VersionError:
        return VersionError(
            f"{error.text} Static membership needs Apache Kafka 2.3 or newer: "
            "unset group_instance_id, or upgrade the brokers.",
            api="JoinGroup",
            host=error.host,
            port=error.port,
            node_id=error.node_id,
        )
