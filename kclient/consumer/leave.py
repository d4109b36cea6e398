"""Leaving the group: unsubscribe() and close() revoke the partitions, then send LeaveGroup.

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
from typing import Final

from kclient.change_signal import ChangeSignal
from kclient.consumer.callbacks import is_inside
from kclient.consumer.commits import CommitManager
from kclient.consumer.membership import MEMBERSHIP_TASK, CurrentMembership
from kclient.consumer.rebalance import Rebalance
from kclient.consumer.subscription import SubscriptionState
from kclient.consumer.tasks import BackgroundTasks
from kclient.group.consumer_protocol.member import ConsumerMembership
from kclient.group.membership import Membership
from kclient.log import get_logger
from kclient.runtime import Runtime

log = get_logger("kclient.commit")

LEAVING_SECONDS: Final = 1.0  # of the time of a close, reserved for LeaveGroup


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
        self.state = LeaveState.NOT_LEAVING
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
            log.warning("asynchronous commits have no response yet; leaving the group all the same")

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


def deadline_before_leaving(deadline: float, now: float) -> float:
    """Return the deadline of all steps before LeaveGroup; the rest of the time is reserved for that."""
    return deadline - min(LEAVING_SECONDS, max(0.0, deadline - now) / 4)
