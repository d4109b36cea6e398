"""What is left of a connection when it has ended."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc

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


async def _ask_once(cluster: EmbeddedCluster) -> None:
    async with RawClient(cluster) as raw_client:
        await raw_client.ask(MetadataRequest(topics=None), 12)
    await until(lambda: not cluster.state.brokers[1].connections)
