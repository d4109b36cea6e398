"""Telling the listener, and giving up partitions once it was told.

A partition goes after the listener's method has returned, whatever it raised, so a listener can still commit. One
method runs at a time; who leaves the group meanwhile waits for it, unless the listener itself leaves.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from kclient.change_signal import ChangeSignal
from kclient.consumer.listener import ASSIGNED, LOST, REVOKED, RebalanceListener, tell
from kclient.consumer.nesting import inside, is_inside
from kclient.log import get_logger
from kclient.positions.state import PartitionState
from kclient.text import format_partitions
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.consumer.session import Session

log = get_logger("kclient.group")

Partitions = tuple[TopicPartition, ...]
States = dict[TopicPartition, PartitionState | None]


class Telling:
    """The listener's methods, in the user's calls. `method` runs now, None if none does."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.method: str | None = None
        self._partitions: Partitions = ()
        self._over = ChangeSignal()

    async def assigned(self, added: Partitions) -> None:
        """Call on_partitions_assigned; fetching starts when it has returned, for it may seek. Raises ListenerError."""
        positions = self._session.positions
        positions.await_callback(added)
        try:
            await self._tell(ASSIGNED, added, self._session.subscription.listener)
        finally:
            positions.callback_over(added)

    async def revoke(self, revoked: Partitions) -> None:
        """Give these up. Raises ListenerError when that is done."""
        log.info("partitions revoked: %s", format_partitions(revoked), extra={"partitions": revoked})
        self._session.measures.own.count("partitions-revoked-total", len(revoked))
        await self._give_up(REVOKED, revoked)

    async def lose(self, lost: Partitions) -> None:
        """These may be somebody else's already; nothing is told if there are none. Raises as `revoke`."""
        if not lost:
            return
        log.info(
            "partitions lost, for this consumer is no member any more%s: %s",
            f" ({why})" if (why := self._session.group_part.ended) else "",
            format_partitions(lost),
            extra={"partitions": lost},
        )
        self._session.take_back()
        self._session.positions.mark_pending_revocation(lost)
        self._session.measures.own.count("partitions-lost-total", len(lost))
        await self._give_up(LOST, lost)

    async def over(self, deadline: float) -> None:
        """Wait for a method that another call of the user's runs to return, or until the deadline."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                while self.method is not None and not is_inside(self):
                    await self._over.wait(self._over.count)

    def untold(self) -> Partitions:
        """What the group has assigned still, but for what the listener is being told to give up."""
        if not self._session.subscription.automatic:
            return ()
        told_of = dict.fromkeys(self._partitions if self.method in (REVOKED, LOST) else ())
        return tuple(tp for tp in self._session.positions.assigned() if tp not in told_of)

    def leave_untold(self) -> None:
        """The call that leaves was cut short before the listener knew: the next one tells it.

        It stands before whatever another membership will have to tell.
        """
        if lost := self.untold():
            session, listener = self._session, self._session.subscription.listener
            session.measures.own.count("partitions-lost-total", len(lost))
            session.rebalances.leave(lambda: self._tell(LOST, lost, listener))
            self._drop(self._states(lost))

    async def _give_up(self, method: str, partitions: Partitions) -> None:
        given_up = self._states(partitions)
        try:
            await self._tell(method, partitions, self._session.subscription.listener)
        finally:
            self._drop(given_up)

    def _states(self, partitions: Partitions) -> States:
        return {tp: self._session.positions.find(tp) for tp in partitions}

    def _drop(self, given_up: States) -> None:
        """These are not assigned any more; what was given up and assigned anew meanwhile stays."""
        session = self._session
        session.set_assignment(tp for tp, state in session.positions.items() if given_up.get(tp) is not state)

    async def _tell(self, method: str, partitions: Partitions, listener: RebalanceListener | None) -> None:
        session, before = self._session, (self.method, self._partitions)
        self.method, self._partitions = method, partitions
        try:
            with inside(self), session.measures.listener(method if listener is not None else None):
                await tell(listener, method, partitions, session.call_user)
        finally:
            self.method, self._partitions = before
            self._over.notify()
