"""Rebalance listeners: three methods that run inside the user's own poll, unsubscribe or close.

A listener may commit, seek and pause. With an AsyncConsumer its methods may be plain or async.

RebalanceListenerInvoker calls the listener and then gives up the partitions, also if the listener raises; until then
the listener can commit. One method runs at a time; a call that leaves the group waits for it, unless the listener makes
that call itself.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from kclient.change_signal import ChangeSignal
from kclient.consumer.callbacks import inside, is_inside
from kclient.errors import KclientError, ListenerError, WakeupError
from kclient.log import get_logger
from kclient.text import format_partitions
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.consumer.core import ConsumerCore
    from kclient.positions.state import PartitionState

log = get_logger("kclient.group")

ASSIGNED = "on_partitions_assigned"
REVOKED = "on_partitions_revoked"
LOST = "on_partitions_lost"
METHODS: Final = (ASSIGNED, REVOKED, LOST)
CallUser = Callable[..., Awaitable[Any]]
"""Runs a user function in the user's context, awaits its result if needed, and returns it."""


class RebalanceListener(Protocol):
    """Inherit from it and write the methods you need.

    A listener that commits or seeks is made with its consumer, and given to `subscribe`:

        consumer.subscribe(["orders"], listener=Totals(consumer))
    """

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> Awaitable[None] | None:
        """These partitions are new; their records come after this call. Empty if nothing was added."""
        return None

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> Awaitable[None] | None:
        """These partitions are revoked after this call: commit what is processed.

        All partitions in an eager rebalance, also if there are none; only the revoked ones in a cooperative rebalance.
        """
        return None

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> Awaitable[None] | None:
        """Another member may have these partitions already; commits for them fail. As revoked, unless overridden."""
        return self.on_partitions_revoked(partitions)


def coroutine_methods(listener: Any) -> list[str]:
    """Return the names of the methods that are coroutine functions."""
    return [name for name in METHODS if inspect.iscoroutinefunction(getattr(listener, name, None))]


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


Partitions = tuple[TopicPartition, ...]
States: TypeAlias = "dict[TopicPartition, PartitionState | None]"


class RebalanceListenerInvoker:
    """Calls the listener in the user's calls. `method` is the one that is running, or None."""

    def __init__(self, core: ConsumerCore) -> None:
        self._core = core
        self.method: str | None = None
        self._partitions: Partitions = ()
        self._returned = ChangeSignal()

    async def assigned(self, added: Partitions) -> None:
        """Call on_partitions_assigned. Fetches begin when it returns, since it may seek. Raise ListenerError."""
        positions = self._core.positions
        positions.mark_pending_callback(added)
        try:
            await self._invoke(ASSIGNED, added, self._core.subscription.listener)
        finally:
            positions.clear_pending_callback(added)

    async def revoke(self, revoked: Partitions) -> None:
        """Call on_partitions_revoked and drop the partitions. Raise ListenerError at the end."""
        log.info("partitions revoked: %s", format_partitions(revoked), extra={"partitions": revoked})
        self._core.metrics.own.count("partitions-revoked-total", len(revoked))
        await self._give_up(REVOKED, revoked)

    async def lose(self, lost: Partitions) -> None:
        """Call on_partitions_lost if any were lost, and drop them. Another member may own them. Raise ListenerError."""
        if not lost:
            return
        log.info(
            "partitions lost, because this consumer is not a member any more%s: %s",
            f" ({why})" if (why := self._core.group.ended) else "",
            format_partitions(lost),
            extra={"partitions": lost},
        )
        self._core.return_undelivered()
        self._core.positions.mark_pending_revocation(lost)
        self._core.metrics.own.count("partitions-lost-total", len(lost))
        await self._give_up(LOST, lost)

    async def wait_until_returned(self, deadline: float) -> None:
        """Wait until a listener method that another call runs has returned, or until the deadline."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                while self.method is not None and not is_inside(self):
                    await self._returned.wait(self._returned.count)

    def pending_lost(self) -> Partitions:
        """Return the assigned partitions without those that the listener is giving up now."""
        if not self._core.subscription.automatic:
            return ()
        told_of = dict.fromkeys(self._partitions if self.method in (REVOKED, LOST) else ())
        return tuple(tp for tp in self._core.positions.assigned() if tp not in told_of)

    def defer_lost(self) -> None:
        """Queue on_partitions_lost for the next call: the call that leaves was cut short before the listener ran.

        It runs before the callbacks of a later membership.
        """
        if lost := self.pending_lost():
            core, listener = self._core, self._core.subscription.listener
            core.metrics.own.count("partitions-lost-total", len(lost))
            core.rebalance_steps.enqueue(lambda: self._invoke(LOST, lost, listener))
            self._drop(self._states(lost))

    async def _give_up(self, method: str, partitions: Partitions) -> None:
        given_up = self._states(partitions)
        try:
            await self._invoke(method, partitions, self._core.subscription.listener)
        finally:
            self._drop(given_up)

    def _states(self, partitions: Partitions) -> States:
        return {tp: self._core.positions.find(tp) for tp in partitions}

    def _drop(self, given_up: States) -> None:
        """Drop these partitions, except those that were assigned again meanwhile."""
        core = self._core
        core.set_assignment(tp for tp, state in core.positions.items() if given_up.get(tp) is not state)

    async def _invoke(self, method: str, partitions: Partitions, listener: RebalanceListener | None) -> None:
        core, before = self._core, (self.method, self._partitions)
        self.method, self._partitions = method, partitions
        try:
            with inside(self), core.metrics.listener(method if listener is not None else None):
                await invoke_listener(listener, method, partitions, core.call_user)
        finally:
            self.method, self._partitions = before
            self._returned.notify()
