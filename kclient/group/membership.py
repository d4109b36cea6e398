"""Group membership, for both group protocols.

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

logger = get_logger("kclient.group")

NO_GENERATION_ID: Final = -1
NO_MEMBER_ID: Final = ""
EPOCHS_SINCE: Final = 9  # OffsetCommit takes a member epoch where a generation stood before
INSTANCE_ID_SINCE: Final = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "OffsetCommit": 7}


def lowest_version(api: str, instance_id: str | None) -> int:
    """The lowest version that can carry the instance id of a static member."""
    return 0 if instance_id is None else INSTANCE_ID_SINCE[api]


@attrs.frozen
class Generation:
    """One round of the group: its number, our member id in it, the assignor it chose. −1 and "" mean none."""

    generation_id: int = NO_GENERATION_ID
    member_id: str = NO_MEMBER_ID
    protocol: str | None = None

    @property
    def lost(self) -> bool:
        """Whether the coordinator does not count us in: partitions are lost then, not revoked."""
        return self.generation_id == NO_GENERATION_ID or self.member_id == NO_MEMBER_ID


@attrs.frozen
class Identity:
    """Under which name offsets are committed and read. The default is that of a consumer without membership.

    With `by_epoch` the generation id is a member epoch: it moves on while the member keeps partitions. `joined` counts
    the memberships under this member id: what was asked for in one before is not done in the next. `heard` counts the
    answers to heartbeats, each of which says the newest epoch; it makes nobody somebody else.
    """

    generation_id: int = NO_GENERATION_ID
    member_id: str = NO_MEMBER_ID
    group_instance_id: str | None = None
    by_epoch: bool = False
    joined: int = 0
    heard: int = attrs.field(default=0, eq=False)

    def newer_than(self, stale: Identity) -> bool:
        """Whether the coordinator has said since then what the newest epoch is; it may be the same."""
        return self != stale or self.heard > stale.heard

    def continues(self, before: Identity) -> bool:
        """Whether what was asked for under the name `before` may be done under this one."""
        same = attrs.evolve(before, generation_id=self.generation_id) == self
        return same and (self.generation_id == before.generation_id or self.by_epoch)


class Membership(Protocol):
    """One consumer's membership. Run `run()` as a task of its own while the consumer is subscribed."""

    # --- what others may look at

    @property
    def state(self) -> enum.Enum:
        """Where this member stands, in the words of its protocol: for who tells people."""
        ...

    @property
    def since(self) -> float:
        """When it came to stand there, in the loop's time; 0 if it has not moved yet."""
        ...

    @property
    def ended(self) -> str:
        """Why the membership before this one ended, "" if there was none."""
        ...

    @property
    def generation(self) -> Generation:
        """The present generation, or member epoch, with our member id; `Generation()` while there is none."""
        ...

    @property
    def changed(self) -> ChangeSignal:
        """Wakes who waits for a change of state or generation, for the wish to rejoin, or for an error to take."""
        ...

    @property
    def lost(self) -> bool:
        """Whether partitions that are given up now are lost rather than revoked."""
        ...

    @property
    def rebalancing(self) -> bool:
        """Whether who leaves now has lost the partitions, for a join is under way."""
        ...

    @property
    def stable(self) -> bool:
        """Whether this is a member that may commit what it has."""
        ...

    # --- what the consumer tells

    def set_subscription(self, topics: Iterable[str], matches: Callable[[str], bool] | None = None) -> None:
        """The topics wanted now. With a pattern, those that match so far, and `matches` says whether another does."""
        ...

    def poll_started(self) -> None:
        """Restart the poll timer: when a poll begins, and in every round of one that waits."""
        ...

    def take_error(self) -> KclientError | None:
        """An error that the next poll raises: each once, but one that ends the membership for good every time."""
        ...

    def request_rejoin(self, reason: str) -> None:
        """Rebalance when the next poll allows it, where members may ask for that."""
        ...

    async def leave(self, reason: str, timeout: float, leave: bool | None = None) -> None:
        """Unsubscribe or close: no member any more. The user has given its partitions up before. Never raises.

        `leave` says whether the coordinator is told that this member does not come back; None is for the protocol to
        decide: yes for a dynamic member, no for a static one.
        """
        ...

    # --- commits

    def commit_identity(self) -> Identity:
        """Under which name to commit. Raises CommitFailedError; BrokerError once fenced."""
        ...

    def fetch_identity(self) -> Identity:
        """Under which name to read committed offsets: `Identity()`, or that of a member with an epoch."""
        ...

    def commit_refused(self, code: int, sent: Identity) -> KclientError:
        """What a refused commit means for the membership, and the error for who committed."""
        ...

    # --- running

    async def run(self) -> None:
        """Join, stay and rejoin; end it by cancelling."""
        ...


class RebalanceHandler(Protocol):
    """Runs its part inside the caller's next polls, and returns when it has run.

    What a listener raises belongs to that caller: no method raises it into the flow. Whatever a listener does, the
    assignment has changed when the method returns, unless the membership ended meanwhile.
    """

    def owned(self) -> tuple[TopicPartition, ...]:
        """The partitions that are assigned now."""
        ...

    def poll_slow(self, since_poll: float) -> None:
        """The last poll was `since_poll` seconds ago, most of max_poll_interval_ms: warn."""
        ...

    async def on_join_prepare(self, lost: bool, *, cooperative: bool = False) -> None:
        """Auto-commit, then give partitions up before a join, and tell the listener.

        `on_partitions_revoked` for all of them; if `cooperative`, for those whose topic is not wanted any more; if
        `lost`, `on_partitions_lost` for all of them, without a commit. `lost` is what is known when the work is
        posted. A membership can end between that and the poll that does the work, so the work asks `Membership.lost`
        when it begins.
        """
        ...

    async def on_join_complete(
        self,
        protocol: str,
        assignment: tuple[TopicPartition, ...],
        generation: Generation,
        remember: Callable[[], None],
    ) -> bool:
        """Take an assignment over: auto-commit and `on_partitions_revoked` for what is owned and not in it (if there
        is any), `remember()`, install it, `on_partitions_assigned` for what is new in it (also if nothing is).

        Returns whether anything was revoked: then the group must join again, for others wait for it. If `generation`
        is not `Membership.generation` any more when the work begins, it does nothing: the membership ended meanwhile,
        and the next prepare follows.
        """
        ...

    async def reconcile(self, assignment: tuple[TopicPartition, ...], still: Callable[[], bool]) -> bool:
        """As `on_join_complete`, for an assignment of the coordinator's (KIP-848), while `still()` says that it counts.

        Returns whether the assignment is in place and no listener raised. Else try again: what is done already is
        not done twice.
        """
        ...


WARN_AT: Final = 0.8  # of the interval


class PollTimer:
    """Times are seconds of the loop. `slow` is called once for each poll that is overdue soon, with the seconds
    since."""

    def __init__(self, config: Config, runtime: Runtime, slow: Callable[[float], None]) -> None:
        self._interval = config.max_poll_interval_ms / 1000
        self._runtime = runtime
        self._slow = slow
        self._polled_at = 0.0
        self._warned = False

    def restart(self) -> None:
        """A poll has begun, or another round of one that waits."""
        self._polled_at = self._runtime.now()
        self._warned = False

    def since_poll(self) -> float:
        """Seconds since the last poll."""
        return self._runtime.now() - self._polled_at

    @property
    def ends(self) -> float:
        """When the membership ends unless there is a poll before."""
        return self._polled_at + self._interval

    @property
    def next_at(self) -> float:
        """When to look again: for the warning, or for the end."""
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
