"""Leaving the group: what the user's call does, then the goodbye, which is said whatever cuts that call short.

    in the user's call       no assignment changes any more → the listener gives up the partitions
                             → commits that it began get their answers
    in a task of its own     the coordinator is told

The call waits for the goodbye. One that is cancelled does not, and the goodbye is said behind it. Who joins again joins
behind the goodbye, for the coordinator must not take the one for the other. Who leaves while another call does so waits
for that one. All of it has one deadline, in the loop's time; some of that time nothing but the goodbye may take, so
that the others get the partitions at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kclient.change_signal import ChangeSignal
from kclient.consumer.nesting import is_inside
from kclient.group.consumer_protocol.membership import ConsumerMembership
from kclient.group.protocols import Membership
from kclient.log import get_logger

if TYPE_CHECKING:
    from kclient.consumer.session import Session

log = get_logger("kclient.commit")

MEMBERSHIP: Final = "membership in the group"
LEAVING_SECONDS: Final = 1.0


class Leaving:
    """How the memberships of one consumer end."""

    def __init__(self, session: Session) -> None:
        self.under_way = False  # from `give_up` until the goodbye begins
        self._session = session
        self._goodbye: asyncio.Task[None] | None = None
        self._goodbye_begun = ChangeSignal()

    async def over(self, deadline: float) -> None:
        """Wait until another call has left, unless it waits for who calls: a listener that it tells leaves as well.

        Who waits no longer, and goes on all the same, leaves it to the next call to tell what is not told yet.
        """
        telling = self._session.group_part.rebalance.telling
        try:
            if not is_inside(telling):
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(before_leaving(deadline, self._session.runtime.now())):
                        while self.under_way:
                            await self._goodbye_begun.wait(self._goodbye_begun.count)
                            await self.goodbye_over()
        finally:
            if self.under_way:
                telling.leave_untold()

    async def give_up(self, membership: Membership, deadline: float) -> Exception | None:
        """Tell the listener, as the member that we still are; what it raised. In the user's own call.

        `say_goodbye` must follow, whatever cuts this short.
        """
        self.under_way = True
        rebalance = self._session.group_part.rebalance
        lost = membership.lost or membership.rebalancing
        listening_until = before_leaving(deadline, self._session.runtime.now())
        try:
            await self._end_rebalances(membership)
            error = await error_of(rebalance.leave(lost=lost, deadline=listening_until))
            await self._settle(listening_until)
        except asyncio.CancelledError:
            rebalance.telling.leave_untold()
            raise
        return error

    def say_goodbye(self, membership: Membership, reason: str, deadline: float, leave: bool | None) -> None:
        """Begin to tell the coordinator; nobody need wait for it."""
        self.under_way = False
        flows = self._session.flows
        ended = flows.end(MEMBERSHIP)
        goodbye = self._say_goodbye(membership, ended, reason, deadline, leave)
        self._goodbye = flows.errand("goodbye to the group", goodbye)
        self._goodbye_begun.notify()

    async def goodbye_over(self, timeout: float | None = None) -> None:
        """Wait, for at most `timeout` seconds, until the goodbye is said, if there is one."""
        if self._goodbye is not None and not self._goodbye.done():
            await asyncio.wait({self._goodbye}, timeout=timeout)

    async def _say_goodbye(
        self,
        membership: Membership,
        ended: set[asyncio.Task[None]],
        reason: str,
        deadline: float,
        leave: bool | None,
    ) -> None:
        if ended:
            await asyncio.wait(ended)
        await membership.leave(reason, max(0.0, deadline - self._session.runtime.now()), leave)

    async def _end_rebalances(self, membership: Membership) -> None:
        """No assignment changes any more. Heartbeats of the consumer protocol go on meanwhile."""
        if isinstance(membership, ConsumerMembership):
            await membership.prepare_leaving()
        else:
            await self._session.flows.stop(MEMBERSHIP)

    async def _settle(self, deadline: float) -> None:
        """Wait for the answers to commits that the listener has begun."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._session.group_part.committing.settle()
        except TimeoutError:
            log.warning("asynchronous commits have no answer yet; leaving the group all the same")


def before_leaving(deadline: float, now: float) -> float:
    """Until when others may take their time; what is left of it then is the goodbye's."""
    return deadline - min(LEAVING_SECONDS, max(0.0, deadline - now) / 4)


async def error_of(step: Awaitable[None]) -> Exception | None:
    """What it raised, for later: the next step comes all the same."""
    try:
        await step
    except Exception as exc:  # noqa: BLE001 – raised when all is done
        return exc
    return None
