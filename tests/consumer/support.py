"""Helpers of this folder: a consumer of a small broker, and a scenario that must leave no task."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from kclient import AsyncConsumer, TopicPartition
from tests.consumer.mini_broker import FAST, MiniBroker

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def consumer(broker: MiniBroker, *topics: str, **settings: Any) -> AsyncConsumer:
    keys = {"bootstrap_servers": broker.address, "group_id": "g", "auto_offset_reset": "earliest"}
    return AsyncConsumer(*topics, **{**FAST, **keys, **settings})


def with_broker(
    scenario: Callable[[MiniBroker], Awaitable[None]], topics: dict[str, int] | None = None
) -> None:
    """Run a scenario with a broker that holds five records in a-0; nothing of ours may be left running."""

    async def run() -> None:
        async with MiniBroker(topics=topics or {"a": 1}) as broker:
            broker.fill("a", 0, *(b"%d" % number for number in range(5)))
            before = asyncio.all_tasks()
            await scenario(broker)
            await asyncio.sleep(0)
            ours = [task for task in asyncio.all_tasks() - before if "_serve" not in repr(task)]
            assert ours == []

    asyncio.run(asyncio.wait_for(run(), 30))
