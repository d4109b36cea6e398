"""The user's side of the group flow: what happens to partitions before a join and after a sync.

The group flow awaits `prepare` and `complete`. The steps that run listeners, or change what the user sees, are left
for the user's next poll; between them the automatic commit goes on by itself, so a poll never waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from kclient.consumer.listener import ASSIGNED, LOST, REVOKED, names, tell
from kclient.consumer.nesting import inside, is_inside
from kclient.group.generation import Generation
from kclient.notice import Notice
from kclient.types import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kclient.consumer.session import Session

log = logging.getLogger("kclient.group")

Partitions = tuple[TopicPartition, ...]


class Rebalance:
    """Runs for the group flow, in the user's calls. Spec: S3-30…S3-54, B.13.6…B.13.8, I-12."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._telling: str | None = None  # the listener's method that runs now
        self._told = Notice()

    async def prepare(self, lost: bool) -> None:
        """Give up the assignment before a join. Returns when the user's calls have done it."""
        session = self._session
        if lost:
            await session.rebalances.post(self._lose)
            return
        released = await session.rebalances.post(self._stop_delivery)
        timeout = session.config.max_poll_interval_ms / 1000
        await session.group_part.committing.commit_for_good(released or {}, "before the rebalance", timeout)
        await session.rebalances.post(self._give_back)

    async def complete(
        self, protocol: str, assignment: tuple[TopicPartition, ...], generation: Generation
    ) -> None:
        """Take over the assignment of a generation, unless that is over when the user's poll comes."""

        async def install() -> None:
            if self._session.group_part.is_present(generation):
                await self._install(protocol, assignment)

        await self._session.rebalances.post(install)

    async def leave(self, *, lost: bool, deadline: float) -> None:
        """Give up the assignment because the consumer leaves. In the user's own call. Spec: B.13.8.

        A listener that another call of the user's runs comes to its end first, or until the deadline. One that gives
        partitions up at this moment is not told again.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                while self._telling is not None and not is_inside(self):
                    await self._told.wait(self._told.count)
        if self._session.positions.assigned() and self._telling not in (REVOKED, LOST):
            await (self._lose() if lost else self._revoke())

    async def _give_back(self) -> None:
        """Before a join: a heartbeat's answer since the last poll may have ended the membership. Spec: S3-53."""
        await (self._lose() if self._session.group_part.lost else self._revoke())

    # --- steps in the user's calls

    async def _stop_delivery(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """From here on delivered and committed agree: nothing more is fetched or handed out."""
        session = self._session
        session.take_back()
        session.positions.mark_pending_revocation(session.positions.assigned())
        return session.released()

    async def _revoke(self) -> None:
        revoked = self._session.positions.assigned()
        log.info("partitions revoked: %s", names(revoked), extra={"partitions": revoked})
        self._session.counters.partitions_revoked_total += len(revoked)
        await self._give_up(REVOKED, revoked)

    async def _lose(self) -> None:
        lost = self._session.positions.assigned()
        if not lost:
            return
        log.info(
            "partitions lost, for this consumer is no member any more: %s",
            names(lost),
            extra={"partitions": lost},
        )
        self._session.take_back()
        self._session.positions.mark_pending_revocation(lost)
        self._session.counters.partitions_lost_total += len(lost)
        await self._give_up(LOST, lost)

    async def _give_up(self, method: str, partitions: Partitions) -> None:
        session = self._session
        try:
            await self._tell(method, partitions)
        finally:
            session.set_assignment(())

    async def _install(self, protocol: str, assignment: Partitions) -> None:
        session = self._session
        foreign = [tp for tp in assignment if not session.subscription.covers(tp.topic)]
        if foreign:
            log.warning(
                "the assignment %s does not match the subscription %s: joining again",
                names(assignment),
                ", ".join(session.subscription.topics),
            )
            session.group_part.request_rejoin("the assignment does not match the subscription")
            return
        owned = session.positions.assigned()
        added = tuple(tp for tp in assignment if tp not in session.positions)
        session.learn_topics(tp.topic for tp in assignment)
        session.group_part.committing.restart_timer()
        session.set_assignment(assignment)
        session.counters.rebalance_total += 1
        session.counters.partitions_assigned_total += len(added)
        log.info(
            "partitions assigned by %s: %s", protocol, names(assignment), extra={"partitions": assignment}
        )
        log.debug("assigned %s, owned %s, added %s", names(assignment), names(owned), names(added))
        await self._tell(ASSIGNED, added)

    async def _tell(self, method: str, partitions: Partitions) -> None:
        session, before = self._session, self._telling
        self._telling = method
        try:
            with inside(self):
                await tell(session.subscription.listener, method, partitions, session.call_user)
        finally:
            self._telling = before
            self._told.notify()
