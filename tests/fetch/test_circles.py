"""Brokers that name each other, or themselves, as the replica to read from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kclient import AsyncConsumer, TopicPartition
from kclient.embedded import EmbeddedCluster

A0 = TopicPartition("a", 0)


@pytest.mark.spec("B.10.15")
@pytest.mark.parametrize("named", [lambda node: node, lambda node: node % 3 + 1], ids=["itself", "the next"])
def test_brokers_that_redirect_in_circles_are_asked_with_a_backoff(
    named: Callable[[int], int],
) -> None:
    async def play() -> None:
        async with EmbeddedCluster(brokers=3, topics={"a": 1}) as kafka:
            kafka.produce("a", ["0"])
            for node in (1, 2, 3):
                kafka.on("Fetch", _preferring(named(node)), broker=node)
            async with AsyncConsumer(
                auto_offset_reset="earliest", bootstrap_servers=kafka.bootstrap_servers
            ) as consumer:
                await consumer.assign([A0])
                assert not await consumer.poll(1.0)
                assert 2 <= sum(request.api == "Fetch" for request in kafka.requests) < 100
                assert "NONE (0)" not in (await consumer.explain())[A0]
                kafka.lift()
                async with asyncio.timeout(10):
                    while not (records := await consumer.poll(0.1)):
                        pass
                assert [record.value for record in records] == [b"0"]

    asyncio.run(play())


def _preferring(replica: int) -> Callable[[Any, Any], Any]:
    def edit(_: Any, response: Any) -> Any:
        for topic in response.responses:
            for partition in topic.partitions:
                partition.records, partition.preferred_read_replica = b"", replica
        return response

    return edit
