"""A cluster without connections: real metadata, requests answered by the test, time on a virtual clock.

cluster = FakeCluster({("orders", 0): (1, 5)})            # partition → leader and leader epoch
cluster.answer("ListOffsetsRequest", handler)             # handler(node_id, request) → response, exception or coroutine
run(scenario(cluster))                                    # sleeps cost nothing
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, NamedTuple, TypeVar

from kclient.config import Config
from kclient.errors import VersionError
from kclient.generated.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.network.metadata import MetadataCache

T = TypeVar("T")
Leaders = Mapping[tuple[str, int], tuple[int, int]]


class Asked(NamedTuple):
    """A request that was sent."""

    node_id: int
    message: Any
    min_version: int
    max_version: int | None


class FakeCluster:
    """Answers like `kclient.network.cluster.Cluster`, as far as positions and fetch ask."""

    def __init__(self, leaders: Leaders, *, topic_ids: Mapping[str, bytes] | None = None) -> None:
        self.metadata = MetadataCache()
        self.topic_ids = dict(topic_ids or {})
        self.asked: list[Asked] = []
        self.updates: list[str] = []
        self.impatient_updates: list[str] = []
        self.versions: dict[str, int] = {}
        self.handlers: dict[str, Callable[[int, Any], Any]] = {}
        self.set_leaders(leaders)

    def set_leaders(self, leaders: Leaders) -> None:
        """Let metadata say who leads."""
        topics: dict[str, MetadataResponseTopic] = {}
        for (name, index), (leader, epoch) in leaders.items():
            if name not in topics:
                topic_id = self.topic_ids.get(name)
                topics[name] = MetadataResponseTopic(
                    name=name, **({"topic_id": topic_id} if topic_id else {})
                )
            topics[name].partitions.append(
                MetadataResponsePartition(
                    partition_index=index, leader_id=leader, leader_epoch=epoch, replica_nodes=[1, 2, 3]
                )
            )
        brokers = [MetadataResponseBroker(node_id=n, host=f"b{n}", port=9092) for n in (1, 2, 3)]
        self.metadata.apply(MetadataResponse(brokers=brokers, topics=list(topics.values())), 12)

    def answer(self, name: str, handler: Callable[[int, Any], Any]) -> None:
        self.handlers[name] = handler

    def of(self, name: str) -> list[Asked]:
        return [asked for asked in self.asked if type(asked.message).__name__ == name]

    async def request_versioned(self, node_id: int, message: Any, **options: Any) -> tuple[int, Any]:
        asked = Asked(node_id, message, options.get("min_version", 0), options.get("max_version"))
        self.asked.append(asked)
        self._check_version(message, asked.min_version)
        await asyncio.sleep(0)
        response = self.handlers[message.NAME](node_id, message)
        if inspect.isawaitable(response):
            response = await response
        if isinstance(response, BaseException):
            raise response
        return self.versions.get(message.NAME, message.VERSIONS[1]), response

    async def request(self, node_id: int, message: Any, **options: Any) -> Any:
        return (await self.request_versioned(node_id, message, **options))[1]

    async def connect(self, node_id: int, purpose: str = "") -> None:
        """There are no connections."""

    def usable_version(self, node_id: int, message: Any, *, min_version: int = 0, **_: Any) -> int | None:
        self._check_version(message, min_version)
        return self.versions.get(message.NAME)

    def update_last_seen_epoch(self, tp: Any, epoch: int | None) -> None:
        if epoch is not None and self.metadata.update_last_seen_epoch(tp, epoch):
            self.request_update("a newer leader epoch was seen")

    def request_update(self, reason: str, *, reset_backoff: bool = True) -> None:
        self.updates.append(reason)
        if reset_backoff:
            self.impatient_updates.append(reason)

    async def describe_topics(self, topics: Any, **_: Any) -> MetadataResponse:
        response: MetadataResponse = self.handlers["MetadataRequest"](0, topics)
        self.metadata.apply(response, 12, whole=False)
        return response

    def _check_version(self, message: Any, min_version: int) -> None:
        newest = self.versions.get(message.NAME)
        if newest is not None and newest < min_version:
            raise VersionError(f"{message.NAME} {min_version} is wanted, the broker has {newest}")


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose clock jumps to the next timer when nothing else is to be done."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now = max(self.now, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def run(scenario: Coroutine[Any, Any, T]) -> T:
    """Run a scenario under virtual time, at most 60 virtual seconds."""

    async def bounded() -> T:
        async with asyncio.timeout(60):
            return await scenario

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(bounded())


async def settle(turns: int = 50) -> None:
    """Let everything run that can run now."""
    for _ in range(turns):
        await asyncio.sleep(0)


def config(**keys: Any) -> Config:
    return Config(bootstrap_servers=("localhost:9092",), **keys)


def later(future: Awaitable[Any]) -> Callable[[int, Any], Awaitable[Any]]:
    """A handler whose response the test gives when it wants."""
    return lambda node_id, message: future
