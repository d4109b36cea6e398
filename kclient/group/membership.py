"""The interface between a consumer and its group membership, the same for both group protocols.

    ClassicMembership    `classic/`: JoinGroup, SyncGroup, Heartbeat; the group leader computes the assignment
    ConsumerMembership   `consumer_protocol/`: ConsumerGroupHeartbeat; the coordinator computes it (KIP-848)

`AbstractMembership` is their common base. `Membership` is what the consumer calls, `RebalanceHandler` what a membership
calls during a rebalance: the steps that run user code, each inside the application's next poll. Errors wait for the
next poll too.

`PollTimer` measures max.poll.interval.ms. Every poll restarts it; at 80 % it logs a warning, while the application
still has time to poll, and at 100 % the membership ends.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import Final, Generic, Protocol, TypeVar

import attrs

from kclient.change_signal import ChangeSignal
from kclient.config import Config
from kclient.errors import KclientError
from kclient.group.commit_errors import PollTiming
from kclient.group.coordinator import Coordinator
from kclient.log import get_logger
from kclient.runtime import Runtime
from kclient.types import TopicPartition

logger: Final = get_logger("kclient.group")

NO_GENERATION_ID: Final = -1
NO_MEMBER_ID: Final = ""
EPOCHS_SINCE: Final = 9  # KIP-848: OffsetCommit takes a member epoch in the field of the generation
INSTANCE_ID_SINCE: Final = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "OffsetCommit": 7}


def lowest_version(api: str, instance_id: str | None) -> int:
    """Return the lowest version that carries the instance id of a static member (Kafka 2.3, KIP-345)."""
    return 0 if instance_id is None else INSTANCE_ID_SINCE[api]


@attrs.frozen
class Generation:
    """A generation of the group: its id, our member id in it, the assignor it chose. −1 and "" mean none."""

    generation_id: int = NO_GENERATION_ID
    member_id: str = NO_MEMBER_ID
    protocol: str | None = None

    @property
    def lost(self) -> bool:
        """Whether the coordinator does not know this member: its partitions are lost then, not revoked."""
        return self.generation_id == NO_GENERATION_ID or self.member_id == NO_MEMBER_ID


@attrs.frozen
class Identity:
    """The member fields of OffsetCommit and OffsetFetch. The defaults are those of a consumer without membership.

    With `by_epoch` the generation id is a member epoch, which grows while the member keeps its partitions. `joined`
    counts the memberships under this member id: a commit that was requested in one is not sent in the next.
    `epochs_received` counts the responses to heartbeats, each of which carries the newest epoch; it is not compared.
    """

    generation_id: int = NO_GENERATION_ID
    member_id: str = NO_MEMBER_ID
    group_instance_id: str | None = None
    by_epoch: bool = False
    joined: int = 0
    epochs_received: int = attrs.field(default=0, eq=False)

    def newer_than(self, stale: Identity) -> bool:
        """Whether a heartbeat response has brought the newest epoch since `stale`; it may be the same epoch."""
        return self != stale or self.epochs_received > stale.epochs_received

    def continues(self, before: Identity) -> bool:
        """Whether a commit that was requested under `before` may be sent under this identity."""
        same = attrs.evolve(before, generation_id=self.generation_id) == self
        return same and (self.generation_id == before.generation_id or self.by_epoch)


class Membership(Protocol):
    """One consumer's membership. Run `run()` as a task of its own while the consumer is subscribed."""

    # --- status

    @property
    def state(self) -> enum.Enum:
        """The member's state in the words of its protocol, for logs and `explain()`."""
        ...

    @property
    def since(self) -> float:
        """Loop time at which the state was entered; 0 in the initial state."""
        ...

    @property
    def ended(self) -> str:
        """Why the previous membership ended, "" if there was none."""
        ...

    @property
    def generation(self) -> Generation:
        """The current generation, or member epoch, with our member id; `Generation()` while there is none."""
        ...

    @property
    def changed(self) -> ChangeSignal:
        """Notified when the state or the generation changes, a rejoin is requested, or an error waits for a poll."""
        ...

    @property
    def lost(self) -> bool:
        """Whether partitions that are given up now count as lost, not as revoked."""
        ...

    @property
    def rebalancing(self) -> bool:
        """Whether a join is running, so that a member that leaves now has lost its partitions."""
        ...

    @property
    def stable(self) -> bool:
        """Whether this member may commit."""
        ...

    # --- calls of the consumer

    def set_subscription(self, topics: Iterable[str], matches: Callable[[str], bool] | None = None) -> None:
        """Set the subscribed topics. With a pattern: those that match so far, and `matches` tests any other topic."""
        ...

    def poll_started(self) -> None:
        """Restart the poll timer: when a poll begins, and on every iteration of one that waits."""
        ...

    def take_error(self) -> KclientError | None:
        """Return the error that the next poll raises: each once, but a fatal one every time."""
        ...

    def request_rejoin(self, reason: str) -> None:
        """Request a rebalance with the next poll, in a protocol where members can do so."""
        ...

    async def leave(self, reason: str, timeout: float, leave: bool | None = None) -> None:
        """Leave the group, after unsubscribe() or close() has revoked the partitions. Never raises.

        `leave`: whether to send the coordinator that this member leaves for good; None lets the protocol decide: yes
        for a dynamic member, no for a static one.
        """
        ...

    # --- commits

    def commit_identity(self) -> Identity:
        """Return the identity to commit with. Raises CommitFailedError; BrokerError once fenced."""
        ...

    def fetch_identity(self) -> Identity:
        """Return the identity to read committed offsets with: `Identity()`, or that of a member with an epoch."""
        ...

    def commit_refused(self, code: int, sent: Identity) -> KclientError:
        """Apply a refused commit to the membership, and return the error for the caller of commit()."""
        ...

    # --- running

    async def run(self) -> None:
        """Join, send heartbeats and rejoin, until cancelled."""
        ...


class RebalanceHandler(Protocol):
    """The steps of a rebalance that run user code. Each method runs in the caller's next polls, then returns.

    An exception of a listener is raised by that poll, never by these methods. Whatever a listener does, the assignment
    has changed when the method returns, unless the membership has ended meanwhile.
    """

    def owned(self) -> tuple[TopicPartition, ...]:
        """The partitions that are assigned now."""
        ...

    def poll_slow(self, since_poll: float) -> None:
        """Warn that the last poll was `since_poll` seconds ago, most of max_poll_interval_ms."""
        ...

    async def on_join_prepare(self, lost: bool, *, cooperative: bool = False) -> None:
        """Auto-commit, then give up partitions before a join, and call the listener.

        `on_partitions_revoked` for all of them; if `cooperative`, for those whose topic is no longer subscribed; if
        `lost`, `on_partitions_lost` for all of them, without a commit. `lost` is the value when the work is queued. A
        membership can end before the poll that runs it, so the work reads `Membership.lost` again when it begins.
        """
        ...

    async def on_join_complete(
        self,
        protocol: str,
        assignment: tuple[TopicPartition, ...],
        generation: Generation,
        notify_assignor: Callable[[], None],
    ) -> bool:
        """Install an assignment.

        Auto-commit and call `on_partitions_revoked` for the partitions that are owned and not in it (if any), call
        `notify_assignor()`, install it, and call `on_partitions_assigned` for its new partitions (also for none).

        Returns whether anything was revoked: then the member must join again, because others wait for the revoked
        partitions. Does nothing if `generation` is no longer `Membership.generation` when the work begins: the
        membership ended meanwhile, and `on_join_prepare` follows.
        """
        ...

    async def reconcile(self, assignment: tuple[TopicPartition, ...], is_newest: Callable[[], bool]) -> bool:
        """As `on_join_complete`, for an assignment of the coordinator (KIP-848), as long as `is_newest()` is true.

        Returns whether the assignment is installed and no listener raised. Otherwise call it again: steps that are
        done are not repeated.
        """
        ...


WARN_AT: Final = 0.8  # of the interval


class PollTimer:
    """The timer of max.poll.interval.ms, in loop seconds.

    `slow` is called at 80 % of the interval, once per poll, with the seconds since that poll.
    """

    def __init__(self, config: Config, runtime: Runtime, slow: Callable[[float], None]) -> None:
        self._interval = config.max_poll_interval_ms / 1000
        self._runtime = runtime
        self._slow = slow
        self._polled_at = 0.0
        self._warned = False

    def restart(self) -> None:
        """Start over: a poll has begun, or one that waits has looped."""
        self._polled_at = self._runtime.now()
        self._warned = False

    def since_poll(self) -> float:
        """Seconds since the last poll."""
        return self._runtime.now() - self._polled_at

    @property
    def ends(self) -> float:
        """Loop time at which the membership ends unless a poll comes first."""
        return self._polled_at + self._interval

    @property
    def next_at(self) -> float:
        """Loop time of the next deadline: the warning, or the end."""
        return self.ends if self._warned else self._polled_at + WARN_AT * self._interval

    def warn_if_due(self) -> None:
        """Warn once between two polls."""
        if not self._warned and self._runtime.now() >= self.next_at:
            self._warned = True
            self._slow(self.since_poll())


class MembershipStatus(Protocol):
    """The fields that the status of a member has in both protocols."""

    @property
    def state(self) -> enum.Enum: ...

    @property
    def since(self) -> float: ...

    @property
    def ended(self) -> str: ...

    @property
    def generation(self) -> Generation: ...

    @property
    def changed(self) -> ChangeSignal: ...


Status = TypeVar("Status", bound=MembershipStatus)


class AbstractMembership(Generic[Status]):
    """The part of `Membership` that both protocols share: the status, and the poll timer."""

    def __init__(
        self, coordinator: Coordinator, config: Config, status: Status, poll_timer: PollTimer
    ) -> None:
        self._coordinator = coordinator
        self._config = config
        self._status = status
        self._poll_timer = poll_timer

    @property
    def state(self) -> enum.Enum:
        """The member's state."""
        return self._status.state

    @property
    def since(self) -> float:
        """Loop time at which the state was entered; 0 in the initial state."""
        return self._status.since

    @property
    def ended(self) -> str:
        """Why the previous membership ended, "" if there was none."""
        return self._status.ended

    @property
    def generation(self) -> Generation:
        """The current generation, or member epoch, with our member id; `Generation()` while there is none."""
        return self._status.generation

    @property
    def changed(self) -> ChangeSignal:
        """Notified when the state or the generation changes, a rejoin is requested, or an error waits for a poll."""
        return self._status.changed

    @property
    def lost(self) -> bool:
        """Whether partitions that are given up now count as lost, not as revoked."""
        return self._status.generation.lost

    def _poll_timing(self) -> PollTiming:
        return PollTiming.now(self._config, self._poll_timer.since_poll())

    def _log_poll_expired(self) -> str:
        """Log that max.poll.interval.ms has passed without a poll, and return the reason for leaving."""
        limit = self._config.max_poll_interval_ms / 1000
        late = f"{self._poll_timer.since_poll():.1f} s between two polls, and max_poll_interval_ms allows {limit:g} s"
        logger.warning(
            "group %s: %s. This member leaves. Raise max_poll_interval_ms or lower max_poll_records.",
            self._coordinator.group_id,
            late,
        )
        return f"consumer poll timeout has expired: {late}"
