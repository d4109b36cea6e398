"""What is left of a connection when it has ended."""

from __future__ import annotations

import asyncio
import gc
import socket
import tracemalloc
from collections.abc import Callable

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.generated.metadata_request import MetadataRequest
from tests.embedded.raw_client import RawClient
from tests.waiting import until

CONNECTIONS = 50
# For a connection that has ended; while it lasts its read-ahead buffer alone has 64 KiB.
KEPT_BYTES = 16 * 1024


def test_the_log_of_requests_keeps_no_buffers_of_connections_that_ended() -> None:
    async def main() -> None:
        async with EmbeddedCluster() as cluster:
            for _ in range(5):
                await _ask_once(cluster)
            tracemalloc.start()
            for _ in range(CONNECTIONS):
                await _ask_once(cluster)
            gc.collect()
            assert tracemalloc.get_traced_memory()[0] / CONNECTIONS < KEPT_BYTES
            assert len(cluster.requests) == CONNECTIONS + 5

    try:
        asyncio.run(main())
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("turns", range(6))
def test_a_client_that_connects_while_its_broker_is_killed_is_not_left_waiting(turns: int) -> None:
    """asyncio accepts in one turn of the loop, makes the transport in the next and calls the protocol in a third."""

    async def main() -> None:
        async with EmbeddedCluster(brokers=2) as cluster:
            listener = cluster.state.brokers[1].listeners[0]
            with socket.create_connection(listener.address) as client:
                client.setblocking(False)
                asyncio.get_running_loop().call_soon(_after(turns, lambda: cluster.kill(1)))
                ended: bytes | Exception
                try:
                    ended = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 1), 10)
                except ConnectionResetError as exc:
                    ended = exc
            assert ended == b"" or isinstance(ended, ConnectionResetError)

    gc.disable()  # it would close what nothing else closes
    try:
        asyncio.run(main())
    finally:
        gc.enable()


def _after(turns: int, then: Callable[[], object]) -> Callable[[], object]:
    """Return a callback that calls `then` so many turns of the loop after its own."""
    return then if turns == 0 else lambda: asyncio.get_running_loop().call_soon(_after(turns - 1, then))


async def _ask_once(cluster: EmbeddedCluster) -> None:
    async with RawClient(cluster) as raw_client:
        await raw_client.ask(MetadataRequest(topics=None), 12)
    await until(lambda: not cluster.state.brokers[1].connections)
