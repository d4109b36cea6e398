"""Membership of one consumer in a group with the consumer protocol (KIP-848): the interface to the consumer.

Two tasks run as long as the consumer is subscribed: the reconciliation loop and the heartbeats (`heartbeat.py`). They
share the member's status (`state.py`) and its assignment (`assignment.py`). Steps that run user code, and errors, wait
for the application's next poll.

The reconciliation loop:

    while subscribed:
        join                the heartbeats join the group
        while a member:
            target          wait until the coordinator changes the target assignment
            reconcile       revoke and assign partitions, in the caller's next polls
            acknowledge     the next heartbeat has the owned partitions, and is sent immediately
        lose partitions     after the membership has ended: on_partitions_lost, in the caller's next poll

Heartbeats continue meanwhile, and end the membership if the coordinator does not know the member any more.

The last heartbeat of a member that leaves:

    epoch −1   the member does not return: a dynamic one, or leave=True
    epoch −2   a static member, which keeps its partitions until it returns
    nothing    a dynamic member with leave=False: its session times out

The response is only logged; the member leaves anyway.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterable
from typing import Final

from kclient.change_signal import wait_any
from kclient.config import Config
from kclient.errors import BrokerError, KclientError
from kclient.generated.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kclient.group.assignors.validate import assignment_problem, invalid_assignment
from kclient.group.classic.leave import send_leave_request
from kclient.group.commit_errors import commit_failed
from kclient.group.consumer_protocol.assignment import AssignmentTracker, ReconciliationStep
from kclient.group.consumer_protocol.heartbeat import ConsumerHeartbeatTask, HeartbeatRequests
from kclient.group.consumer_protocol.state import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_FOR_A_WHILE_EPOCH,
    ConsumerMemberState,
    ConsumerMemberStatus,
    ConsumerSubscription,
)
from kclient.group.coordinator import Coordinator, VersionedRequest
from kclient.group.membership import AbstractMembership, Identity, PollTimer, RebalanceHandler
from kclient.log import ThrottledLogger, get_logger
from kclient.metrics.coordinator import CoordinatorMetrics
from kclient.metrics.registry import Registry
from kclient.network.cluster import Cluster
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
from kclient.protocol.errors import GROUP_ID_NOT_FOUND, NONE, UNKNOWN_MEMBER_ID, error
from kclient.runtime import Runtime

logger: Final = get_logger("kclient.group")

GONE = (UNKNOWN_MEMBER_ID, GROUP_ID_NOT_FOUND)


def leave_epoch(leave: bool | None, instance_id: str | None) -> int | None:
    """Return the epoch of the last heartbeat, None if none is sent. `leave` None: the default for this member."""
    if leave or (leave is None and instance_id is None):
        return LEAVE_EPOCH
    return None if instance_id is None else LEAVE_FOR_A_WHILE_EPOCH


async def send_leave_heartbeat(coordinator: Coordinator, request: VersionedRequest, timeout: float) -> None:
    """Send the last heartbeat and wait for the response, at most `timeout` seconds. Never raises KclientError."""
    response = await send_leave_request(coordinator, ConsumerGroupHeartbeatResponse, request, timeout=timeout)
    if response is not None and (code := response.error_code) not in (NONE, *GONE):
        logger.info(
            "group %s: leaving was answered with %s (%d)", coordinator.group_id, error(code).name, code
        )


class ReconciliationLoop:
    """Reconciles the assignments that the heartbeats of one member receive."""

    def __init__(
        self,
        coordinator: Coordinator,
        cluster: Cluster,
        handler: RebalanceHandler,
        status: ConsumerMemberStatus,
        assignments: AssignmentTracker,
        heartbeats: ConsumerHeartbeatTask,
        metrics: CoordinatorMetrics,
    ) -> None:
        self._coordinator = coordinator
        self._cluster = cluster
        self._handler = handler
        self._status = status
        self._assignments = assignments
        self._heartbeats = heartbeats
        self._metrics = metrics
        self._contradicted_epoch = 0  # local epoch of an assignment that metadata contradicts

    async def run(self) -> None:
        """Run the loop, until cancelled."""
        while True:
            await self._wait_for_subscription()
            self._heartbeats.begin()
            self._status.transition_to(ConsumerMemberState.JOINING)
            while self._status.in_group:
                step = await self._next_step()
                if step is not None:
                    await self._reconcile(step)
            await self._lose_partitions()

    async def _wait_for_subscription(self) -> None:
        """Wait for a subscription; in FATAL, wait forever."""
        status = self._status
        while status.subscription is None or status.state is ConsumerMemberState.FATAL:
            await status.changed.wait(status.changed.count)

    async def _next_step(self) -> ReconciliationStep | None:
        """Wait for a reconciliation step; return None when the membership has ended."""
        status, metadata = self._status, self._cluster.metadata
        requested: tuple[bytes, ...] = ()
        while status.in_group:
            # Both counters before the conditions: a change after this line ends the wait below.
            seen, seen_metadata = status.changed.count, metadata.changed.count
            if status.state is ConsumerMemberState.RECONCILING and not self._heartbeats.owned_unacknowledged:
                self._keep_fresh()
                step = self._assignments.next_step(metadata.topic_name)
                if step is not None and self._is_in_metadata(step):
                    return step
                requested = self._request_topic_names(requested)
            await wait_any((status.changed, seen), (metadata.changed, seen_metadata))
        return None

    def _is_in_metadata(self, step: ReconciliationStep) -> bool:
        """Whether metadata agrees with the assignment; if not, request an update and wait for it."""
        assigned = {step.names[topic_id]: numbers for topic_id, numbers in step.owned.partitions.items()}
        why = assignment_problem(assigned, self._cluster.metadata)
        if why is None:
            return True
        if self._contradicted_epoch != step.owned.local_epoch:
            self._contradicted_epoch = step.owned.local_epoch
            logger.warning("%s", invalid_assignment(self._coordinator.group_id, why).text)
        self._cluster.request_update(
            "the assignment has a partition that metadata does not have", reset_backoff=False
        )
        return False

    def _keep_fresh(self) -> None:
        """Request metadata by topic id: only the coordinator knows the topics that match its pattern."""
        subscription = self._status.subscription
        if subscription is not None and subscription.regex is not None:
            self._cluster.set_topic_ids((*self._assignments.target, *self._assignments.owned.partitions))

    def _request_topic_names(self, requested: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """Request a metadata update if the target has topic ids without a name."""
        unresolved_topic_ids = self._assignments.unresolved_topic_ids(self._cluster.metadata.topic_name)
        if unresolved_topic_ids:
            self._cluster.request_update(
                f"{len(unresolved_topic_ids)} topics that were assigned have no name yet",
                reset_backoff=unresolved_topic_ids != requested,
            )
        return unresolved_topic_ids

    async def _reconcile(self, step: ReconciliationStep) -> None:
        """Take over the partitions of a step, and let the next heartbeat acknowledge them."""
        status = self._status

        def still() -> bool:
            outdated = (
                self._assignments.local_epoch != step.owned.local_epoch
                or self._heartbeats.owned_unacknowledged
            )
            return status.in_group and not outdated

        if not step.same:
            self._metrics.rebalance_began()
            if not await self._handler.reconcile(step.partitions, still):
                return  # a listener raised, or the target has changed: the loop tries again
            self._metrics.reconciled(self._metrics.now())
        # The membership may have ended while the listener ran; there is nothing to acknowledge then.
        if status.in_group:
            self._assignments.mark_reconciled(step)
            if status.state is ConsumerMemberState.RECONCILING:
                status.transition_to(ConsumerMemberState.ACKNOWLEDGING)

    async def _lose_partitions(self) -> None:
        """Run on_partitions_lost. A member that was fenced or did not poll in time joins again after it."""
        logger.info("group %s: not a member any more: %s", self._coordinator.group_id, self._status.ended)
        if self._handler.owned() or self._status.state is ConsumerMemberState.STALE:
            await self._handler.on_join_prepare(lost=True)
        self._assignments.forget()
        self._status.changed.notify()


class ConsumerMembership(AbstractMembership[ConsumerMemberStatus]):
    """One consumer's membership. Run `run()` as a task of its own while the consumer is subscribed."""

    def __init__(
        self,
        coordinator: Coordinator,
        cluster: Cluster,
        config: Config,
        runtime: Runtime,
        handler: RebalanceHandler,
        member_id: str,
        metrics: CoordinatorMetrics | None = None,
    ) -> None:
        """`member_id` comes from `new_member_id` and stays the same until the consumer is closed."""
        metrics = metrics or CoordinatorMetrics(Registry())
        status = ConsumerMemberStatus(member_id, now=runtime.now)
        super().__init__(coordinator, config, status, PollTimer(config, runtime, handler.poll_slow))
        self._cluster = cluster
        self._assignments = assignments = AssignmentTracker()
        self._requests = HeartbeatRequests(config, coordinator.group_id)
        self._heartbeats = ConsumerHeartbeatTask(
            coordinator,
            status,
            assignments,
            self._requests,
            config,
            runtime,
            self._poll_expired,
            self._poll_timer,
            self._report_error,
            metrics,
        )
        self._loop = ReconciliationLoop(
            coordinator, cluster, handler, status, assignments, self._heartbeats, metrics
        )
        self._loop_task: asyncio.Task[None] | None = None
        self._throttled = ThrottledLogger(logger)
        self._pending_error: KclientError | None = None

    # --- status

    @property
    def rebalancing(self) -> bool:
        """Always false: a member keeps its partitions while others rebalance."""
        return False

    @property
    def stable(self) -> bool:
        """Whether this member may commit: it may also while it reconciles."""
        return self._status.member

    # --- calls of the consumer

    def set_subscription(self, topics: Iterable[str], matches: Callable[[str], bool] | None = None) -> None:
        """Set the subscribed topics; the next heartbeat is sent immediately."""
        self._subscribe(ConsumerSubscription(tuple(sorted(dict.fromkeys(topics)))))

    def follow_pattern(self, regex: str) -> None:
        """Subscribe to the topics that match a pattern on the brokers."""
        self._subscribe(ConsumerSubscription(regex=regex))

    def _subscribe(self, subscription: ConsumerSubscription) -> None:
        if subscription != self._status.subscription:
            self._status.subscription = subscription
            self._status.send_now = True
            self._status.changed.notify()

    def poll_started(self) -> None:
        """Restart the poll timer: when a poll begins, and on every iteration of one that waits."""
        self._heartbeats.poll_started()

    def take_error(self) -> KclientError | None:
        """Return the error that the next poll raises: each once, but the error of FATAL every time.

        That one waits until on_partitions_lost has run.
        """
        if self._status.fatal is not None and not self._assignments.owned.partitions:
            return copy.copy(self._status.fatal)
        error, self._pending_error = self._pending_error, None
        return error

    def request_rejoin(self, reason: str) -> None:
        """Log a warning: members cannot request a rebalance in this protocol."""
        logger.warning(
            "group %s: the coordinator decides on rebalances: %s", self._coordinator.group_id, reason
        )

    async def prepare_leaving(self) -> None:
        """Stop reconciling; stay a member while the partitions are revoked."""
        if self._status.in_group:
            self._status.transition_to(ConsumerMemberState.PREPARE_LEAVING)
        if self._loop_task is not None and self._loop_task is not asyncio.current_task():
            self._loop_task.cancel()
            await asyncio.wait({self._loop_task})

    async def leave(self, reason: str, timeout: float, leave: bool | None = None) -> None:
        """Leave the group, after unsubscribe() or close() has revoked the partitions. Never raises.

        `leave`: whether this member leaves for good; None: yes unless it is static.
        """
        await self.prepare_leaving()
        status = self._status
        status.subscription, self._pending_error = None, None
        self._cluster.set_topic_ids(())
        if status.state is not ConsumerMemberState.PREPARE_LEAVING:
            return
        logger.info("group %s: leaving: %s", self._coordinator.group_id, reason)
        status.transition_to(ConsumerMemberState.LEAVING)
        status.epoch = JOIN_EPOCH
        status.transition_to(ConsumerMemberState.UNSUBSCRIBED)
        self._assignments.forget()
        await self._send_leave(leave, timeout)

    # --- commits

    def commit_identity(self) -> Identity:
        """Return the identity to commit with. Raises CommitFailedError; BrokerError once fenced."""
        status, group_id = self._status, self._coordinator.group_id
        if isinstance(status.fatal, BrokerError) and status.fatal.code == codes.FENCED_INSTANCE_ID:
            raise copy.copy(status.fatal)
        if status.member:
            return self.fetch_identity()
        if status.ended:
            why = f"this consumer is not a member any more: {status.ended}"
            raise commit_failed("evicted", group_id, why, timing=self._poll_timing())
        raise commit_failed("not_joined", group_id, "this consumer is not a member of the group yet")

    def fetch_identity(self) -> Identity:
        """Return the identity to read committed offsets with; `Identity()` while there is no epoch."""
        status = self._status
        if not status.member:
            return Identity()
        instance_id = self._config.group_instance_id
        return Identity(
            status.epoch,
            status.member_id,
            instance_id,
            by_epoch=True,
            joined=status.joined,
            epochs_received=status.epochs_received,
        )

    def commit_refused(self, code: int, sent: Identity) -> KclientError:
        """Return the error for the caller of commit(); the next heartbeat updates the membership."""
        why = f"the coordinator answered {codes.error(code).name} ({code})"
        if code == codes.FENCED_INSTANCE_ID:
            return broker_error(code, f"Committing offsets of group {self._coordinator.group_id}")
        return commit_failed("evicted", self._coordinator.group_id, why, timing=self._poll_timing())

    # --- running

    async def run(self) -> None:
        """Join, send heartbeats and rejoin, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._heartbeats.run(), name="kclient heartbeats")
            self._loop_task = tasks.create_task(self._loop.run(), name="kclient group")

    def _report_error(self, error: KclientError) -> None:
        """Keep an error for the next poll, and wake up a poll that waits; the first one wins."""
        fault, group_id = (error.kc_code, getattr(error, "code", None)), self._coordinator.group_id
        self._throttled.warning(fault, self._status.now(), "group %s: %s", group_id, error.text)
        self._pending_error = self._pending_error or error
        self._status.changed.notify()

    async def _poll_expired(self) -> None:
        """Leave after max.poll.interval.ms without a poll; the next poll joins again."""
        reason = self._log_poll_expired()
        self._status.transition_to(ConsumerMemberState.PREPARE_LEAVING)
        self._status.transition_to(ConsumerMemberState.LEAVING)
        self._status.end(ConsumerMemberState.STALE, reason)
        await self._send_leave(None, self._config.request_timeout_ms / 1000)

    async def _send_leave(self, leave: bool | None, timeout: float) -> None:
        epoch = leave_epoch(leave, self._config.group_instance_id)
        if epoch is not None and self._heartbeats.sent_join:
            request = self._requests.leave(self._status.member_id, epoch)
            await send_leave_heartbeat(self._coordinator, request, timeout)
