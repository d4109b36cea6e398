"""What a hostile member or coordinator assigns: functions that run in a process of their own."""

from __future__ import annotations

import re
import struct
import time
from array import array
from typing import Any

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.errors import KclientError
from kclient.generated.consumer_group_heartbeat_response import Assignment, TopicPartitions
from kclient.generated.metadata_response import MetadataResponseTopic

POLL_SECONDS = 0.4
CLOSE_SECONDS = 2.0


def numbers_blob(topic: str, count: int) -> bytes:
    """A classic assignment, version 0, of partitions 0 to count − 1 of one topic."""
    numbers = array("i", range(count))
    numbers.byteswap()
    name = topic.encode()
    head = struct.pack(">hih", 0, 1, len(name)) + name + struct.pack(">i", count)
    return head + numbers.tobytes() + struct.pack(">i", -1)


async def assigned_without_end(protocol: str, count: int, refused: bool) -> dict[str, Any]:
    """Poll as a member that is assigned so many partitions of a topic of two; how long polls and the close take.

    Polls four times, and until the error of an assignment that is refused.
    """
    async with EmbeddedCluster(topics={"orders": 2}) as cluster:
        blob = numbers_blob("orders", count) if protocol == "classic" else b""

        def classic(request: Any, response: Any) -> Any:
            response.assignment = blob
            return response

        def newer(request: Any, response: Any) -> Any:
            if response.assignment is not None and response.assignment.topic_partitions:
                [row] = response.assignment.topic_partitions
                numbers = list(range(count))
                response.assignment = Assignment([TopicPartitions(topic_id=row.topic_id, partitions=numbers)])
            return response

        cluster.on("SyncGroup", classic)
        cluster.on("ConsumerGroupHeartbeat", newer)
        consumer = AsyncConsumer(
            "orders",
            bootstrap_servers=cluster.bootstrap_servers,
            group_id="g",
            group_protocol=protocol,
            enable_auto_commit=False,
        )
        polls, errors = [], set()
        while len(polls) < 4 or (refused and not errors):
            began = time.monotonic()
            try:
                await consumer.poll(POLL_SECONDS)
            except KclientError as exc:
                errors.add(f"{type(exc).__name__}: {exc.text[:200]}")
            polls.append(time.monotonic() - began)
        owned = len(consumer.assignment())
        began = time.monotonic()
        await consumer.close(CLOSE_SECONDS)
        closed = time.monotonic() - began
        return {"polls": polls, "close": closed, "errors": sorted(errors), "owned": owned}


async def heartbeats_per_second(interval_ms: int) -> float:
    """How often a member beats that its coordinator asks to beat so often."""
    async with EmbeddedCluster(topics={"orders": 2}) as cluster:
        beats = 0

        def hurry(request: Any, response: Any) -> Any:
            nonlocal beats
            beats += 1
            response.heartbeat_interval_ms = interval_ms
            return response

        cluster.on("ConsumerGroupHeartbeat", hurry)
        settings: dict[str, Any] = {"group_id": "g", "group_protocol": "consumer"}
        async with AsyncConsumer(
            "orders", bootstrap_servers=cluster.bootstrap_servers, **settings
        ) as consumer:
            while not consumer.assignment():
                await consumer.poll(0.1)
            before, began = beats, time.monotonic()
            await consumer.poll(1.0)
            return (beats - before) / (time.monotonic() - began)


async def pattern_against_a_long_name(length: int) -> dict[str, Any]:
    """Subscribe to a pattern that takes cubic time, while a response names a topic of so many characters."""
    async with EmbeddedCluster(topics={"eu-west-a-events": 1}) as cluster:

        def add(request: Any, response: Any) -> Any:
            response.topics.append(
                MetadataResponseTopic(name="-" * length, partitions=response.topics[0].partitions)
            )
            return response

        cluster.on("Metadata", add, only_if=lambda request: request.topics is None)
        keys: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap_servers, "group_id": "g"}
        consumer = AsyncConsumer(**keys)
        await consumer.subscribe(pattern=re.compile(".*-.*-.*events"))
        while not consumer.assignment():
            await consumer.poll(0.2)
        topics = sorted(consumer.subscription())
        await consumer.close(1)
        return {"topics": topics}
