"""Helpers of the scenarios: reading, waiting for a condition, the requests on the wire, and a clean end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.embedded.observer import LoggedRequest
from kclient.records.records import Record
from kclient.types import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
SETTINGS: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "fetch_max_wait_ms": 50,
}


def consumer_of(cluster: EmbeddedCluster, *topics: str, **settings: Any) -> AsyncConsumer:
    """A consumer of an embedded cluster that does nothing unless a test asks for it."""
    keys = {"bootstrap_servers": cluster.bootstrap_servers, **SETTINGS, **settings}
    return AsyncConsumer(*topics, **keys)


def play(scenario: Callable[[], Awaitable[None]], seconds: float = 30.0) -> None:
    """Run a scenario to its end: no task may be left running, and no error that was not awaited."""

    async def run() -> None:
        unawaited: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: unawaited.append(context))
        async with asyncio.timeout(seconds):
            await scenario()
        for _ in range(5):
            await asyncio.sleep(0)
        left = [task for task in asyncio.all_tasks() - {asyncio.current_task()} if not task.done()]
        assert [task.get_name() for task in left] == []
        assert unawaited == []

    asyncio.run(run())


async def read(consumer: AsyncConsumer, count: int, seconds: float = 10.0) -> list[Record[Any, Any]]:
    """So many records, no more and no fewer."""
    found: list[Record[Any, Any]] = []
    async with asyncio.timeout(seconds):
        while len(found) < count:
            found += await consumer.poll(0.5)
    assert len(found) == count, [record.offset for record in found]
    return found


def asked(cluster: EmbeddedCluster, api: str) -> list[LoggedRequest]:
    """The requests of one API, oldest first."""
    return [one for one in cluster.requests if one.api == api]
