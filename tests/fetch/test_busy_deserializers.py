"""Deserializers in pure Python that are busy for longer than the group's session: no member is evicted meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from kclient import AsyncConsumer, Consumer
from kclient.embedded import EmbeddedCluster
from kclient.records.records import Record
from tests.scenarios.support import asked

COUNT = 64
BUSY_SECONDS = 0.1  # of a record: all of them take twice the session
SETTINGS: dict[str, Any] = {
    "group_id": "g",
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "session_timeout_ms": 3_000,  # longer than a machine of tests stands still
    "heartbeat_interval_ms": 300,
}


def busy_for(seconds: float) -> Callable[[str, object, bytes], bytes]:
    def busy(topic: str, headers: object, data: bytes) -> bytes:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass
        return data

    return busy


def read_with_threads(servers: str, seconds: float = BUSY_SECONDS) -> tuple[list[Record[Any, Any]], int]:
    """The records, and the generation in which they were committed."""
    found: list[Record[Any, Any]] = []
    with Consumer(
        "t", bootstrap_servers=servers, value_deserializer=busy_for(seconds), **SETTINGS
    ) as consumer:
        while not found:
            found += consumer.poll(5)
        consumer.commit()
        return found, consumer.group_metadata().generation_id


def read_with_asyncio(servers: str) -> tuple[list[Record[Any, Any]], int]:
    async def read() -> tuple[list[Record[Any, Any]], int]:
        found: list[Record[Any, Any]] = []
        async with AsyncConsumer(
            "t", bootstrap_servers=servers, value_deserializer=busy_for(BUSY_SECONDS), **SETTINGS
        ) as consumer:
            while not found:
                found += await consumer.poll(5)
            await consumer.commit()
            return found, consumer.group_metadata().generation_id

    return asyncio.run(read())


@pytest.mark.spec("D-75")
@pytest.mark.parametrize("read", [read_with_threads, read_with_asyncio])
def test_a_poll_of_twice_the_session_evicts_no_member(
    read: Callable[[str], tuple[list[Record[Any, Any]], int]],
) -> None:
    """One loop thread sends heartbeats for threads; in the caller's own loop they are sent between the records."""
    config = {"group.min.session.timeout.ms": 100}
    with EmbeddedCluster(brokers=1, topics={"t": 1}, config=config) as cluster:
        cluster.produce("t", [f"{number}" for number in range(COUNT)])
        found, generation = read(cluster.bootstrap_servers)
        assert [record.offset for record in found] == list(range(COUNT))
        assert generation == 1
        assert len(asked(cluster, "SyncGroup")) == 1
        assert len(asked(cluster, "Heartbeat")) >= 5


@pytest.mark.spec("D-75")
def test_a_record_of_twice_the_session_evicts_no_thread() -> None:
    """Heartbeats of a Consumer wait for no call of the user's; slices between records would not help here."""
    config = {"group.min.session.timeout.ms": 100}
    with EmbeddedCluster(brokers=1, topics={"t": 1}, config=config) as cluster:
        cluster.produce("t", ["0"])
        found, generation = read_with_threads(cluster.bootstrap_servers, COUNT * BUSY_SECONDS)
        assert [record.offset for record in found] == [0]
        assert generation == 1
        assert len(asked(cluster, "SyncGroup")) == 1
