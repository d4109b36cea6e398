"""What a hostile broker does to a client: functions that run in a process of their own (tests/hostile/bounded.py)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from typing import Any

from kclient.config import Config
from kclient.errors import KclientError
from kclient.generated.fetch_request import FetchRequest
from kclient.network.cluster import Cluster
from kclient.network.metadata import MOST_BROKERS
from kclient.runtime import Runtime
from tests.hostile.raw_broker import RawPeer, broker, metadata, topic, uvarint

ORDERS = topic("orders", partitions=2)


class Warnings(logging.Handler):
    """The WARNINGs of kclient, in their order."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []
        logging.getLogger("kclient").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())

    def about(self, words: str) -> list[str]:
        return [text for text in self.texts if words in text]


def cluster_of(peer: RawPeer, **settings: Any) -> Cluster:
    config = Config(bootstrap_servers=(peer.address,), request_timeout_ms=1_500, **settings)
    cluster = Cluster(config, Runtime())
    cluster.set_topics(["orders"])
    return cluster


async def brokers_without_end(count: int, possible: bool) -> dict[str, Any]:
    """Start a cluster whose metadata names so many brokers; how it ends, WARNINGs, and responses."""
    warnings = Warnings()
    async with RawPeer({}) as peer:
        host = "127.0.0.1" if count <= MOST_BROKERS else "h" * 90
        host = host if possible else "x$(id) " + host
        many = [broker(number, host, peer.port) for number in range(count)]
        body = {version: metadata(version, many, ORDERS, 1) for version in (12, 13)}
        peer.responses["MetadataRequest"] = lambda request, version: body[version]
        cluster, ended = cluster_of(peer), "started"
        try:
            await cluster.start()
            await cluster.request_any(_api_versions())
        except KclientError as exc:
            ended = f"{type(exc).__name__}: {exc.text}"
        await cluster.close(1)
        responses = peer.asked.count("MetadataRequest")
        logged = warnings.about("metadata names")
        return {"ended": ended, "answers": responses, "warnings": logged, "bytes": len(body[12])}


async def topics_without_end(extra: int, partitions: int = 2) -> dict[str, Any]:
    """Poll `orders` while each response names so many topics more."""
    warnings = Warnings()
    async with RawPeer({}) as peer:
        others = topic("other") * extra
        own = ORDERS if partitions == 2 else _wide("orders", partitions)
        body = {
            version: metadata(version, [broker(0, "127.0.0.1", peer.port)], own + others, extra + 1)
            for version in (12, 13)
        }
        peer.responses["MetadataRequest"] = lambda request, version: body[version]
        cluster, ended = cluster_of(peer), "started"
        try:
            await cluster.start()
        except KclientError as exc:
            ended = f"{type(exc).__name__}: {exc.text}"
        known = sorted(cluster.metadata.topics)
        await cluster.close(1)
        logged = warnings.about("were not requested")
        return {"ended": ended, "topics": known, "warnings": logged, "bytes": len(body[12])}


async def announced_frames(leaders: int, announced: int, sent: int) -> dict[str, int]:
    """Ask so many brokers at once; each sends the size of a frame, and so many bytes of it. How the requests end."""
    peers = [RawPeer({"FetchRequest": lambda *asked: None}, announced, sent) for _ in range(leaders)]
    async with contextlib.AsyncExitStack() as stack:
        for peer in peers:
            await stack.enter_async_context(peer)
        rows = [broker(number, "127.0.0.1", peer.port) for number, peer in enumerate(peers)]
        peers[0].responses["MetadataRequest"] = lambda request, version: metadata(version, rows, ORDERS, 1)
        cluster = cluster_of(peers[0])
        await cluster.start()
        asked = [cluster.request(node, FetchRequest(max_wait_ms=1, min_bytes=1)) for node in range(leaders)]
        ends = await asyncio.gather(*asked, return_exceptions=True)
        await cluster.close(1)
        return dict(Counter(type(end).__name__ for end in ends))


def _wide(name: str, partitions: int) -> bytes:
    """A topic of many partitions, all of the same bytes."""
    one = topic(name, 1)
    at = one.index(b"\x02" + bytes(2))  # the count of partitions
    row = one[at + 1 : -5]
    return one[:at] + uvarint(partitions + 1) + row * partitions + one[-5:]


def _api_versions() -> Any:
    from kclient.generated.api_versions_request import ApiVersionsRequest

    return ApiVersionsRequest(client_software_name="x", client_software_version="1")
