"""A topic that is deleted and recreated while a consumer stands in it: the new log is read from its own beginning."""

from __future__ import annotations

import asyncio

import pytest

from kclient import AsyncConsumer, TopicPartition
from kclient.embedded import EmbeddedCluster

A0 = TopicPartition("a", 0)


async def read(consumer: AsyncConsumer, count: int) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    async with asyncio.timeout(10):
        while len(found) < count:
            found += [(record.offset, record.value) for record in await consumer.poll(0.05)]
    return found


@pytest.mark.spec("B.10.13")
def test_a_topic_that_metadata_lacks_for_a_while_is_not_fetched_by_name_at_the_old_topics_offset() -> None:
    async def play() -> None:
        own = {"auto.create.topics.enable": False}
        async with EmbeddedCluster(brokers=1, topics={"a": 1}, config=own) as kafka:
            kafka.produce("a", ["old 0", "old 1", "old 2"])
            keys = {"bootstrap_servers": kafka.bootstrap_servers, "metadata_max_age_ms": 100}
            async with AsyncConsumer(auto_offset_reset="earliest", **keys) as consumer:
                await consumer.assign([A0])
                await read(consumer, 3)
                kafka.delete_topic("a")
                async with asyncio.timeout(10):
                    while not _was_told_of_no_topic(kafka):
                        await consumer.poll(0.01)
                for _ in range(20):
                    await consumer.poll(0.02)
                kafka.forget_requests()
                kafka.create_topic("a", partitions=1)
                kafka.produce("a", [f"new {offset}" for offset in range(5)])
                assert await read(consumer, 5) == [(offset, b"new %d" % offset) for offset in range(5)]
                fetches = [request for request in kafka.requests if request.api == "Fetch"]
                assert {request.version for request in fetches} <= set(range(13, 100))

    asyncio.run(play())


def _was_told_of_no_topic(kafka: EmbeddedCluster) -> bool:
    responses = [request.response for request in kafka.requests if request.api == "Metadata"]
    return any(
        topic.error_code for response in responses if response is not None for topic in response.topics
    )
