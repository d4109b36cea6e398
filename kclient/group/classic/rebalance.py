"""The rebalance loop of a classic member: find the coordinator, JoinGroup, SyncGroup, again when a rejoin is needed.

    while subscribed:
        find the coordinator
        prepare     auto-commit and revoke partitions, in the caller's next poll: all of them (eager), or only those
                    of topics that are no longer subscribed (cooperative)
        join        JoinGroup, until the whole group has joined
        sync        SyncGroup; the leader computes the assignment first
        complete    install the assignment, in the caller's next poll; a cooperative member first revokes the
                    partitions that go to other members
        wait until a rejoin is needed: immediately if partitions were revoked, because other members wait for them

Cancelling a poll cancels nothing here. After an error, `RejoinPolicy` (`state.py`) decides when the loop starts over.

JoinGroup. The first request of a dynamic member has no member id: the coordinator answers MEMBER_ID_REQUIRED with one,
and the second request uses it. So a lost response never leaves a member in the group that no client knows of (KIP-394).
JoinGroup is answered when all members have joined or the largest rebalance timeout has passed.

    code                               action
    0                                  take over generation and member id, restart heartbeats, send SyncGroup
    79 MEMBER_ID_REQUIRED              keep the member id, join again immediately
    25 UNKNOWN_MEMBER_ID               forget generation and member id, join again immediately
    27 REBALANCE_IN_PROGRESS           join again immediately
    14 COORDINATOR_LOAD_IN_PROGRESS    join again after a backoff
    15, 16, lost connection            find the coordinator, join again after a backoff
    anything else                      the next poll raises it

SyncGroup. The leader sends the assignments of all members, every member receives its own.

    code                               action
    0                                  take over the assignment
    27 REBALANCE_IN_PROGRESS           keep generation and member id, join again immediately
    22 ILLEGAL_GENERATION              forget the generation, keep the member id, join again immediately
    25 UNKNOWN_MEMBER_ID               forget generation and member id, join again immediately
    14 COORDINATOR_LOAD_IN_PROGRESS    join again after a backoff
    15, 16, lost connection            find the coordinator, join again after a backoff
    anything else                      the next poll raises it
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kclient.change_signal import wait_any
from kclient.config import Config
from kclient.errors import KclientError, UsageError, VersionError
from kclient.generated.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kclient.generated.join_group_response import JoinGroupResponse
from kclient.generated.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kclient.generated.sync_group_response import SyncGroupResponse
from kclient.group.assignors import (
    COOPERATIVE,
    Assignment,
    Assignor,
    Subscription,
    common_protocol,
    resolve_assignors,
)
from kclient.group.assignors.base import assignor_failed
from kclient.group.assignors.validate import assignment_problem, invalid_assignment, partitions_by_topic
from kclient.group.classic.heartbeat import HeartbeatTask
from kclient.group.classic.leader import GroupLeader, SubscriptionTracker
from kclient.group.classic.state import (
    ClassicMemberState,
    JoinedGeneration,
    MembershipEvent,
    MemberStatus,
    RejoinPolicy,
    code_of,
)
from kclient.group.coordinator import COORDINATOR_MOVED, Coordinator, VersionedRequest
from kclient.group.membership import NO_GENERATION_ID, Generation, RebalanceHandler, lowest_version
from kclient.group.subscription_codec import PROTOCOL_TYPE, decode_assignment, encode_subscription
from kclient.log import ThrottledLogger, get_logger
from kclient.metrics.coordinator import CoordinatorMetrics
from kclient.network.backoff import Backoff
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
from kclient.runtime import Runtime
from kclient.text import format_names, format_partitions
from kclient.types import GroupMetadata, TopicPartition

logger: Final = get_logger("kclient.group")

REASON_CHARACTERS: Final = 255
GRACE_MS: Final = 5_000  # the response may come this much after the rebalance timeout, as in Java


class JoinGroup:
    """Sends JoinGroup for one member and applies the response."""

    def __init__(
        self,
        coordinator: Coordinator,
        status: MemberStatus,
        heartbeats: HeartbeatTask,
        config: Config,
        assignors: Sequence[Assignor],
        owned: Callable[[], tuple[TopicPartition, ...]],
    ) -> None:
        self._coordinator = coordinator
        self._status = status
        self._heartbeats = heartbeats
        self._config = config
        self._assignors = assignors
        self._owned = owned

    async def join(self, topics: Sequence[str]) -> JoinedGeneration:
        """Send one JoinGroup for a subscription to `topics` and wait for the group. Raises KclientError."""
        self._status.advance(MembershipEvent.JOINING)
        sent = self._status.generation
        instance_id = self._config.group_instance_id
        timeout_ms = max(self._config.request_timeout_ms, self._config.max_poll_interval_ms + GRACE_MS)
        try:
            response = await self._coordinator.request(
                JoinGroupResponse,
                VersionedRequest(self._request(topics, sent), lowest_version("JoinGroup", instance_id)),
                timeout=timeout_ms / 1000,
            )
        except VersionError as exc:
            raise exc if instance_id is None else self._too_old_for_static_members(exc) from exc
        if response.error_code != codes.NONE:
            raise self._handle_error(response, sent)
        return self._handle_success(response)

    def _request(self, topics: Sequence[str], sent: Generation) -> JoinGroupRequest:
        config = self._config
        reason = self._status.rejoin_reason or ""
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
        """Encode the subscription for one assignor. An eager member owns nothing here: it has revoked everything."""
        try:
            user_data = assignor.subscription_user_data(topics)
        # User code must not end our task, so also these two.
        except (Exception, asyncio.CancelledError, SystemExit) as exc:
            doing, lost = "in subscription_user_data", "This member cannot join without its subscription."
            raise assignor_failed(assignor.name, exc, doing, lost) from exc
        if not isinstance(user_data, bytes | None):
            raise UsageError(
                f"The assignor {assignor.name!r} returned {type(user_data).__name__} from subscription_user_data. "
                "Return bytes, or None for no user data."
            )
        rack_id = self._config.client_rack or None
        generation_id = None if sent.generation_id == NO_GENERATION_ID else sent.generation_id
        subscription = Subscription(tuple(topics), user_data, self._owned(), generation_id, rack_id)
        return encode_subscription(subscription)

    def _handle_success(self, response: JoinGroupResponse) -> JoinedGeneration:
        """Take over the new generation, unless the member has left while the request was in flight."""
        if self._status.state is not ClassicMemberState.PREPARING_REBALANCE:
            raise self._error(codes.UNKNOWN_MEMBER_ID, "the member left while it was joining")
        names = [assignor.name for assignor in self._assignors]
        if response.protocol_type not in (None, PROTOCOL_TYPE) or response.protocol_name not in names:
            chosen = f"{response.protocol_type or PROTOCOL_TYPE}/{response.protocol_name}"
            raise self._error(codes.INCONSISTENT_GROUP_PROTOCOL, f"the group chose the protocol {chosen}")
        generation = Generation(response.generation_id, response.member_id, response.protocol_name)
        # Heartbeats from now on, not after SyncGroup: the session runs while the group waits for its leader.
        self._status.generation = generation
        self._heartbeats.enable()
        self._status.advance(MembershipEvent.JOINED)
        return JoinedGeneration(
            generation,
            is_leader=response.leader == response.member_id,
            skip_assignment=response.skip_assignment,
            members=tuple(response.members),
        )

    def _handle_error(self, response: JoinGroupResponse, sent: Generation) -> KclientError:
        """Apply an error code to the status; return the error for `RejoinPolicy`."""
        code = response.error_code
        unchanged = self._status.generation == sent
        if code == codes.MEMBER_ID_REQUIRED and unchanged:
            self._status.generation = Generation(member_id=response.member_id)
        elif code == codes.UNKNOWN_MEMBER_ID and unchanged:
            self._status.reset("JoinGroup answered UNKNOWN_MEMBER_ID")
        elif code in COORDINATOR_MOVED:
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


class SyncGroup:
    """Sends SyncGroup for one member and applies the response."""

    def __init__(self, coordinator: Coordinator, status: MemberStatus, config: Config) -> None:
        self._coordinator = coordinator
        self._status = status
        self._instance_id = config.group_instance_id

    async def sync(self, generation: Generation, plan: Mapping[str, bytes]) -> bytes:
        """Send the plan (empty unless this member leads); return our encoded assignment. Raises KclientError."""
        self._check_still_completing(generation)
        request = VersionedRequest(
            self._request(generation, plan), lowest_version("SyncGroup", self._instance_id)
        )
        response = await self._coordinator.request(SyncGroupResponse, request)
        if response.error_code != codes.NONE:
            raise self._handle_error(response.error_code, generation)
        if (response.protocol_type or PROTOCOL_TYPE) != PROTOCOL_TYPE:
            raise self._error(
                codes.INCONSISTENT_GROUP_PROTOCOL, f"the group is of type {response.protocol_type}"
            )
        if (response.protocol_name or generation.protocol) != generation.protocol:
            raise self._error(codes.INCONSISTENT_GROUP_PROTOCOL, f"the group uses {response.protocol_name}")
        self._check_still_completing(generation)
        self._status.synced()
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
        """Raise ILLEGAL_GENERATION if a heartbeat has ended the membership meanwhile: the response is void then."""
        status = self._status
        if status.generation != generation or status.state is not ClassicMemberState.COMPLETING_REBALANCE:
            raise self._error(codes.ILLEGAL_GENERATION, "the membership ended while the group was syncing")

    def _handle_error(self, code: int, sent: Generation) -> KclientError:
        name = codes.error(code).name
        unchanged = self._status.generation == sent
        if code in (codes.UNKNOWN_MEMBER_ID, codes.ILLEGAL_GENERATION) and unchanged:
            keep_member_id = code == codes.ILLEGAL_GENERATION
            self._status.reset(f"SyncGroup answered {name}", keep_member_id=keep_member_id)
        elif code in COORDINATOR_MOVED:
            self._coordinator.mark_unknown(f"it answered SyncGroup with {name} ({code})")
        return self._error(code)

    def _error(self, code: int, message: str | None = None) -> KclientError:
        group_id = self._coordinator.group_id
        return broker_error(code, f"Syncing with group {group_id}", group=group_id, message=message)


class RebalanceLoop:
    """Joins one member to its group, again and again.

    `subscription` is what the member joins with, `rejoin_policy` what happens after a failed join. The membership
    passes changes of the subscription and errors of other tasks to them.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        config: Config,
        runtime: Runtime,
        handler: RebalanceHandler,
        status: MemberStatus,
        heartbeats: HeartbeatTask,
        metrics: CoordinatorMetrics,
    ) -> None:
        """Raises ConfigError for a `partition_assignment_strategy` that cannot be used."""
        assignors = resolve_assignors(config.partition_assignment_strategy)
        self.subscription: Final = SubscriptionTracker()
        self.rejoin_policy: Final = RejoinPolicy(coordinator.group_id, Backoff.for_retries(config, runtime))
        self._coordinator = coordinator
        self._cluster = coordinator.cluster
        self._handler = handler
        self._status = status
        self._metrics = metrics
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._cooperative = common_protocol(assignors) == COOPERATIVE
        self._instance_id = config.group_instance_id
        self._request_timeout = config.request_timeout_ms / 1000
        self._now = runtime.now
        self._throttled = ThrottledLogger(logger)
        self._join = JoinGroup(coordinator, status, heartbeats, config, assignors, handler.owned)
        self._sync = SyncGroup(coordinator, status, config)
        self._leader = GroupLeader(self._cluster, config, runtime, assignors)

    async def run(self) -> None:
        """Run the loop, until cancelled."""
        while True:
            try:
                await self._wait_for_subscription()
                if self._status.generation.lost and self._handler.owned():
                    # Other members may own the partitions already: give them up before looking for a coordinator.
                    await self._prepare()
                await self._coordinator.ensure()
                await self._prepare()
                joined = await self._join_group()
                assignment = await self._sync_group(joined)
                await self._complete(joined.generation, assignment)
                await self._wait_for_rejoin()
            except KclientError as exc:
                if code_of(exc) != codes.MEMBER_ID_REQUIRED:
                    self._metrics.rebalance_failed()
                    self._status.request_rejoin(f"rebalance failed due to {exc.text}")
                await self.rejoin_policy.recover(exc)

    async def _wait_for_subscription(self) -> None:
        """Wait for a subscription. A fenced instance waits until it has left."""
        while self.subscription.topics is None or self.rejoin_policy.fenced is not None:
            await self._status.changed.wait(self._status.changed.count)

    async def _prepare(self) -> None:
        """Run on_join_prepare once per rebalance, and again if the membership ended meanwhile."""
        # Reset before the await: a membership that ends during the callbacks sets it again.
        while self._status.prepare_due:
            self._status.prepare_due = False
            self._log("preparing to join")
            await self._handler.on_join_prepare(self._status.generation.lost, cooperative=self._cooperative)

    async def _join_group(self) -> JoinedGeneration:
        if self.subscription.topics is None:
            raise broker_error(codes.UNKNOWN_MEMBER_ID, "Joining", message="unsubscribed meanwhile")
        self.subscription.assignment_snapshot = None
        # Kept for this join: topics that change while JoinGroup waits are a reason to rejoin.
        self.subscription.joined_subscription = self.subscription.topics
        self._metrics.rebalance_began()
        sent = self._metrics.now()
        joined = await self._join.join(self.subscription.joined_subscription)
        self._metrics.joined(sent)
        return joined

    async def _sync_group(self, joined: JoinedGeneration) -> Assignment:
        """Compute the plan if this member leads, then wait for our assignment."""
        plan: dict[str, bytes] = {}
        if joined.is_leader:
            topics = self.subscription.joined_subscription
            plan, self.subscription.assignment_snapshot = await self._leader.plan(joined, topics)
        self.subscription.keep_fresh(self._cluster)
        sent = self._metrics.now()
        blob = await self._sync.sync(joined.generation, plan)
        self._metrics.synced(sent)
        return decode_assignment(blob)

    async def _complete(self, generation: Generation, assignment: Assignment) -> None:
        """Install the assignment, unless the subscription has changed and no longer matches it."""
        await self._require_in_metadata(assignment)
        if not self.subscription.accept(assignment):
            self._throttled.warning(
                "mismatch",
                self._now(),
                "group %s: the assignment %s does not match the subscription %s: joining again",
                self._coordinator.group_id,
                format_partitions(assignment.partitions),
                format_names(self.subscription.topics or ()),
            )
            self._status.request_rejoin("received assignment does not match the current subscription")
            await self.rejoin_policy.pause()
            return
        self.rejoin_policy.succeeded()
        self._log("taking over the assignment")
        protocol = generation.protocol or ""
        revoked = await self._handler.on_join_complete(
            protocol,
            assignment.partitions,
            generation,
            lambda: self._call_on_assignment(protocol, assignment, generation),
        )
        if revoked:
            self._status.request_rejoin("need to revoke partitions and re-join")

    async def _require_in_metadata(self, assignment: Assignment) -> None:
        """Raise for an assignment that metadata contradicts, after one update of metadata."""
        assigned, metadata = partitions_by_topic(assignment.partitions), self._cluster.metadata
        if assignment_problem(assigned, metadata) is None:
            return
        await self._cluster.update_now(self._request_timeout)
        if (why := assignment_problem(assigned, metadata)) is not None:
            raise invalid_assignment(self._coordinator.group_id, why)

    async def _wait_for_rejoin(self) -> None:
        """Wait until a rejoin is requested, the subscription changes, or the topics of the leader's plan change."""
        status, metadata = self._status, self._cluster.metadata
        while True:
            # Both counters before the conditions: a change after these lines ends the wait below.
            seen, seen_metadata = status.changed.count, metadata.changed.count
            if (
                status.rejoin_reason is None
                and (reason := self.subscription.rejoin_reason_for(metadata)) is not None
            ):
                status.request_rejoin(reason)
            if status.rejoin_reason is not None:
                logger.info(
                    "group %s: a join is needed: %s", self._coordinator.group_id, status.rejoin_reason
                )
                return
            await wait_any((status.changed, seen), (metadata.changed, seen_metadata))

    def _log(self, doing: str) -> None:
        group_id, now = self._coordinator.group_id, self._status.generation
        logger.debug(
            "group %s: %s, generation %d, member %r", group_id, doing, now.generation_id, now.member_id
        )

    def _call_on_assignment(self, protocol: str, assignment: Assignment, generation: Generation) -> None:
        try:
            metadata = GroupMetadata(
                self._coordinator.group_id,
                generation.generation_id,
                generation.member_id,
                self._instance_id,
            )
            self._assignors[protocol].on_assignment(assignment, metadata)
        except (Exception, asyncio.CancelledError, SystemExit) as exc:  # noqa: BLE001 – the next poll raises it
            in_place = "The assignment is in place, but the assignor has not stored it."
            failure = assignor_failed(protocol, exc, "in on_assignment", in_place)
            failure.__cause__ = exc
            self.rejoin_policy.store_error(failure)
