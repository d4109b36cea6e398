"""The consumer's side of a rebalance: before JoinGroup, and after SyncGroup or a reconciliation of KIP-848.

    on_join_prepare     before JoinGroup: stop delivery → auto-commit → on_partitions_revoked or _lost
    on_join_complete    after SyncGroup: stop delivery of revoked partitions → auto-commit → on_partitions_revoked
                        → install the assignment → on_partitions_assigned
    reconcile           a new assignment of KIP-848: as on_join_complete

Eager members revoke everything in `on_join_prepare`; cooperative ones only partitions of topics that are no longer
subscribed. The membership's task awaits these methods. Steps that run listeners, or change what the user sees, are
queued for the user's next poll. The automatic commit between them runs in the background, so that poll() does not wait
for it. Partitions that stay are fetched all the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import attrs

from kclient.config import Config
from kclient.consumer.assigned import AssignedPartitions
from kclient.consumer.callbacks import CallbackQueue
from kclient.consumer.commits import CommitManager
from kclient.consumer.listener_invoker import Partitions, RebalanceListenerInvoker
from kclient.consumer.membership import CurrentMembership
from kclient.consumer.subscription import SubscriptionState
from kclient.group.membership import Generation
from kclient.log import get_logger
from kclient.metrics.calls import KclientMetrics
from kclient.network.cluster import Cluster
from kclient.text import format_names, format_partitions

log: Final = get_logger("kclient.group")


@attrs.define
class AssignmentChange:
    """The change from the current assignment to `target`."""

    target: Partitions
    assigned_by: str
    revoked: Partitions = ()
    installed: bool = False
    over: bool = False  # nothing is left to do, installed or not
    error: Exception | None = None  # the first one that a listener raised


class Rebalance:
    """Carries out rebalances for the membership's task, in the user's polls."""

    def __init__(
        self,
        config: Config,
        cluster: Cluster,
        subscription: SubscriptionState,
        assigned: AssignedPartitions,
        membership: CurrentMembership,
        commits: CommitManager,
        invoker: RebalanceListenerInvoker,
        rebalance_steps: CallbackQueue,
        metrics: KclientMetrics,
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._subscription = subscription
        self._assigned = assigned
        self._positions = assigned.positions
        self._membership = membership
        self._commits = commits
        self.invoker = invoker
        self._steps = rebalance_steps
        self._metrics = metrics
        self.under_way: bool = (
            False  # from the first step that needs the user's poll until the last one is done
        )

    def owned(self) -> Partitions:
        """Return the assigned partitions."""
        return self._positions.assigned()

    def poll_slow(self, since_poll: float) -> None:
        """Warn of a handler that takes most of max_poll_interval_ms: its partitions are about to be lost."""
        config, delivered_counts = self._config, self._assigned.delivered_counts()
        log.warning(
            "group %s: %.1f s since the last poll(); after %g s this member is put out of the group. In hand: %s. "
            "Handle records faster, lower max_poll_records (%d), or raise max_poll_interval_ms (%d).",
            self._membership.group_id,
            since_poll,
            config.max_poll_interval_ms / 1000,
            format_names([f"{count} records of {tp}" for tp, count in delivered_counts.items()])
            or "no records",
            config.max_poll_records,
            config.max_poll_interval_ms,
            extra={"partitions": tuple(delivered_counts)},
        )

    async def on_join_prepare(self, lost: bool, *, cooperative: bool = False) -> None:
        """Revoke what must be revoked before JoinGroup. Return when the user's polls have done it."""
        with self._needing_polls():
            await self._prepare(lost, cooperative=cooperative)

    async def _prepare(self, lost: bool, *, cooperative: bool) -> None:
        if lost:
            await self._steps.call(lambda: self.invoker.lose(self.owned()))
            return

        def to_revoke() -> Partitions:
            states = self._positions.items()
            return tuple(tp for tp, state in states if state.unsubscribed or not cooperative)

        await self._stop_and_commit(to_revoke, "before the rebalance")
        await self._steps.call(lambda: self._revoke_before_join(to_revoke(), always=not cooperative))

    async def on_join_complete(
        self,
        protocol: str,
        assignment: Partitions,
        generation: Generation,
        notify_assignor: Callable[[], None],
    ) -> bool:
        """Install the assignment of a generation, and return whether partitions were revoked for it."""
        change = AssignmentChange(tuple(dict.fromkeys(assignment)), protocol)
        with self._needing_polls():
            await self._prepare_change(change)
            while (
                not change.over
            ):  # a poll that is cancelled in the listener leaves the rest to the next poll
                await self._steps.call(lambda: self._complete_join(change, generation, notify_assignor))
        return bool(change.revoked)

    async def reconcile(self, assignment: Partitions, is_newest: Callable[[], bool]) -> bool:
        """Install an assignment of the coordinator (KIP-848). Return whether it is in place and no listener raised."""
        change = AssignmentChange(assignment, "the coordinator")
        with self._needing_polls():
            await self._prepare_change(change)
            while not change.over:
                await self._steps.call(lambda: self._complete_reconciliation(change, is_newest))
        return change.installed and change.error is None

    async def leave(self, *, lost: bool, deadline: float) -> None:
        """Give up the assignment because the consumer leaves. Runs in the user's call.

        Wait first for a listener that another call runs, at most until the deadline. Partitions that it is giving up
        are not reported to the listener again.
        """
        await self.invoker.wait_until_returned(deadline)
        lost = lost or self._membership.lost  # a heartbeat may have ended the membership meanwhile
        if left := self.invoker.pending_lost():
            await (self.invoker.lose(left) if lost else self.invoker.revoke(left))

    # --- for the membership's task

    @contextmanager
    def _needing_polls(self) -> Iterator[None]:
        """Keep poll() in the rebalance while this block runs, and wake it at the end."""
        self.under_way = True
        try:
            yield
        finally:
            self.under_way = False
            self._steps.notify()

    async def _prepare_change(self, change: AssignmentChange) -> None:
        if not set(self.owned()) <= set(change.target):
            await self._stop_and_commit(lambda: self._not_in(change), "before the revocation")

    async def _stop_and_commit(self, to_revoke: Callable[[], Partitions], why: str) -> None:
        await self._steps.call(lambda: self._stop_delivery(to_revoke()))
        # The group waits at most max_poll_interval_ms for this member: leave half of it for JoinGroup.
        timeout = self._config.max_poll_interval_ms / 2000
        await self._commits.final_auto_commit(self._assigned.committable, why, timeout)

    # --- steps in the user's polls

    async def _stop_delivery(self, to_revoke: Partitions) -> None:
        """Fetch and deliver nothing more of these, so that the commit covers all delivered records."""
        self._assigned.stop_delivery(to_revoke)

    async def _revoke_before_join(self, to_revoke: Partitions, *, always: bool) -> None:
        """Call the listener before JoinGroup. A heartbeat may have ended the membership since the last poll."""
        if self._membership.lost:
            await self.invoker.lose(self.owned())
        elif to_revoke or always:
            await self.invoker.revoke(to_revoke)

    async def _complete_join(
        self, change: AssignmentChange, generation: Generation, notify_assignor: Callable[[], None]
    ) -> None:
        """Revoke, then install the assignment of a generation, unless it is out of date before or after the listener.

        The membership may end and the subscription may change while the listener runs.
        """
        if self._is_current(generation, change):
            await self._revoke(change)
            if self._is_current(generation, change):
                self._learn_topics(change.target)
                notify_assignor()
                await self._install(change)
        self._finish(change)

    async def _complete_reconciliation(self, change: AssignmentChange, is_newest: Callable[[], bool]) -> None:
        """Revoke, then install an assignment of the coordinator, while `is_newest()` is true."""
        if is_newest():
            await self._revoke(change)
            if is_newest():
                await self._install(change)
        self._finish(change)

    async def _revoke(self, change: AssignmentChange) -> None:
        """Revoke what is not in the target. An error of the listener is kept until the change is over."""
        revoked = self._not_in(change)
        if not revoked:
            return
        change.revoked += revoked
        try:
            await self.invoker.revoke(revoked)
        except Exception as exc:  # noqa: BLE001 – raised by _finish
            change.error = exc

    async def _install(self, change: AssignmentChange) -> None:
        kept = self.owned()
        added = tuple(tp for tp in change.target if tp not in self._positions)
        self._commits.restart_timer()
        self._assigned.assign(change.target)
        change.installed = change.over = True
        self._metrics.count("assignments-total")
        self._metrics.count("partitions-assigned-total", len(added))
        message = f"partitions assigned by {change.assigned_by}: {format_partitions(change.target)}"
        if owned := (*kept, *change.revoked):
            message += f"; owned {format_partitions(owned)}, added {format_partitions(added)}"
            message += f", revoked {format_partitions(change.revoked)}"
        log.info(message, extra={"partitions": change.target})
        try:
            await self.invoker.assigned(added)
        except Exception as exc:  # noqa: BLE001 – raised by _finish
            change.error = change.error or exc

    def _finish(self, change: AssignmentChange) -> None:
        """Resume what was stopped and stays, and raise the first error of a listener in the user's poll."""
        change.over = True
        self._resume(self._not_in(change))
        if change.error is not None:
            raise change.error

    # --- helpers

    def _learn_topics(self, target: Partitions) -> None:
        """Add assigned topics that match the pattern and that only the group's leader knew so far."""
        new = [
            topic for topic in dict.fromkeys(tp.topic for tp in target) if not self._subscription.has(topic)
        ]
        if new:
            self._subscription.add(new)
            self._membership.send_subscription()
            self._cluster.request_update("topics of the pattern were assigned that are not known here")

    def _resume(self, partitions: Partitions) -> None:
        """Read partitions again that were stopped for a change which was not installed, if they are still owned."""
        if partitions and not self._membership.lost:
            self._positions.clear_pending_revocation(partitions)

    def _not_in(self, change: AssignmentChange) -> Partitions:
        target = dict.fromkeys(change.target)
        return tuple(tp for tp in self.owned() if tp not in target)

    def _is_current(self, generation: Generation, change: AssignmentChange) -> bool:
        """Whether this is the member's generation, and every assigned topic is still subscribed to."""
        topics = dict.fromkeys(tp.topic for tp in change.target)
        if not self._membership.is_in(generation):
            return False
        if all(self._subscription.covers(topic) for topic in topics):
            return True
        log.warning(
            "the assignment %s does not match the subscription %s: joining again",
            format_partitions(change.target),
            format_names(self._subscription.topics),
        )
        self._membership.request_rejoin("the assignment does not match the subscription")
        return False
