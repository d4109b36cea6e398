"""From publish to read: a process that publishes a record every 50 ms to a topic of its own, and reads it.

It runs beside the group, on the same brokers, and its consumer has no group. Both ends share one clock. The time counts
from the moment when a record is due, not when it could be sent at last, so a broker that is away costs every record
that waits for another one. After SIGTERM it reads what it has published, and writes one line:

    {"records": 240, "median": 0.004, "p99": 0.61, "longest": 0.92}        # seconds
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Final, Self

import attrs

from demo.processes import Child
from demo.publish import Lane, open_lanes
from demo.recording import Latency
from kclient import AsyncConsumer, TopicPartition
from kclient.records.writer import NewRecord

TOPIC: Final = "probes"
EVERY_SECONDS: Final = 0.05
LAST_SECONDS: Final = 5.0


class Probe:
    """The process, for as long as the block lasts."""

    def __init__(self, servers: str, logs: Path) -> None:
        self._child = Child("demo.probe", ["--bootstrap-servers", servers], logs / "probe.log")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.__exit__(kind, error, trace)

    def finish(self) -> Latency | None:
        """End it, and what it has measured; None if it had no time to. Raises RuntimeError when it failed."""
        if (code := self._child.end()) != 0:
            raise RuntimeError(f"the probe ended with {code}:\n{self._child.log_end()}")
        received = self._child.receive(timeout=0.0)
        return Latency(**received[0]) if received else None


def summary(seconds: Sequence[float]) -> Latency:
    """Median, 99th percentile (the nearest rank) and longest."""
    ordered = sorted(seconds)
    rank = math.ceil(0.99 * len(ordered))
    return Latency(
        len(ordered), round(median(ordered), 6), round(ordered[rank - 1], 6), round(ordered[-1], 6)
    )


async def measure(servers: str, stop: asyncio.Event) -> list[float]:
    """Publish and read until `stop`, and for a moment after it what is still on its way."""
    tp = TopicPartition(TOPIC, 0)
    async with (
        open_lanes(servers, TOPIC, 1) as [lane],
        AsyncConsumer(
            bootstrap_servers=servers, auto_offset_reset="earliest", fetch_max_wait_ms=500
        ) as consumer,
    ):
        await consumer.assign([tp])
        await consumer.poll(0.0)
        due: list[float] = []
        found: list[float] = []
        async with asyncio.TaskGroup() as group:
            group.create_task(lane.run())
            reading = group.create_task(_read(consumer, due, found))
            await _publish(lane, due, stop)
            await _until_read(due, found)
            reading.cancel()
        return found


async def _publish(lane: Lane, due: list[float], stop: asyncio.Event) -> None:
    clock = asyncio.get_running_loop().time
    began = clock()
    while not stop.is_set():
        due.append(began + len(due) * EVERY_SECONDS)
        await asyncio.sleep(due[-1] - clock())
        await lane.queue.put([NewRecord(None, b"%d" % (len(due) - 1), 0)])
    await lane.queue.put([])


async def _read(consumer: AsyncConsumer, due: list[float], found: list[float]) -> None:
    clock = asyncio.get_running_loop().time
    while True:
        records = await consumer.poll(1.0)
        now = clock()
        found += [now - due[record.offset] for record in records]


async def _until_read(due: list[float], found: list[float]) -> None:
    for _ in range(int(LAST_SECONDS / EVERY_SECONDS)):
        if len(found) >= len(due):
            return
        await asyncio.sleep(EVERY_SECONDS)


async def main(servers: str) -> None:
    """Measure until SIGTERM, then print the result."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    found = await measure(servers, stop)
    if found:
        sys.stdout.write(json.dumps(attrs.asdict(summary(found))) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m demo.probe", description="From publish to read.")
    parser.add_argument("--bootstrap-servers", required=True)
    asyncio.run(main(parser.parse_args().bootstrap_servers))
