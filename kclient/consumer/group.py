"""The group of a consumer: coordinator, membership while subscribed, commits, and leaving.

Leaving the group has two steps (`LeaveState`). The second follows even if the first is cut short.

    REVOKING    in the user's call: no new assignment → the listener → its commits get their responses
    SENDING     in a background task: LeaveGroup, or the last heartbeat of KIP-848

The user's call waits for LeaveGroup, unless it is cancelled. The next join waits for LeaveGroup too, so that the
coordinator does not confuse the two memberships. A second call that leaves waits for the first. One deadline, in the
loop's time, covers all steps; a part of it is reserved for LeaveGroup, so that other members get the partitions soon.

The group protocol is the configured one, or, with `auto`, what the cluster supports:

classic     JoinGroup, SyncGroup: the group's leader assigns the partitions
consumer    ConsumerGroupHeartbeat (KIP-848): the coordinator assigns the partitions
auto        consumer if brokers list that request and the feature group.version is at least 1; else classic
"""

from __future__ import annotations

import asyncio
import enum
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from kclient.change_signal import ChangeSignal
from kclient.consumer.callbacks import is_inside
from kclient.consumer.commits import CommitManager
from kclient.consumer.rebalance import Rebalance
from kclient.consumer.subscription import SubscriptionKind
from kclient.errors import ArgumentError, KclientError, UsageError, VersionError
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kclient.group.classic.member import ClassicMembership
from kclient.group.commit_errors import commit_failed
from kclient.group.consumer_protocol.heartbeat import HEARTBEAT_API as HEARTBEAT
from kclient.group.consumer_protocol.member import ConsumerMembership
from kclient.group.consumer_protocol.state import new_member_id
from kclient.group.coordinator import Coordinator
from kclient.group.membership import Generation, Identity, Membership
from kclient.group.offset_commit import GiveUp, OffsetCommitter
from kclient.group.offset_fetch import CommittedOffsets
from kclient.log import get_logger
from kclient.network.api_versions import GROUP_VERSION, Features
from kclient.protocol.errors import error as error_code
from kclient.types import GroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kclient.consumer.core import ConsumerCore


log = get_logger("kclient.group")
commit_log = get_logger("kclient.commit")

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
AUTO: Final = "auto"
MEMBERSHIP: Final = "membership in the group"
LEAVING_SECONDS: Final = 1.0  # of the time of a close, reserved for LeaveGroup


class GroupConsumer:
    """The group of one consumer. A membership lives from `join` to `leave`; commits work without one too."""

    def __init__(self, core: ConsumerCore) -> None:
        self._core = core
        self.group_id = core.config.group_id or ""
        self.coordinator = Coordinator(core.cluster, self.group_id, core.config, core.runtime)
        self.committer = OffsetCommitter(
            self.coordinator,
            core.config,
            core.runtime,
            self._identity,
            self._commit_refused,
            core.metrics.coordinator,
            self._topic_id_of,
            core.positions.__contains__,
        )
        self.committed = CommittedOffsets(self.coordinator, core.config, core.runtime, self._reader)
        self.commits = CommitManager(
            self.committer,
            core.config,
            core.runtime,
            core.tasks,
            core.callbacks,
            core.call_user,
            core.interceptors,
            core.metrics.own,
        )
        self.rebalance = Rebalance(core)
        self._membership: Membership | None = None
        self._leaving = Leaving(core)
        self._protocol: str | None = None
        self._member_id = ""  # of the consumer protocol: the same for the consumer's life

    @property
    def joining(self) -> bool:
        """Whether this consumer is a member of the group, or is joining it."""
        return self._membership is not None

    @property
    def membership(self) -> Membership | None:
        """Return the membership for inspection, None while there is none."""
        return self._membership

    @property
    def ended(self) -> str:
        """Why the last membership ended, "" if none has."""
        return self._membership.ended if self._membership is not None else ""

    @property
    def stable(self) -> bool:
        """Whether this consumer is a member and may commit: no rebalance is under way."""
        return self._membership is not None and self._membership.stable

    def join(self, topics: tuple[str, ...]) -> None:
        """Join the group with these topics, or change the topics of the membership."""
        if self._membership is None:
            core = self._core
            self._membership = self._new_membership()
            self._set_topics(self._membership, topics)
            self._membership.changed.chain(core.changed)
            core.tasks.start(MEMBERSHIP, partial(self._run_membership, self._membership))
        else:
            self._set_topics(self._membership, topics)

    async def _run_membership(self, membership: Membership) -> None:
        await self._leaving.wait_until_left()  # of the previous membership
        await membership.run()

    def _new_membership(self) -> Membership:
        """Return a membership in the configured protocol. `auto` is decided once."""
        core = self._core
        features, metrics = core.cluster.features, core.metrics.coordinator
        self._protocol = self._protocol or chosen_protocol(
            core.config.group_protocol, features, self.group_id
        )
        parts = (self.coordinator, core.cluster, core.config, core.runtime, self.rebalance)
        if self._protocol == CLASSIC:
            return ClassicMembership(*parts, metrics)
        self._member_id = self._member_id or new_member_id(core.runtime)
        return ConsumerMembership(*parts, self._member_id, metrics)

    async def leave(self, reason: str, deadline: float, leave: bool | None = None) -> None:
        """Call the listener, give up the assignment and leave. Raise the listener's error at the end.

        If another call is leaving, wait for it; a subscription that is made meanwhile stays. If this call is cancelled,
        LeaveGroup is sent in the background.
        """
        choice = self._core.subscription.choice
        if self._leaving.state is LeaveState.REVOKING:
            await self._leaving.wait_for_other_call(deadline)
        subscribed_again = self._core.subscription.choice != choice
        if self._membership is None or self._leaving.state is LeaveState.REVOKING or subscribed_again:
            return
        try:
            error = await self._leaving.revoke(self._membership, deadline)
        finally:  # also if that was cut short: this consumer is not a member any more
            self._begin_sending(reason, deadline, leave)
        await self._leaving.wait_until_left()
        if error is not None:
            raise error

    async def leave_at_once(self, reason: str, deadline: float, leave: bool | None) -> None:
        """Leave without calling the listener, if that has not begun yet. The last step of close().

        Wait for LeaveGroup, for at most LEAVING_SECONDS.
        """
        self._begin_sending(reason, deadline, leave)
        await self._leaving.wait_until_left(LEAVING_SECONDS)

    def _begin_sending(self, reason: str, deadline: float, leave: bool | None) -> None:
        membership, self._membership = self._membership, None
        if membership is not None:
            self._leaving.send(membership, reason, deadline, leave)

    def auto_commit(self) -> None:
        """Commit automatically if this consumer may: a member in a rebalance may not."""
        if self.stable or not self._core.subscription.automatic:
            self.commits.auto_commit(self._core.committable())
        else:
            self.commits.restart_timer()

    async def last_commit(
        self, offsets: dict[TopicPartition, OffsetAndMetadata], timeout: float, give_up: GiveUp
    ) -> None:
        """Commit automatically for close(), until `timeout` or `give_up()`."""
        if self.stable or not self._core.subscription.automatic:
            await self.commits.final_auto_commit(lambda: offsets, "on close", timeout, give_up)

    def poll_started(self) -> None:
        """Restart the poll timer."""
        if self._membership is not None:
            self._membership.poll_started()

    def request_rejoin(self, reason: str) -> None:
        """Let the membership join again. Raise ArgumentError for a reason that no request can carry."""
        try:
            reason.encode()
        except (AttributeError, UnicodeEncodeError):
            raise ArgumentError(f"The reason for a rebalance is text, not {reason!r}.") from None
        if self._membership is not None:
            self._membership.request_rejoin(reason)

    def take_error(self) -> KclientError | None:
        """Return an error of the membership for the next poll to raise, once."""
        if self._protocol == CLASSIC and self._core.subscription.broker_pattern is not None:
            return no_broker_patterns()
        if self._membership is None or self._is_falling_back:
            return None
        return self._membership.take_error()

    @property
    def _is_falling_back(self) -> bool:
        """Whether the membership of the refused protocol still runs, and the classic one is about to replace it."""
        return self._protocol == CLASSIC and isinstance(self._membership, ConsumerMembership)

    def fall_back(self, error: KclientError) -> bool:
        """Change to the classic protocol if `error` is a refusal of the consumer protocol. Return whether it is.

        Only with group_protocol=auto: brokers may list ConsumerGroupHeartbeat and have the protocol disabled.
        """
        if self._core.config.group_protocol != AUTO or self._protocol == CLASSIC:
            return False
        if not isinstance(error, VersionError) or error.api != HEARTBEAT:
            return False
        self._protocol = CLASSIC
        log_protocol(self.group_id, self._protocol, "the coordinator refuses the consumer protocol")
        self._core.tasks.spawn("change of the group protocol", self._rejoin_as_classic(self._membership))
        return True

    async def _rejoin_as_classic(self, refused: Membership | None) -> None:
        """Join again with the classic protocol, unless the subscription ended or a new join began meanwhile."""
        if self._membership is refused:
            await self._core.tasks.stop(MEMBERSHIP)
        if self._membership is refused is not None and self._leaving.state is not LeaveState.REVOKING:
            self._membership = None
            self.join(self._core.subscription.topics)

    def require_broker_patterns(self) -> None:
        """Raise UsageError in a classic group, whose brokers do not resolve patterns. `auto` is decided later."""
        if CLASSIC in (self._protocol, self._core.config.group_protocol):
            raise no_broker_patterns()

    def metadata(self) -> GroupMetadata:
        """Return group id, generation, member id and instance id."""
        instance_id = self._core.config.group_instance_id
        if self._membership is None:
            return GroupMetadata(self.group_id, group_instance_id=instance_id)
        generation = self._membership.generation
        return GroupMetadata(self.group_id, generation.generation_id, generation.member_id, instance_id)

    def is_present(self, generation: Generation) -> bool:
        """Return whether this is the current generation."""
        return self._membership is not None and self._membership.generation == generation

    @property
    def lost(self) -> bool:
        """Whether partitions that are given up now may already belong to other members."""
        return self._membership is None or self._membership.lost

    def _set_topics(self, membership: Membership, topics: tuple[str, ...]) -> None:
        subscription = self._core.subscription
        pattern = subscription.broker_pattern
        if pattern is not None and isinstance(membership, ConsumerMembership):
            membership.follow_pattern(pattern.pattern)
            return
        matches = subscription.covers if subscription.kind is SubscriptionKind.PATTERN else None
        membership.set_subscription(topics, matches)

    def _topic_id_of(self, partition: TopicPartition, offset: int) -> bytes | None:
        state = self._core.positions.find(partition)
        return None if state is None else state.topic_id_for_commit(offset)

    def _identity(self) -> Identity:
        """Return the identity for OffsetCommit. Raise CommitFailedError if a subscribed consumer has not joined."""
        if self._membership is not None:
            return self._membership.commit_identity()
        if self._core.subscription.automatic:
            why = "this consumer is not a member of the group: it joins with its first poll()"
            raise commit_failed("not_joined", self.group_id, why)
        return Identity()

    def _reader(self) -> Identity:
        return Identity() if self._membership is None else self._membership.fetch_identity()

    def _commit_refused(self, code: int, identity: Identity) -> KclientError:
        if self._membership is not None:
            return self._membership.commit_refused(code, identity)
        return commit_failed(
            "occupied", self.group_id, f"the coordinator answered {error_code(code).name} ({code})"
        )


class LeaveState(enum.Enum):
    """How far leaving the group has come."""

    NOT_LEAVING = enum.auto()
    REVOKING = (
        enum.auto()
    )  # in the user's call: the listener gives up the partitions, its commits are answered
    SENDING = enum.auto()  # in a background task: LeaveGroup, or the last heartbeat of KIP-848
    LEFT = enum.auto()


class Leaving:
    """Leaves the group: REVOKING → SENDING → LEFT, once for each membership.

    revoke()   REVOKING   rebalances end → on_partitions_revoked or _lost → commits get their responses
    send()     SENDING    LeaveGroup in the background; a cancelled REVOKING goes on here too
               LEFT       the task has ended; the next membership may join
    """

    def __init__(self, core: ConsumerCore) -> None:
        self.state = LeaveState.NOT_LEAVING
        self._core = core
        self._sending: asyncio.Task[None] | None = None
        self._sending_began = ChangeSignal()

    async def revoke(self, membership: Membership, deadline: float) -> Exception | None:
        """Call the listener while this is still a member, in the user's call. Return what it raised.

        `send` must follow, also if this is cut short.
        """
        self.state = LeaveState.REVOKING
        rebalance = self._core.group.rebalance
        lost = membership.lost or membership.rebalancing
        until = before_leaving(deadline, self._core.runtime.now())
        error = None
        try:
            await self._end_rebalances(membership)
            try:
                await rebalance.leave(lost=lost, deadline=until)
            except Exception as exc:  # noqa: BLE001 – raised when LeaveGroup was sent
                error = exc
            await self._wait_for_commits(until)
        except asyncio.CancelledError:
            rebalance.invoker.defer_lost()
            raise
        return error

    def send(self, membership: Membership, reason: str, deadline: float, leave: bool | None) -> None:
        """Begin to send LeaveGroup in the background."""
        self.state = LeaveState.SENDING
        tasks = self._core.tasks
        ended = tasks.end(MEMBERSHIP)
        self._sending = tasks.spawn("leave group", self._send(membership, ended, reason, deadline, leave))
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
            await asyncio.wait(ended)
        try:
            await membership.leave(reason, max(0.0, deadline - self._core.runtime.now()), leave)
        finally:
            # A later membership may be REVOKING already: it joined, and waits for this task before its JoinGroup.
            if self.state is LeaveState.SENDING:
                self.state = LeaveState.LEFT

    async def wait_until_left(self, timeout: float | None = None) -> None:
        """Wait, for at most `timeout` seconds, for the end of a LeaveGroup that has begun."""
        if self._sending is not None and not self._sending.done():
            await asyncio.wait({self._sending}, timeout=timeout)

    async def wait_for_other_call(self, deadline: float) -> None:
        """Wait until the call that is REVOKING has left, unless it runs the listener that called this.

        If it has not left by the deadline, its pending on_partitions_lost is deferred to the next call.
        """
        invoker = self._core.group.rebalance.invoker
        try:
            if not is_inside(invoker):
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(before_leaving(deadline, self._core.runtime.now())):
                        while self.state is LeaveState.REVOKING:
                            await self._sending_began.wait(self._sending_began.count)
                            await self.wait_until_left()
        finally:
            if self.state is LeaveState.REVOKING:
                invoker.defer_lost()

    async def _end_rebalances(self, membership: Membership) -> None:
        """Accept no new assignment. A member of the consumer protocol goes on sending heartbeats."""
        if isinstance(membership, ConsumerMembership):
            await membership.prepare_leaving()
        else:
            await self._core.tasks.stop(MEMBERSHIP)

    async def _wait_for_commits(self, deadline: float) -> None:
        """Wait for the responses to commits that the listener started."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._core.group.commits.wait_for_responses()
        except TimeoutError:
            commit_log.warning("asynchronous commits have no response yet; leaving the group all the same")


def before_leaving(deadline: float, now: float) -> float:
    """Return the deadline of all steps before LeaveGroup; the rest of the time is reserved for that."""
    return deadline - min(LEAVING_SECONDS, max(0.0, deadline - now) / 4)


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


def log_protocol(group_id: str, chosen: str | None, why: str) -> None:
    """Log which protocol is used."""
    log.info("group %s: using the %s group protocol: %s", group_id, chosen, why)


def no_broker_patterns() -> UsageError:
    """Return the error for a pattern that the brokers of a classic group do not resolve."""
    return UsageError(
        "A SubscriptionPattern is resolved by the brokers, and those of a classic group do not do that. "
        "Set group_protocol to 'consumer', or give a re.Pattern, which this client resolves."
    )
