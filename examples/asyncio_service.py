"""A service that ends on SIGTERM: python asyncio_service.py localhost:9092 flights GROUP

The signal cancels the task that reads. The consumer commits what `handle` has finished and leaves the group, so that
another member continues at once. A record whose `handle` was cancelled is delivered again.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress

from kclient import AsyncConsumer, Record


async def handle(record: Record) -> None:
    await asyncio.sleep(0)  # your work
    print("handled", record.partition, record.offset, flush=True)


async def consume(servers: str, topic: str, group: str) -> None:
    async with AsyncConsumer(
        topic, bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest"
    ) as consumer:
        async for record in consumer:
            await handle(record)


async def main(servers: str, topic: str, group: str) -> None:
    reading = asyncio.create_task(consume(servers, topic, group))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, reading.cancel)
    with suppress(asyncio.CancelledError):
        await reading
    print("closed")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
