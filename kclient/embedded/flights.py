"""Invented flights, so that a stand-alone cluster has something to read: `python -m kclient.embedded --flights`.

    key      the carrier                                       timestamp    the departure
    value    {"flight": 17, "carrier": "AA", "origin": "JFK", "dest": "LAX", "dep_delay": 4}

`dep_delay` is in minutes, null for a flight that was cancelled. The same number of flights is the same each time, apart
from the timestamps.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Final

from kclient.embedded.cluster import EmbeddedCluster
from kclient.records.writer import NewRecord
from kclient.runtime import Runtime

TOPIC: Final = "flights"
PARTITIONS: Final = 6
CARRIERS: Final = ("AA", "B6", "DL", "EV", "MQ", "UA", "US", "WN")
ORIGINS: Final = ("EWR", "JFK", "LGA")
DESTINATIONS: Final = ("ATL", "BOS", "CLT", "FLL", "LAX", "MCO", "MIA", "ORD", "SFO")
CANCELLED: Final = 0.03
MEAN_DELAY_MINUTES: Final = 15.0
EARLIER_MS: Final = 1_800_000  # the first flights departed in the last half hour
KEPT_MS: Final = 3_600_000  # flights that go on for days must not fill the memory
STEP_SECONDS: Final = 0.1
CHUNK: Final = 10_000


def records(first: int, count: int, seeded: Runtime, start_ms: int, end_ms: int) -> Iterator[NewRecord]:
    """Yield flights from number `first` on, which departed evenly from `start_ms` to `end_ms`."""
    rng = seeded.rng
    for place in range(count):
        flight = {
            "flight": first + place,
            "carrier": rng.choice(CARRIERS),
            "origin": rng.choice(ORIGINS),
            "dest": rng.choice(DESTINATIONS),
            "dep_delay": None
            if rng.random() < CANCELLED
            else round(rng.expovariate(1 / MEAN_DELAY_MINUTES)) - 5,
        }
        departure = start_ms + (end_ms - start_ms) * place // max(1, count)
        yield NewRecord(str(flight["carrier"]).encode(), json.dumps(flight).encode(), departure)


class Flights:
    """Writes flights to the topic `flights` of a cluster: some at once, and then so many a second."""

    def __init__(self, cluster: EmbeddedCluster, runtime: Runtime) -> None:
        self._cluster = cluster
        self._runtime = runtime
        self._seeded = Runtime.seeded(TOPIC)
        self._count = 0

    def begin(self, count: int) -> None:
        """Create the topic, unless it exists, and write the first flights."""
        if TOPIC not in self._cluster.state.topics:
            self._cluster.create_topic(TOPIC, PARTITIONS, config={"retention.ms": str(KEPT_MS)})
        now = self._runtime.wall_ms()
        for number in range(0, count, CHUNK):
            some = min(CHUNK, count - number)
            start = now - EARLIER_MS + EARLIER_MS * number // count
            self._write(some, start, start + EARLIER_MS * some // count)

    async def go_on(self, rate: float) -> None:
        """Write `rate` flights a second until it is cancelled."""
        began, written = self._runtime.now(), 0
        while True:
            await asyncio.sleep(STEP_SECONDS)
            due = int((self._runtime.now() - began) * rate) - written
            if due:
                now = self._runtime.wall_ms()
                self._write(due, now, now)
                written += due

    def _write(self, count: int, start_ms: int, end_ms: int) -> None:
        self._cluster.produce(TOPIC, list(records(self._count + 1, count, self._seeded, start_ms, end_ms)))
        self._count += count
