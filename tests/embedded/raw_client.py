"""Raw requests to an embedded cluster on the running loop: no retries, no routing, nothing hidden.

    async with EmbeddedCluster(brokers=3) as cluster, RawClient(cluster) as raw_client:
        response = await raw_client.ask(MetadataRequest(topics=None), 12, node=2)

One connection for each node and lane: requests of one lane wait for each other, as behind a real connection. Bytes
after a response's message fail the test.
"""

from __future__ import annotations

import asyncio
from typing import Any, Self

from kclient.embedded import EmbeddedCluster
from kclient.protocol.headers import read_response_header, request_frame
from kclient.protocol.message import Message
from kclient.protocol.registry import read_message, response_name

SECONDS = 10.0

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class RawClient:
    """Connections to the brokers of one cluster. Open them all from one loop."""

    def __init__(self, cluster: EmbeddedCluster, client_id: str = "asker") -> None:
        self._cluster = cluster
        self._client_id = client_id
        self._lanes: dict[tuple[int, str], Lane] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for lane in self._lanes.values():
            lane.close()
        await asyncio.sleep(0)

    async def ask(self, request: Message, version: int, node: int | None = None, lane: str = "") -> Any:
        """The response of a node (the first one unless given). Raises TimeoutError, ConnectionError."""
        brokers = self._cluster.state.brokers
        broker = brokers[node or next(iter(brokers))]
        key = (broker.node_id, lane)
        if key in self._lanes and self._lanes[key].closed:
            self._lanes.pop(key).close()
        if key not in self._lanes:
            address = broker.listeners[0].address
            self._lanes[key] = Lane(await asyncio.open_connection(*address), self._client_id)
        async with asyncio.timeout(SECONDS):
            return await self._lanes[key].ask(request, version)


class Lane:
    """One connection, one request at a time."""

    def __init__(self, streams: Streams, client_id: str) -> None:
        self._reader, self._writer = streams
        self._client_id = client_id
        self._turn = asyncio.Lock()
        self._correlation_id = 0

    @property
    def closed(self) -> bool:
        """Whether nothing more will come."""
        return self._reader.at_eof() or self._reader.exception() is not None or self._writer.is_closing()

    def close(self) -> None:
        """Leave."""
        self._writer.close()

    async def ask(self, request: Message, version: int) -> Any:
        """Send, and wait for the response. One that is not awaited to its end takes the connection with it."""
        async with self._turn:
            self._correlation_id += 1
            self._writer.writelines(request_frame(request, version, self._correlation_id, self._client_id))
            try:
                return await self._answer(request, version)
            except BaseException:
                self.close()
                raise

    async def _answer(self, request: Message, version: int) -> Any:
        api_key = request.API_KEY
        assert api_key is not None
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        frame = await self._reader.readexactly(size)
        echoed, at = read_response_header(api_key, version, frame)
        assert echoed == self._correlation_id
        response, end = read_message(response_name(api_key), version, frame, at)
        assert end == len(frame), f"{len(frame) - end} bytes behind {response}"
        return response
