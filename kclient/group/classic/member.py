"""Membership of one consumer in a group with the classic protocol: the interface to the consumer.

Two tasks run as long as the consumer is subscribed: the rebalance loop (`rebalance.py`) and the heartbeats
(`heartbeat.py`). They share the member's status (`state.py`). Steps that run user code, and errors, wait for the
application's next poll.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from kclient.config import Config
from kclient.errors import KclientError
from kclient.group.classic.heartbeat import HeartbeatTask
from kclient.group.classic.leave import send_leave, sends_leave
from kclient.group.classic.rebalance import RebalanceLoop
from kclient.group.classic.state import ClassicMemberState, MemberStatus, code_of
from kclient.group.commit_errors import PollTiming, commit_failed
from kclient.group.coordinator import Coordinator
from kclient.group.membership import AbstractMembership, Identity, PollTimer, RebalanceHandler
from kclient.log import get_logger
from kclient.metrics.coordinator import CoordinatorMetrics
from kclient.metrics.registry import Registry
from kclient.network.cluster import Cluster
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
from kclient.runtime import Runtime

logger: Final = get_logger("kclient.group")


class ClassicMembership(AbstractMembership[MemberStatus]):
    """One consumer's membership. Run `run()` as a task of its own while the consumer is subscribed."""

    def __init__(
        self,
        coordinator: Coordinator,
        cluster: Cluster,
        config: Config,
        runtime: Runtime,
        handler: RebalanceHandler,
        metrics: CoordinatorMetrics | None = None,
    ) -> None:
        """Raises ConfigError for a `partition_assignment_strategy` that cannot be used."""
        metrics = metrics or CoordinatorMetrics(Registry())
        poll_timer = PollTimer(config, runtime, handler.poll_slow)
        status = MemberStatus(now=runtime.now)
        super().__init__(coordinator, config, status, poll_timer)
        self._cluster = cluster
        self._heartbeats = HeartbeatTask(
            coordinator,
            status,
            config,
            runtime,
            self._poll_expired,
            poll_timer,
            self._fail,
            metrics,
        )
        self._loop = RebalanceLoop(coordinator, config, runtime, handler, status, self._heartbeats, metrics)
        self._subscription = self._loop.subscription
        self._rejoin_policy = self._loop.rejoin_policy

    # --- status

    @property
    def rebalancing(self) -> bool:
        """Whether a join is running, so that a member that leaves now has lost its partitions."""
        return self.state in (ClassicMemberState.PREPARING_REBALANCE, ClassicMemberState.COMPLETING_REBALANCE)

    @property
    def stable(self) -> bool:
        """Whether the current generation has its assignment: only then may this member commit."""
        return self.state is ClassicMemberState.STABLE

    # --- calls of the consumer

    def set_subscription(self, topics: Iterable[str], matches: Callable[[str], bool] | None = None) -> None:
        """Set the subscribed topics; a change causes a rejoin. Metadata updates include them from now on.

        With a pattern, `topics` are those that match so far, and `matches` tests any other topic. The caller then
        requests the metadata of all topics.
        """
        if self._subscription.topics is None:
            self._status.rejoin_reason = ""
        self._subscription.subscribe(topics, matches)
        self._subscription.keep_fresh(self._cluster)
        self._status.changed.notify()

    def poll_started(self) -> None:
        """Restart the poll timer: when a poll begins, and on every iteration of one that waits."""
        self._heartbeats.poll_started()
        self._rejoin_policy.polls.notify()

    def take_error(self) -> KclientError | None:
        """Return the error that the next poll raises: each once, but a fenced instance every time."""
        return self._rejoin_policy.take_error()

    def request_rejoin(self, reason: str) -> None:
        """Rejoin with the next poll; `reason` goes to the broker's log (KIP-800)."""
        self._status.request_rejoin(reason)

    async def leave(self, reason: str, timeout: float, leave: bool | None = None) -> None:
        """Leave the group and drop the subscription, after unsubscribe() or close() has revoked the partitions.

        Sends LeaveGroup for a dynamic member and not for a static one, unless `leave` is given. Its failure is logged.
        """
        self._subscription.unsubscribe()
        self._rejoin_policy.forget()
        await self._leave_group(reason, timeout, leave)

    # --- commits

    def commit_identity(self) -> Identity:
        """Return the identity to commit with. Raises CommitFailedError; BrokerError once fenced."""
        self._rejoin_policy.raise_if_fenced()
        group_id, instance_id = self._coordinator.group_id, self._config.group_instance_id
        return commit_identity_of(self._status, group_id, instance_id, self._poll_timing())

    def fetch_identity(self) -> Identity:
        """Return the identity to read committed offsets with: OffsetFetch has no member fields in this protocol."""
        return Identity()

    def commit_refused(self, code: int, sent: Identity) -> KclientError:
        """Apply a refused commit to the membership, and return the error for the caller of commit()."""
        error = handle_commit_error(self._status, self._coordinator.group_id, code, sent, self._poll_timing())
        if code_of(error) == codes.FENCED_INSTANCE_ID:
            self._fail(error)
        return error

    # --- running

    async def run(self) -> None:
        """Join, send heartbeats and rejoin, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._heartbeats.run(), name="kclient heartbeats")
            tasks.create_task(self._loop.run(), name="kclient group")

    def _fail(self, error: KclientError) -> None:
        """Keep an error for the next poll, and wake up a poll that waits."""
        self._rejoin_policy.store_error(error)
        self._status.changed.notify()

    async def _poll_expired(self) -> None:
        """Leave after max.poll.interval.ms without a poll; the next poll joins again."""
        reason = self._log_poll_expired()
        await self._leave_group(reason, self._config.request_timeout_ms / 1000)

    async def _leave_group(self, reason: str, timeout: float, leave: bool | None = None) -> None:
        """Reset the membership, and send LeaveGroup if the coordinator knows this member and it is not to keep it."""
        member_id, was, joining = self.generation.member_id, self.state, self.rebalancing
        self._status.reset(reason)
        goes = sends_leave(leave, self._config.group_instance_id)
        if goes and member_id and was is not ClassicMemberState.UNJOINED:
            await send_leave(self._coordinator, member_id, reason, timeout, joining=joining)


def commit_identity_of(
    status: MemberStatus, group_id: str, instance_id: str | None, timing: PollTiming
) -> Identity:
    """Return the identity that a member commits with. Raises CommitFailedError unless it is stable."""
    if status.state is ClassicMemberState.STABLE:
        generation = status.generation
        return Identity(generation.generation_id, generation.member_id, instance_id)
    if status.state is ClassicMemberState.UNJOINED and status.ended:
        why = f"this consumer is not a member any more: {status.ended}"
        raise commit_failed("evicted", group_id, why, timing=timing)
    if status.state is ClassicMemberState.UNJOINED:
        raise commit_failed("not_joined", group_id, "this consumer is not a member of the group yet")
    raise commit_failed("rebalancing", group_id, "the group is rebalancing")


def handle_commit_error(
    status: MemberStatus, group_id: str, code: int, sent: Identity, timing: PollTiming
) -> KclientError:
    """Apply 22, 25, 27 or 82 in a response to OffsetCommit, and return the error for the caller.

    A response to a commit of an earlier generation does not change the current one.
    """
    why = f"the coordinator answered {codes.error(code).name} ({code})"
    now = status.generation
    unchanged = (now.generation_id, now.member_id) == (sent.generation_id, sent.member_id)
    if code == codes.REBALANCE_IN_PROGRESS:
        if unchanged:
            status.request_rejoin("offset commit answered REBALANCE_IN_PROGRESS")
        return commit_failed("rebalancing", group_id, why)
    if not unchanged:
        rebalancing = status.state not in (ClassicMemberState.STABLE, ClassicMemberState.UNJOINED)
        if rebalancing:
            return commit_failed("rebalancing", group_id, why)
        return commit_failed("evicted", group_id, why, timing=timing)
    status.reset(
        f"offset commit answered {codes.error(code).name}", keep_member_id=code == codes.ILLEGAL_GENERATION
    )
    if code == codes.FENCED_INSTANCE_ID:
        return broker_error(code, f"Committing offsets of group {group_id}")
    return commit_failed("evicted", group_id, why, timing=timing)
