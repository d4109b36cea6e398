"""seek() refuses at once what no Fetch could carry: a later refusal would stop every partition of that node."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kclient import AsyncConsumer, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import ArgumentError

A0 = TopicPartition("a", 0)


@pytest.mark.parametrize("offset", [-1, 2**63, True, "0"])
def test_an_offset_that_cannot_be_is_refused_by_the_call_and_costs_nothing(offset: int) -> None:
    async def play() -> None:
        async with EmbeddedCluster(brokers=1, topics={"a": 1}) as kafka:
            kafka.produce("a", ["0"])
            own: dict[str, Any] = {
                "bootstrap_servers": kafka.bootstrap_servers,
                "auto_offset_reset": "earliest",
            }
            async with AsyncConsumer(**own) as consumer:
                await consumer.assign([A0])
                with pytest.raises(ArgumentError, match="a-0 cannot be read from offset"):
                    consumer.seek(A0, offset)
                async with asyncio.timeout(10):
                    while not (records := await consumer.poll(0.1)):
                        pass
                assert [record.offset for record in records] == [0]

    asyncio.run(play())
