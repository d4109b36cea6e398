"""Samples the lag of groups from the brokers a few times a second, in a separate thread.

A group that has not committed yet has everything before it. While the brokers do not answer there is no sample, and a
gap in the picture.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Final, Self

from demo.recording import Sample
from kclient import AsyncConsumer, TopicPartition
from kclient.errors import KclientError

EVERY_SECONDS: Final = 0.25
ANSWER_SECONDS: Final = 2.0


class LagSampler:
    """Takes samples of the groups until the end of its `with`; `samples` may be read at any time."""

    def __init__(
        self, servers: str, topic: str, partitions: int, groups: Sequence[str], now: Callable[[], float]
    ) -> None:
        self.samples: dict[str, list[Sample]] = {group: [] for group in groups}
        self._servers = servers
        self._topic = [TopicPartition(topic, number) for number in range(partitions)]
        self._now = now
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lag-sampler", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(4 * ANSWER_SECONDS)

    def total(self, group: str) -> int | None:
        """Return the last sampled lag, None before the first sample."""
        samples = self.samples[group]
        return samples[-1].total if samples else None

    def _run(self) -> None:
        asyncio.run(self._sample())

    async def _sample(self) -> None:
        async with AsyncExitStack() as stack:
            consumers = {
                group: await stack.enter_async_context(
                    AsyncConsumer(bootstrap_servers=self._servers, group_id=group, enable_auto_commit=False)
                )
                for group in self.samples
            }
            while not self._stop.is_set():
                with suppress(KclientError):  # a broker has just been killed; the next one will answer
                    await self._once(consumers)
                await asyncio.sleep(EVERY_SECONDS)

    async def _once(self, consumers: dict[str, AsyncConsumer]) -> None:
        """Look up commits first, then ends, so that a lag may be slightly too large but never negative."""
        for group, consumer in consumers.items():
            committed = await consumer.committed(self._topic, timeout=ANSWER_SECONDS)
            ends = await consumer.end_offsets(self._topic, timeout=ANSWER_SECONDS)
            lags = [
                ends[tp] - (0 if (stored := committed.get(tp)) is None else stored.offset)
                for tp in self._topic
            ]
            self.samples[group].append(Sample(round(self._now(), 3), lags))
