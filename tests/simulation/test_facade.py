"""`Consumer` and `AsyncConsumer` do the same: one script, the same history, on threads and in a loop. I-20.

The script is written for both: what it awaits is done before it goes on where the consumer is the synchronous one.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import attrs
import pytest

from kclient import AsyncConsumer, Consumer, OffsetAndMetadata, RebalanceListener, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import KclientError

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
SETTINGS: dict[str, Any] = {
    "group_id": "g",
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "heartbeat_interval_ms": 200,
}


class RecordingListener(RebalanceListener):
    """Records its calls in the history."""

    def __init__(self, history: list[Any]) -> None:
        self.history = history

    def on_partitions_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        self.history.append(("assigned", sorted(partitions)))

    def on_partitions_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        self.history.append(("revoked", sorted(partitions)))


@attrs.define
class Driver:
    """Makes calls of either consumer, and notes what they give back or raise."""

    consumer: AsyncConsumer | Consumer
    history: list[Any]

    async def call(self, name: str, *args: Any, **options: Any) -> Any:
        """One call."""
        try:
            result = getattr(self.consumer, name)(*args, **options)
            if inspect.isawaitable(result):
                result = await result
        except KclientError as exc:
            result = type(exc).__name__
        self.history.append((name, result))
        return result

    async def read(self, count: int) -> None:
        """So many records, by partition: which partition is served first is not promised."""
        found: dict[TopicPartition, list[Any]] = {}
        seen = 0
        while seen < count:
            records = self.consumer.poll(1.0, max_records=7)
            for record in await records if inspect.isawaitable(records) else records:
                tp = TopicPartition(record.topic, record.partition)
                found.setdefault(tp, []).append((record.offset, record.key, record.value, record.headers))
                seen += 1
        self.history.append(("read", dict(sorted(found.items()))))


async def script(driver: Driver) -> None:
    """Something of everything."""
    call = driver.call
    await call("seek", A0, 3)
    await call("position", A0)
    await call("subscribe", ["a", "b"], listener=RecordingListener(driver.history))
    await driver.read(60)
    await call("assignment")
    for tp in (A0, A1, B0):
        await call("position", tp)
        await call("current_lag", tp)
    await call("commit")
    await call("committed", [A0, A1, B0])
    await call("commit", {A0: OffsetAndMetadata(5, None, "half")})
    await call("committed", [A0])
    await call("commit", {A0: OffsetAndMetadata(-1)})
    await call("seek", A0, 10)
    await call("pause", [B0])
    await call("seek", B0, 0)
    await driver.read(10)
    await call("paused")
    await call("resume", [B0])
    await driver.read(20)
    await call("beginning_offsets", [A0, B0])
    await call("end_offsets", [A0, B0])
    await call("offsets_for_times", {A0: 1_000, B0: 1 << 60})
    await call("partitions_for", "nothing")
    await call("poll", 0.0)
    await call("poll", -1.0)
    await call("unsubscribe")
    await call("poll", 0.1)
    await call("assign", [A1])
    await call("seek", A1, 0)
    await driver.read(20)
    await call("subscription")
    await call("close")
    await call("poll", 0.1)
    await call("close")


def with_threads(servers: str) -> list[Any]:
    history: list[Any] = []
    work = script(Driver(Consumer(bootstrap_servers=servers, **SETTINGS), history))
    with pytest.raises(StopIteration):
        work.send(None)  # it never waits: every call has ended when it comes back
    return history


def in_a_loop(servers: str) -> list[Any]:
    history: list[Any] = []

    async def work() -> None:
        await script(Driver(AsyncConsumer(bootstrap_servers=servers, **SETTINGS), history))

    asyncio.run(work())
    return history


def history_of(way: Callable[[str], list[Any]]) -> list[Any]:
    with EmbeddedCluster(topics={"a": 2, "b": 1}, config={"group.initial.rebalance.delay.ms": 0}) as cluster:
        for tp in (A0, A1, B0):
            values = [(f"k{number}", f"{tp} {number}") for number in range(20)]
            cluster.produce(tp.topic, values, partition=tp.partition, timestamp_ms=1_000)
        return [_comparable(entry) for entry in way(cluster.bootstrap_servers)]


def _comparable(entry: tuple[str, Any]) -> Any:
    name, result = entry
    return (name, len(result)) if name == "poll" and not isinstance(result, str) else entry


@pytest.mark.timeout(60)
def test_the_same_script_has_the_same_history() -> None:
    threads, loop = history_of(with_threads), history_of(in_a_loop)
    assert len(loop) >= 40
    assert threads == loop
