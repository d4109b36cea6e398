"""Membership in a group, consumer protocol: what the consumer tells it, and what it tells the consumer.

Two tasks run behind it, what the member does (`flow.py`) and the heartbeats (`heartbeat.py`). They share where the
member stands (`standing.py`) and what it owns (`assignment.py`). Everything the application must do or know waits for
its next poll.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterable

from kclient.change_signal import ChangeSignal
from kclient.config import Config
from kclient.errors import BrokerError, KclientError
from kclient.group.commit_failure import Pace, commit_failed
from kclient.group.consumer_protocol.assignment import Assignments
from kclient.group.consumer_protocol.flow import MemberFlow
from kclient.group.consumer_protocol.heartbeat import Heartbeats
from kclient.group.consumer_protocol.leave import leave_epoch, send_last
from kclient.group.consumer_protocol.request import HeartbeatRequests
from kclient.group.consumer_protocol.standing import JOIN_EPOCH, Standing, Subscribed
from kclient.group.consumer_protocol.states import MemberState
from kclient.group.coordinator import Coordinator
from kclient.group.generation import Generation, Identity
from kclient.group.user import User
from kclient.log import ThrottledLogger, get_logger
from kclient.metrics.coordinator import CoordinatorMetrics
from kclient.metrics.registry import Registry
from kclient.network.cluster import Cluster
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
from kclient.runtime import Runtime

logger = get_logger("kclient.group")


class ConsumerMembership:
    """One consumer's membership. Run `run()` as a task of its own while it is subscribed."""

    def __init__(
        self,
        coordinator: Coordinator,
        cluster: Cluster,
        config: Config,
        runtime: Runtime,
        user: User,
        member_id: str,
        metrics: CoordinatorMetrics | None = None,
    ) -> None:
        """`member_id` is the same for the consumer's life: `new_member_id`."""
        metrics = metrics or CoordinatorMetrics(Registry())
        self._coordinator = coordinator
        self._cluster = cluster
        self._config = config
        self._standing = standing = Standing(member_id, now=runtime.now)
        self._assignments = assignments = Assignments()
        self._requests = HeartbeatRequests(config, coordinator.group_id)
        self._heartbeats = Heartbeats(
            coordinator,
            standing,
            assignments,
            self._requests,
            config,
            runtime,
            self._poll_expired,
            user.poll_slow,
            self._tell,
            metrics,
        )
        self._flow = MemberFlow(coordinator, cluster, user, standing, assignments, self._heartbeats, metrics)
        self._following: asyncio.Task[None] | None = None
        self._throttled = ThrottledLogger(logger)
        self._kept: KclientError | None = None

    # --- what others may look at

    @property
    def state(self) -> MemberState:
        """Where this member stands."""
        return self._standing.state

    @property
    def since(self) -> float:
        """When it came to stand there, in the loop's time; 0 if it has not moved yet."""
        return self._standing.since

    @property
    def ended(self) -> str:
        """Why the membership before this one ended, "" if there was none."""
        return self._standing.ended

    @property
    def generation(self) -> Generation:
        """Member epoch and member id; `Generation()` while the coordinator has given no epoch."""
        return self._standing.generation

    @property
    def changed(self) -> ChangeSignal:
        """Wakes who waits for a change of state or epoch, or for an error to take."""
        return self._standing.changed

    @property
    def lost(self) -> bool:
        """Whether partitions that are given up now are lost rather than revoked."""
        return not self._standing.member

    @property
    def rebalancing(self) -> bool:
        """Never: a member owns what it has, whatever others do."""
        return False

    @property
    def stable(self) -> bool:
        """Whether this is a member that may commit: reconciling does not stand in the way."""
        return self._standing.member

    # --- what the consumer tells

    def set_subscription(self, topics: Iterable[str], matches: Callable[[str], bool] | None = None) -> None:
        """The topics wanted now; the next heartbeat tells, and does not wait."""
        self._want(Subscribed(tuple(sorted(dict.fromkeys(topics)))))

    def follow_pattern(self, regex: str) -> None:
        """The topics that the brokers find for this pattern are wanted now."""
        self._want(Subscribed(regex=regex))

    def _want(self, wanted: Subscribed) -> None:
        if wanted != self._standing.wanted:
            self._standing.wanted = wanted
            self._standing.hurry = True
            self._standing.changed.notify()

    def poll_started(self) -> None:
        """Restart the poll timer: when a poll begins, and in every round of one that waits."""
        self._heartbeats.poll_started()

    def take_error(self) -> KclientError | None:
        """An error that the next poll raises: each once, but one that ended the membership for good every time.

        That one waits until the listener was told that the partitions are lost.
        """
        if self._standing.fatal is not None and not self._assignments.owned.partitions:
            return copy.copy(self._standing.fatal)
        kept, self._kept = self._kept, None
        return kept

    def request_rejoin(self, reason: str) -> None:
        """Members of this protocol do not ask for rebalances."""
        logger.warning(
            "group %s: the coordinator decides on rebalances: %s", self._coordinator.group_id, reason
        )

    async def prepare_leaving(self) -> None:
        """The user is about to give everything up: stay a member meanwhile, but take no new assignment."""
        if self._standing.in_group:
            self._standing.enter(MemberState.PREPARE_LEAVING)
        if self._following is not None and self._following is not asyncio.current_task():
            self._following.cancel()
            await asyncio.wait({self._following})

    async def leave(self, reason: str, timeout: float, leave: bool | None = None) -> None:
        """Unsubscribe or close: no member any more. The user has given its partitions up before. Never raises.

        `leave` says whether this member does not come back; None: a static one does.
        """
        await self.prepare_leaving()
        standing = self._standing
        standing.wanted, self._kept = None, None
        self._cluster.set_topic_ids(())
        if standing.state is not MemberState.PREPARE_LEAVING:
            return
        logger.info("group %s: leaving: %s", self._coordinator.group_id, reason)
        standing.enter(MemberState.LEAVING)
        standing.epoch = JOIN_EPOCH
        standing.enter(MemberState.UNSUBSCRIBED)
        self._assignments.forget()
        await self._say_goodbye(leave, timeout)

    # --- commits

    def commit_identity(self) -> Identity:
        """Under which name to commit. Raises CommitFailedError; BrokerError once fenced."""
        standing, group_id = self._standing, self._coordinator.group_id
        if isinstance(standing.fatal, BrokerError) and standing.fatal.code == codes.FENCED_INSTANCE_ID:
            raise copy.copy(standing.fatal)
        if standing.member:
            return self.fetch_identity()
        if standing.ended:
            why = f"this consumer is not a member any more: {standing.ended}"
            raise commit_failed("evicted", group_id, why, pace=self._pace())
        raise commit_failed("not_joined", group_id, "this consumer is not a member of the group yet")

    def fetch_identity(self) -> Identity:
        """Under which name to read committed offsets: ours, or nobody's while there is no epoch."""
        standing = self._standing
        if not standing.member:
            return Identity()
        instance_id = self._config.group_instance_id
        return Identity(
            standing.epoch,
            standing.member_id,
            instance_id,
            by_epoch=True,
            joined=standing.joined,
            heard=standing.heard,
        )

    def commit_refused(self, code: int, sent: Identity) -> KclientError:
        """The error for who committed; heartbeats find out by themselves what has become of us."""
        why = f"the coordinator answered {codes.error(code).name} ({code})"
        if code == codes.FENCED_INSTANCE_ID:
            return broker_error(code, f"Committing offsets of group {self._coordinator.group_id}")
        return commit_failed("evicted", self._coordinator.group_id, why, pace=self._pace())

    # --- running

    async def run(self) -> None:
        """Join, stay and rejoin, with heartbeats beside it; end it by cancelling."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._heartbeats.run(), name="kclient heartbeats")
            self._following = tasks.create_task(self._flow.run(), name="kclient group")

    def _pace(self) -> Pace:
        return Pace.now(self._config, self._heartbeats.since_poll())

    def _tell(self, error: KclientError) -> None:
        """Keep an error for the next poll, and wake a poll that waits; the first one wins."""
        fault, group_id = (error.kc_code, getattr(error, "code", None)), self._coordinator.group_id
        self._throttled.warning(fault, self._standing.now(), "group %s: %s", group_id, error.text)
        self._kept = self._kept or error
        self._standing.changed.notify()

    async def _poll_expired(self) -> None:
        """The application has not polled in time: leave, and join again with its next poll."""
        limit = self._config.max_poll_interval_ms / 1000
        late = f"{self._heartbeats.since_poll():.1f} s between two polls, and max_poll_interval_ms allows {limit:g} s"
        logger.warning(
            "group %s: %s. This member leaves. Raise max_poll_interval_ms or lower max_poll_records.",
            self._coordinator.group_id,
            late,
        )
        self._standing.enter(MemberState.PREPARE_LEAVING)
        self._standing.enter(MemberState.LEAVING)
        self._standing.end(MemberState.STALE, f"consumer poll timeout has expired: {late}")
        await self._say_goodbye(None, self._config.request_timeout_ms / 1000)

    async def _say_goodbye(self, leave: bool | None, timeout: float) -> None:
        epoch = leave_epoch(leave, self._config.group_instance_id)
        if epoch is not None and self._heartbeats.sent_join:
            form = self._requests.leave(self._standing.member_id, epoch)
            await send_last(self._coordinator, form, timeout)
