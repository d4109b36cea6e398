"""The group of a consumer: which group protocol it uses, how it joins and leaves, and its automatic commits.

The group protocol is the configured one, or, with `auto`, what the cluster supports:

classic     JoinGroup, SyncGroup: the group's leader assigns the partitions
consumer    ConsumerGroupHeartbeat (KIP-848): the coordinator assigns the partitions
auto        consumer if brokers list that request and the feature group.version is at least 1; else classic

unsubscribe() and close() leave the group: they revoke the partitions, then send LeaveGroup.

state        where                     what happens
REVOKING     in the user's call        no new assignment → on_partitions_revoked or _lost → the listener's commits
                                       get their responses
SENDING      in a background task      LeaveGroup, or the last heartbeat of KIP-848
LEFT                                   the next membership may join

SENDING follows even if REVOKING is cut short. The user's call waits for LeaveGroup, unless it is cancelled. The next
join waits for LeaveGroup too, so that the coordinator does not confuse the two memberships. A second call that leaves
waits for the first. One deadline, in the loop's time, covers all steps; a part of it is reserved for LeaveGroup, so
that other members get the partitions soon.
"""

from __future__ import annotations

import asyncio
import enum
from contextlib import suppress
from functools import partial
from typing import Final

from kclient.change_signal import ChangeSignal
from kclient.config import Config
from kclient.consumer.assigned import AssignedPartitions
from kclient.consumer.callbacks import is_inside
from kclient.consumer.commits import CommitManager
from kclient.consumer.membership import MEMBERSHIP_TASK, CurrentMembership
from kclient.consumer.rebalance import Rebalance
from kclient.consumer.subscription import SubscriptionState
from kclient.consumer.tasks import BackgroundTasks
from kclient.errors import KclientError, UsageError, VersionError
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kclient.group.classic.member import ClassicMembership
from kclient.group.consumer_protocol.heartbeat import HEARTBEAT_API as HEARTBEAT
from kclient.group.consumer_protocol.member import ConsumerMembership
from kclient.group.consumer_protocol.state import new_member_id
from kclient.group.coordinator import Coordinator
from kclient.group.membership import Membership
from kclient.group.offset_commit import GiveUp
from kclient.group.offset_fetch import CommittedOffsets
from kclient.log import get_logger
from kclient.metrics.coordinator import CoordinatorMetrics
from kclient.network.api_versions import GROUP_VERSION, Features
from kclient.network.cluster import Cluster
from kclient.runtime import Runtime
from kclient.types import OffsetAndMetadata, TopicPartition

log: Final = get_logger("kclient.group")
commit_log: Final = get_logger("kclient.commit")

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
AUTO: Final = "auto"

LEAVING_SECONDS: Final = 1.0  # of the time of a close, reserved for LeaveGroup


class GroupProtocol:
    """Chooses the group protocol, once, and makes memberships that use it."""

    def __init__(
        self,
        config: Config,
        runtime: Runtime,
        cluster: Cluster,
        coordinator: Coordinator,
        rebalance: Rebalance,
        metrics: CoordinatorMetrics,
    ) -> None:
        self.chosen: str | None = None
        self.member_id: str = (
            ""  # of the consumer protocol: one id for all memberships of this consumer (KIP-1082)
        )
        self._config = config
        self._runtime = runtime
        self._cluster = cluster
        self._coordinator = coordinator
        self._rebalance = rebalance
        self._metrics = metrics

    def new_membership(self) -> Membership:
        """Return a membership in the configured protocol. `auto` is decided once."""
        config, runtime = self._config, self._runtime
        self.chosen = self.chosen or chosen_protocol(
            config.group_protocol, self._cluster.features, self._coordinator.group_id
        )
        parts = (self._coordinator, self._cluster, config, runtime, self._rebalance)
        if self.chosen == CLASSIC:
            return ClassicMembership(*parts, self._metrics)
        self.member_id = self.member_id or new_member_id(runtime)
        return ConsumerMembership(*parts, self.member_id, self._metrics)

    def fall_back(self, error: KclientError) -> bool:
        """Change to the classic protocol if `error` is a refusal of the consumer protocol. Return whether it is.

        Only with group_protocol=auto: brokers may list ConsumerGroupHeartbeat and have the protocol disabled.
        """
        if self._config.group_protocol != AUTO or self.chosen == CLASSIC:
            return False
        if not isinstance(error, VersionError) or error.api != HEARTBEAT:
            return False
        self.chosen = CLASSIC
        log_protocol(self._coordinator.group_id, CLASSIC, "the coordinator refuses the consumer protocol")
        return True

    def require_broker_patterns(self) -> None:
        """Raise UsageError in a classic group, whose brokers do not resolve patterns. `auto` is decided later."""
        if CLASSIC in (self.chosen, self._config.group_protocol):
            raise no_broker_patterns()


class LeaveState(enum.Enum):
    """How far leaving the group has come."""

    NOT_LEAVING = enum.auto()
    REVOKING = enum.auto()
    SENDING = enum.auto()
    LEFT = enum.auto()


class Leaving:
    """Leaves the group, once for each membership."""

    def __init__(
        self,
        runtime: Runtime,
        tasks: BackgroundTasks,
        subscription: SubscriptionState,
        membership: CurrentMembership,
        commits: CommitManager,
        rebalance: Rebalance,
    ) -> None:
        self.state: LeaveState = LeaveState.NOT_LEAVING
        self._runtime = runtime
        self._tasks = tasks
        self._subscription = subscription
        self._membership = membership
        self._commits = commits
        self._rebalance = rebalance
        self._sending: asyncio.Task[None] | None = None
        self._sending_began = ChangeSignal()

    async def leave(self, reason: str, deadline: float, leave: bool | None = None) -> None:
        """Call the listener, give up the assignment and leave. Raise the listener's error at the end.

        If another call is leaving, wait for it; a subscription that is made meanwhile stays. If this call is cancelled,
        LeaveGroup is sent in the background.
        """
        choice = self._subscription.choice
        if self.state is LeaveState.REVOKING:
            await self._wait_for_other_call(deadline)
        subscribed_again = self._subscription.choice != choice
        membership = self._membership.current
        if membership is None or self.state is LeaveState.REVOKING or subscribed_again:
            return
        try:
            error = await self._revoke(membership, deadline)
        finally:  # also if that was cut short: this consumer is not a member any more
            self._begin_sending(reason, deadline, leave)
        await self.wait_until_left()
        if error is not None:
            raise error

    async def leave_at_once(self, reason: str, deadline: float, leave: bool | None) -> None:
        """Leave without calling the listener, if that has not begun yet. The last step of close().

        Wait for LeaveGroup, for at most LEAVING_SECONDS.
        """
        self._begin_sending(reason, deadline, leave)
        await self.wait_until_left(LEAVING_SECONDS)

    async def wait_until_left(self, timeout: float | None = None) -> None:
        """Wait, for at most `timeout` seconds, for the end of a LeaveGroup that has begun."""
        if self._sending is not None and not self._sending.done():
            await asyncio.wait({self._sending}, timeout=timeout)

    # --- REVOKING

    async def _revoke(self, membership: Membership, deadline: float) -> Exception | None:
        """Call the listener while this is still a member, in the user's call. Return what it raised."""
        self.state = LeaveState.REVOKING
        # Read before _end_rebalances, which ends a join that is running.
        lost = membership.lost or membership.rebalancing
        revoke_deadline = deadline_before_leaving(deadline, self._runtime.now())
        error = None
        try:
            await self._end_rebalances(membership)
            try:
                await self._rebalance.leave(lost=lost, deadline=revoke_deadline)
            except Exception as exc:  # noqa: BLE001 – raised when LeaveGroup was sent
                error = exc
            await self._wait_for_commits(revoke_deadline)
        except asyncio.CancelledError:
            self._rebalance.invoker.defer_lost()
            raise
        return error

    async def _end_rebalances(self, membership: Membership) -> None:
        """Accept no new assignment. A member of the consumer protocol goes on sending heartbeats."""
        if isinstance(membership, ConsumerMembership):
            await membership.prepare_leaving()
        else:
            await self._tasks.stop(MEMBERSHIP_TASK)

    async def _wait_for_commits(self, deadline: float) -> None:
        """Wait for the responses to commits that the listener started."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._commits.wait_for_responses()
        except TimeoutError:
            commit_log.warning("asynchronous commits have no response yet; leaving the group all the same")

    async def _wait_for_other_call(self, deadline: float) -> None:
        """Wait until the call that is REVOKING has left, unless it runs the listener that called this.

        If it has not left by the deadline, its pending on_partitions_lost is deferred to the next call.
        """
        invoker = self._rebalance.invoker
        try:
            if not is_inside(invoker):
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(deadline_before_leaving(deadline, self._runtime.now())):
                        while self.state is LeaveState.REVOKING:
                            await self._sending_began.wait(self._sending_began.count)
                            await self.wait_until_left()
        finally:
            if self.state is LeaveState.REVOKING:
                invoker.defer_lost()

    # --- SENDING, LEFT

    def _begin_sending(self, reason: str, deadline: float, leave: bool | None) -> None:
        """End the membership and send LeaveGroup in the background."""
        membership, self._membership.current = self._membership.current, None
        if membership is None:
            return
        self.state = LeaveState.SENDING
        ended = self._tasks.end(MEMBERSHIP_TASK)
        sending = self._send(membership, ended, reason, deadline, leave)
        self._sending = self._tasks.spawn("leave group", sending)
        self._sending_began.notify()

    async def _send(
        self,
        membership: Membership,
        ended: set[asyncio.Task[None]],
        reason: str,
        deadline: float,
        leave: bool | None,
    ) -> None:
        if ended:
            await asyncio.wait(ended)  # no heartbeat may follow LeaveGroup
        try:
            await membership.leave(reason, max(0.0, deadline - self._runtime.now()), leave)
        finally:
            # A later membership may be REVOKING already: it joined, and waits for this task before its JoinGroup.
            if self.state is LeaveState.SENDING:
                self.state = LeaveState.LEFT


class GroupConsumer:
    """The group of one consumer. A membership lives from `join` to `leaving.leave`; commits work without one too."""

    def __init__(
        self,
        coordinator: Coordinator,
        committed: CommittedOffsets,
        protocol: GroupProtocol,
        membership: CurrentMembership,
        commits: CommitManager,
        rebalance: Rebalance,
        leaving: Leaving,
        assigned: AssignedPartitions,
        tasks: BackgroundTasks,
        changed: ChangeSignal,
    ) -> None:
        self.coordinator = coordinator
        self.committed = committed
        self.protocol = protocol
        self.membership = membership
        self.commits = commits
        self.rebalance = rebalance
        self.leaving = leaving
        self._assigned = assigned
        self._tasks = tasks
        self._changed = changed

    def join(self) -> None:
        """Join the group with the subscription, or send a member's changed subscription."""
        if self.membership.current is not None:
            self.membership.send_subscription()
            return
        self.membership.current = membership = self.protocol.new_membership()
        self.membership.send_subscription()
        membership.changed.chain(self._changed)
        self._tasks.start(MEMBERSHIP_TASK, partial(self._run, membership))

    async def _run(self, membership: Membership) -> None:
        # The previous membership must be over: with KIP-848 it has the same member id, which it would take with it.
        await self.leaving.wait_until_left()
        await membership.run()

    # --- automatic commits

    def auto_commit(self) -> None:
        """Commit automatically if this consumer may: a member in a rebalance may not."""
        if self.membership.may_auto_commit:
            self.commits.auto_commit(self._assigned.committable())
        else:
            self.commits.restart_timer()

    async def final_auto_commit(
        self, offsets: dict[TopicPartition, OffsetAndMetadata], timeout: float, give_up: GiveUp
    ) -> None:
        """Commit automatically for close(), until `timeout` or `give_up()`. Log why if it cannot."""
        if self.membership.may_auto_commit:
            await self.commits.final_auto_commit(lambda: offsets, "on close", timeout, give_up)
        elif offsets:
            lost = self.membership.lost
            self.commits.omit_auto_commit("is not a member any more" if lost else "is in a rebalance")

    # --- errors, and the change from the consumer protocol to the classic one

    def take_error(self) -> KclientError | None:
        """Return an error of the membership for the next poll to raise, once."""
        classic, membership = self.protocol.chosen == CLASSIC, self.membership.current
        if classic and self.membership.subscription.broker_pattern is not None:
            return no_broker_patterns()
        falling_back = classic and isinstance(membership, ConsumerMembership)  # about to be replaced
        return None if membership is None or falling_back else membership.take_error()

    def fall_back(self, error: KclientError) -> bool:
        """Rejoin with the classic protocol if `error` is a refusal of the consumer protocol. Return whether it is."""
        if not self.protocol.fall_back(error):
            return False
        refused = self.membership.current
        self._tasks.spawn("change of the group protocol", self._rejoin_as_classic(refused))
        return True

    async def _rejoin_as_classic(self, refused: Membership | None) -> None:
        """Join again with the classic protocol, unless the subscription ended or a new join began meanwhile."""
        if self.membership.current is refused:
            await self._tasks.stop(MEMBERSHIP_TASK)
        revoking = self.leaving.state is LeaveState.REVOKING
        if self.membership.current is refused is not None and not revoking:
            self.membership.current = None
            self.join()


def chosen_protocol(configured: str, features: Features, group_id: str) -> str:
    """Return classic or consumer. With `auto`, log which and why."""
    if configured != AUTO:
        return configured
    listed = ConsumerGroupHeartbeatRequest.API_KEY in features.apis
    level = features.levels.get(GROUP_VERSION, 0)
    chosen = CONSUMER if listed and level >= 1 else CLASSIC
    why = f"group.version is at {level}" if listed else "the brokers do not know ConsumerGroupHeartbeat"
    log_protocol(group_id, chosen, why)
    return chosen


def log_protocol(group_id: str, chosen: str, why: str) -> None:
    """Log which protocol is used."""
    log.info("group %s: using the %s group protocol: %s", group_id, chosen, why)


def no_broker_patterns() -> UsageError:
    """Return the error for a pattern that the brokers of a classic group do not resolve."""
    return UsageError(
        "A SubscriptionPattern is resolved by the brokers, and those of a classic group do not do that. "
        "Set group_protocol to 'consumer', or give a re.Pattern, which this client resolves."
    )


def deadline_before_leaving(deadline: float, now: float) -> float:
    """Return the deadline of all steps before LeaveGroup; the rest of the time is reserved for that."""
    return deadline - min(LEAVING_SECONDS, max(0.0, deadline - now) / 4)
