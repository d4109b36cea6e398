"""docs/how-to/proxies.md: its runtimes reach brokers that are advertised under names which only a proxy knows."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kclient import Consumer
from kclient.embedded import EmbeddedCluster
from kclient.errors import ConnectError
from tests.docs.blocks import python_blocks

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "proxies.md").read_text()
THROUGH_PROXY, FORWARDED = python_blocks(PAGE)


class Proxy:
    """An HTTP proxy on a thread of its own: CONNECT to the names that it knows, 403 for others."""

    def __init__(self, names: dict[str, tuple[str, int]]) -> None:
        self._names = names
        self.asked: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop
        ).result()
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        target = head.split()[1].decode()
        self.asked.append(target)
        if target not in self._names:
            writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
            writer.close()
            return
        there, back = await asyncio.open_connection(*self._names[target])
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(pipe(reader, back), pipe(there, writer))

    def close(self) -> None:
        async def end() -> None:
            self._server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@pytest.fixture
def kafka() -> Iterator[EmbeddedCluster]:
    """Two brokers that are advertised as kafka-1.internal:9092 and kafka-2.internal:9092."""
    with EmbeddedCluster(brokers=2, topics={"orders": 4}) as cluster:
        cluster.produce("orders", ["apple"] * 20)
        yield cluster


def hide(kafka: EmbeddedCluster) -> dict[str, tuple[str, int]]:
    """Advertise names that nobody resolves. Return where the brokers really are."""
    real = [server.rsplit(":", 1) for server in kafka.bootstrap_servers.split(",")]
    for node in (1, 2):
        kafka.advertise(node, f"kafka-{node}.internal", 9092)
    return {f"kafka-{node}.internal:9092": (host, int(port)) for node, (host, port) in enumerate(real, 1)}


def read_all(**settings: Any) -> int:
    with Consumer("orders", group_id="g", auto_offset_reset="earliest", **settings) as consumer:
        count = 0
        while count < 20:
            count += len(consumer.poll(timeout=10.0))
    return count


def defined(block: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "proxies"}
    exec(compile(block, "proxies.md", "exec"), names)
    return names


def test_an_http_proxy(kafka: EmbeddedCluster) -> None:
    proxy = Proxy(hide(kafka))
    try:
        runtime = defined(THROUGH_PROXY)["ThroughProxy"]("127.0.0.1", proxy.port)
        assert read_all(bootstrap_servers="kafka-1.internal:9092", runtime=runtime) == 20
        assert set(proxy.asked) == {"kafka-1.internal:9092", "kafka-2.internal:9092"}
        with (
            Consumer(
                "orders", bootstrap_servers="kafka-9.internal:9092", runtime=runtime, group_id="g"
            ) as consumer,
            pytest.raises(ConnectError, match=r"kafka-9\.internal"),
        ):
            consumer.poll(timeout=5.0)
    finally:
        proxy.close()


def test_forwarded_ports(kafka: EmbeddedCluster) -> None:
    names = defined(FORWARDED)
    real = hide(kafka)
    ports = {(host, port): real[f"{host}:{port}"][1] for host, port in names["FORWARDED"]}
    assert read_all(bootstrap_servers="kafka-2.internal:9092", runtime=names["Forwarded"](ports)) == 20
