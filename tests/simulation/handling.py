"""An application that lets `kclient.handlers` call its handler: many at once, some slow, some failing.

A record is delivered when its handler is called, and released when the handler has returned, or the record is a dead
letter. A round is one run on the same consumer, which is ended by wakeup() or cancelled; the next one goes on where the
handlers were. Every 40th record fails more often than it is tried again: applications with an even number keep it as a
dead letter, for the others the run ends with HandlerError.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from kclient import AsyncConsumer, handlers
from kclient.errors import HandlerError
from kclient.records.records import Record
from kclient.types import TopicPartition
from tests.simulation.application import Member, Upset
from tests.simulation.grouping import number_of

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

CONCURRENCY: Final = 4
RETRIES: Final = 2
DRAIN_SECONDS: Final = 3.0
STUBBORN: Final = 40  # one record of so many fails whenever it is tried, at first
STUBBORN_TRIES: Final = 5
FAILS: Final = 0.05


class HandlingMember(Member):
    """See the module."""

    def __init__(
        self, stage: Stage, name: str, incarnation: int, instead: dict[str, Any] | None = None
    ) -> None:
        super().__init__(stage, name, incarnation, instead)
        self.max_in_flight = self.rng.choice((CONCURRENCY, 10, 50))
        self.keeps_dead_letters = number_of(name) % 2 == 0
        self.tries: Counter[int] = Counter()  # by number of the record
        self.cancelled = False  # the run: then nothing waits for its handlers

    async def _round(self, consumer: AsyncConsumer) -> None:
        """One run of handlers."""
        running = asyncio.ensure_future(self.run_handlers(consumer))
        seconds = 600.0 if self.stage.quiet else self.rng.uniform(2.0, 30.0)
        with self.calling("poll"):
            await asyncio.wait([running], timeout=seconds)
            if not running.done():
                if self.rng.random() < 0.5:
                    consumer.wakeup()
                else:
                    self.cancelled = running.cancel()
            with suppress(asyncio.CancelledError, HandlerError):
                await running
                self.same_errors = 0

    async def run_handlers(self, consumer: AsyncConsumer) -> None:
        """Until it is stopped."""
        self.cancelled = False
        await handlers.run_async(
            consumer,
            self.handle,
            concurrency=CONCURRENCY,
            retries=RETRIES,
            retry_backoff_max_ms=1_000,
            dead_letter=self.keep if self.keeps_dead_letters else None,
            max_in_flight=self.max_in_flight,
            drain_timeout=DRAIN_SECONDS,
            signals=(),
        )

    async def handle(self, record: Record[Any, Any]) -> None:
        """Work for a while, and fail now and then."""
        tp, row = TopicPartition(record.topic, record.partition), self.stage.ledger.handed_out(record)
        if row is None:
            return
        row.delivered = True
        self.records += 1
        self.stage.watch.handler_began(self, tp, row)
        try:
            await asyncio.sleep(self._seconds())
            self.tries[row.number] += 1
            if self._fails(row.number):
                raise Upset(f"{self} cannot handle record {row.number}")
            row.released = True
        finally:
            self.stage.watch.handler_ended(self, tp, row)

    async def keep(self, record: Record[Any, Any], problem: Exception) -> None:
        """Keep a dead letter."""
        await asyncio.sleep(0.01)
        if (row := self.stage.ledger.handed_out(record)) is not None:
            row.released = True

    def _seconds(self) -> float:
        if self.stage.quiet:
            return 0.001
        return self.rng.choice((0.0, 0.0, 0.01, 0.1, 0.5, 2.0 * DRAIN_SECONDS * (self.rng.random() < 0.02)))

    def _fails(self, number: int) -> bool:
        if number % STUBBORN == 0:
            return self.tries[number] <= STUBBORN_TRIES
        return not self.stage.quiet and self.rng.random() < FAILS
