"""Calls rebalance listeners inside the user's calls, and gives up the partitions afterwards.

The partitions are given up also if the listener raises; until then the listener can commit. One method runs at a time;
a call that leaves the group waits for it, unless the listener makes that call itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext, suppress
from typing import Final

from kclient.change_signal import ChangeSignal
from kclient.consumer.assigned import AssignedPartitions
from kclient.consumer.callbacks import (
    ASSIGNED,
    LOST,
    REVOKED,
    CallbackQueue,
    CallUser,
    RebalanceListener,
    inside,
    is_inside,
)
from kclient.consumer.membership import CurrentMembership
from kclient.consumer.metrics import ConsumerMetrics
from kclient.consumer.subscription import SubscriptionState
from kclient.errors import KclientError, ListenerError, WakeupError
from kclient.log import get_logger
from kclient.positions.state import PartitionState
from kclient.text import format_partitions
from kclient.types import TopicPartition

log: Final = get_logger("kclient.group")

Partitions = tuple[TopicPartition, ...]
States = dict[TopicPartition, PartitionState | None]
OnRebalance = Callable[[str, Partitions], Awaitable[None]]

TIMED_AS: Final[Mapping[str, str]] = {ASSIGNED: "assigned", REVOKED: "revoked", LOST: "lost"}
"""Method → name of the metric of its duration."""


class RebalanceListenerInvoker:
    """Calls the listener in the user's calls. `method` is the one that is running, or None.

    `on_rebalance` is called before the listener, with the same method and partitions: a run of `kclient.handlers`.
    """

    def __init__(
        self,
        subscription: SubscriptionState,
        assigned: AssignedPartitions,
        membership: CurrentMembership,
        rebalance_steps: CallbackQueue,
        call_user: CallUser,
        metrics: ConsumerMetrics,
    ) -> None:
        self._subscription = subscription
        self._assigned = assigned
        self._positions = assigned.positions
        self._membership = membership
        self._rebalance_steps = rebalance_steps
        self._call_user = call_user
        self._metrics = metrics
        self.method: str | None = None
        self.on_rebalance: OnRebalance | None = None
        self._partitions: Partitions = ()
        self._returned = ChangeSignal()

    async def assigned(self, added: Partitions) -> None:
        """Call on_partitions_assigned. Fetches begin when it returns, since it may seek. Raise ListenerError."""
        self._positions.mark_pending_callback(added)
        try:
            await self._invoke(ASSIGNED, added, self._subscription.listener)
        finally:
            self._positions.clear_pending_callback(added)

    async def revoke(self, revoked: Partitions) -> None:
        """Call on_partitions_revoked and drop the partitions. Raise ListenerError at the end."""
        log.info("partitions revoked: %s", format_partitions(revoked), extra={"partitions": revoked})
        self._metrics.own.count("partitions-revoked-total", len(revoked))
        await self._give_up(REVOKED, revoked)

    async def lose(self, lost: Partitions) -> None:
        """Call on_partitions_lost if any were lost, and drop them. Another member may own them. Raise ListenerError."""
        if not lost:
            return
        log.info(
            "partitions lost, because this consumer is not a member any more%s: %s",
            f" ({why})" if (why := self._membership.ended) else "",
            format_partitions(lost),
            extra={"partitions": lost},
        )
        self._assigned.return_undelivered()
        self._positions.mark_pending_revocation(lost)
        self._metrics.own.count("partitions-lost-total", len(lost))
        await self._give_up(LOST, lost)

    async def wait_until_returned(self, deadline: float) -> None:
        """Wait until a listener method that another call runs has returned, or until the deadline."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                while self.method is not None and not is_inside(self):
                    await self._returned.wait(self._returned.count)

    def pending_lost(self) -> Partitions:
        """Return the assigned partitions without those that the listener is giving up now."""
        if not self._subscription.automatic:
            return ()
        giving_up = dict.fromkeys(self._partitions if self.method in (REVOKED, LOST) else ())
        return tuple(tp for tp in self._positions.assigned() if tp not in giving_up)

    def defer_lost(self) -> None:
        """Queue on_partitions_lost for the next call: the call that leaves was cut short before the listener ran.

        It runs before the callbacks of a later membership.
        """
        if lost := self.pending_lost():
            listener = self._subscription.listener  # unsubscribe() is about to clear it
            self._metrics.own.count("partitions-lost-total", len(lost))
            self._rebalance_steps.enqueue(lambda: self._invoke(LOST, lost, listener))
            self._drop(self._states(lost))

    async def _give_up(self, method: str, partitions: Partitions) -> None:
        # States, not names: a partition that is assigned again while the listener runs has a new state, and stays.
        given_up = self._states(partitions)
        try:
            await self._invoke(method, partitions, self._subscription.listener)
        finally:
            self._drop(given_up)

    def _states(self, partitions: Partitions) -> States:
        return {tp: self._positions.find(tp) for tp in partitions}

    def _drop(self, given_up: States) -> None:
        """Drop these partitions, except those that were assigned again meanwhile."""
        kept = [tp for tp, state in self._positions.items() if given_up.get(tp) is not state]
        self._assigned.assign(kept)

    async def _invoke(self, method: str, partitions: Partitions, listener: RebalanceListener | None) -> None:
        before = self.method, self._partitions
        self.method, self._partitions = method, partitions
        timer = (
            self._metrics.coordinator.callback(TIMED_AS[method]) if listener is not None else nullcontext()
        )
        try:
            with inside(self), timer:
                failure = await self._finish_handlers(method, partitions)
                await invoke_listener(listener, method, partitions, self._call_user)
                if failure is not None:
                    raise failure
        finally:
            self.method, self._partitions = before
            self._returned.notify()

    async def _finish_handlers(self, method: str, partitions: Partitions) -> BaseException | None:
        """Call `on_rebalance`. Return its error, or CancelledError: the listener is called in any case."""
        if self.on_rebalance is None:
            return None
        try:
            await self.on_rebalance(method, partitions)
        except (Exception, asyncio.CancelledError) as exc:  # noqa: BLE001 – raised after the listener
            return exc
        return None


async def invoke_listener(
    listener: RebalanceListener | None,
    name: str,
    partitions: tuple[TopicPartition, ...],
    call_user: CallUser,
) -> None:
    """Call one method. Raise ListenerError for its errors, except WakeupError."""
    method = getattr(listener, name, None)
    if method is None and name == LOST:
        method = getattr(listener, REVOKED, None)
    if method is None:
        return
    try:
        await call_user(method, partitions)
    except WakeupError:
        raise
    except Exception as exc:
        log.error(
            "the listener's %s raised %s for %s", name, type(exc).__name__, format_partitions(partitions)
        )
        if isinstance(exc, KclientError) and name == ASSIGNED:
            raise
        raise ListenerError(
            f"The rebalance listener's {name} raised {type(exc).__name__} for {format_partitions(partitions)}. "
            "The rebalance itself goes on. See the cause, mend the listener, and poll again.",
            callback=name,
            partitions=partitions,
        ) from exc
