"""An application that iterates over its consumer, record by record, instead of polling.

It asks for the next record when it is done with the one before. What the consumer has read ahead reaches it without the
steps of a poll, so assignments, seeks, pauses and commits must reach those records too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from kclient import AsyncConsumer
from kclient.records.records import Record
from kclient.types import TopicPartition
from tests.simulation.application import Member


class Taken(list[Record[Any, Any]]):
    """The records of one round."""

    def partitions(self) -> Sequence[TopicPartition]:
        """Those that have records here."""
        return tuple(dict.fromkeys(TopicPartition(record.topic, record.partition) for record in self))


class IteratingMember(Member):
    """See the module. A round takes up to `max_poll_records`, and ends early if none comes for the poll's timeout."""

    async def poll_once(self, consumer: AsyncConsumer, timeout: float) -> Any:
        """Take some records, one by one; each is in hand until the next is asked for."""
        taken, wanted = Taken(), self.rng.randrange(1, 2 * self.stage.scenario.max_poll_records)
        deadline = self.stage.now + timeout
        self.stage.watch.poll_began(self, timeout)
        with self.calling("poll"):
            while len(taken) < wanted:
                record = await self._next(consumer, max(0.0, deadline - self.stage.now))
                if record is None:
                    break
                self._take(record)
                taken.append(record)
        self.polls += 1
        self.same_errors = 0
        self.stage.watch.poll_ended(self, len(taken))
        return taken

    async def _next(self, consumer: AsyncConsumer, timeout: float) -> Record[Any, Any] | None:
        """The next record, or None after the timeout, or where the fault plan cancels the wait (F-51)."""
        self._release()
        cancelled, self.cancel_after = self.cancel_after, None
        asking = asyncio.ensure_future(anext(consumer))
        await asyncio.wait([asking], timeout=timeout if cancelled is None else cancelled)
        asking.cancel()
        await asyncio.wait([asking])
        return None if asking.cancelled() else asking.result()
