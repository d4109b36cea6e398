"""wakeup() before and during close() and unsubscribe(): the listener's commit is stored, and close() raises nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kclient import AsyncConsumer, Consumer, RebalanceListener, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import WakeupError
from tests.scenarios.support import SETTINGS, T0, consumer_of, play, read
from tests.waiting import until

protocols = pytest.mark.parametrize("protocol", ["classic", "consumer"])
WAKES = pytest.mark.parametrize("wakes", ["before", "while the listener commits"])


class CommitManager(RebalanceListener):
    """Commits when its partitions go, and is woken at that moment if `wakes` says so."""

    def __init__(self) -> None:
        self.consumer: Any = None
        self.wakes: Callable[[], None] | None = None

    def on_partitions_revoked(self, partitions: tuple[Any, ...]) -> Any:
        if self.wakes is not None:
            self.wakes()
        return self.consumer.commit()


@pytest.mark.spec("B.18", "B.3.7")
@protocols
@WAKES
def test_a_wakeup_does_not_interrupt_close(protocol: str, wakes: str) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
            c, listener = await _member(cluster, protocol)
            if wakes == "before":
                c.wakeup()
            else:
                cluster.delay("OffsetCommit", 100)
                listener.wakes = lambda: _soon(c.wakeup)
            await c.close()
            assert cluster.committed("g")[T0] == 3

    play(scenario)


@pytest.mark.spec("B.18", "B.3.7")
@protocols
@WAKES
def test_a_wakeup_waits_until_unsubscribe_is_over(protocol: str, wakes: str) -> None:
    """The partitions are gone after it, so nothing could repeat the listener's commit. The next call is woken."""

    async def scenario() -> None:
        async with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
            c, listener = await _member(cluster, protocol)
            if wakes == "before":
                c.wakeup()
            else:
                cluster.delay("OffsetCommit", 100)
                listener.wakes = lambda: _soon(c.wakeup)
            await c.unsubscribe()
            assert cluster.committed("g")[T0] == 3
            with pytest.raises(WakeupError):
                await c.committed([T0])
            await c.committed([T0])
            await c.close()

    play(scenario)


@pytest.mark.spec("B.18", "B.3.7")
def test_a_wakeup_ends_what_another_task_waits_for_while_one_unsubscribes() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
            c, _ = await _member(cluster, "classic")
            cluster.delay("OffsetCommit", 300)
            beside = asyncio.create_task(c.end_offsets([TopicPartition("t", 1)]))  # it does not exist
            leaving = asyncio.create_task(c.unsubscribe())
            await until(lambda: [one for one in cluster.requests if one.api == "OffsetCommit"])
            c.wakeup()
            with pytest.raises(WakeupError):
                await beside
            await leaving
            assert cluster.committed("g")[T0] == 3
            await c.close()

    play(scenario)


@pytest.mark.spec("B.18", "B.3.7")
@protocols
@pytest.mark.parametrize("way", ["close", "unsubscribe"])
def test_a_wakeup_of_a_thread_does_not_interrupt_close(protocol: str, way: str) -> None:
    with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
        cluster.produce("t", ["a", "b", "c"])
        listener = CommitManager()
        c = Consumer(
            "t",
            bootstrap_servers=cluster.bootstrap_servers,
            group_id="g",
            group_protocol=protocol,
            listener=listener,
            **SETTINGS,
        )
        listener.consumer, listener.wakes = c, c.wakeup
        found = 0
        while found < 3:
            found += len(c.poll(1.0))
        c.wakeup()
        getattr(c, way)()
        assert cluster.committed("g")[T0] == 3
        c.close()


async def _member(cluster: EmbeddedCluster, protocol: str) -> tuple[AsyncConsumer, CommitManager]:
    """A consumer that was given three records and has committed none."""
    cluster.produce("t", ["a", "b", "c"])
    listener = CommitManager()
    c = listener.consumer = consumer_of(
        cluster, "t", group_id="g", group_protocol=protocol, listener=listener
    )
    await read(c, 3)
    return c, listener


def _soon(wakeup: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(0.03, wakeup)
