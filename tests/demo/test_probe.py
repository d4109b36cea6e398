"""What the probe measures: each record once, from the moment it was due, and the figures of all of them."""

from __future__ import annotations

import asyncio

from demo.probe import EVERY_SECONDS, TOPIC, measure, summary
from demo.recording import Latency
from kclient.embedded import EmbeddedCluster
from tests.waiting import until


def test_the_percentile_is_the_nearest_rank() -> None:
    assert summary([n / 1000 for n in range(200, 0, -1)]) == Latency(200, 0.1005, 0.198, 0.2)
    assert summary([0.5]) == Latency(1, 0.5, 0.5, 0.5)


def published_to(kafka: EmbeddedCluster) -> int:
    return sum(request.api == "Produce" for request in kafka.requests)


def test_a_broker_that_does_not_answer_for_half_a_second_costs_every_record_that_was_due() -> None:
    async def main() -> tuple[list[float], int]:
        async with EmbeddedCluster(brokers=1, topics={TOPIC: 1}) as kafka:
            stop = asyncio.Event()
            measuring = asyncio.create_task(measure(kafka.bootstrap_servers, stop))
            await until(lambda: published_to(kafka) > 0)
            kafka.pause(1)
            await asyncio.sleep(0.5)
            kafka.resume(1)
            await asyncio.sleep(0.2)
            stop.set()
            found = await measuring
            return found, published_to(kafka)

    found, published = asyncio.run(asyncio.wait_for(main(), 30))
    assert len(found) == published
    assert max(found) >= 0.4
    assert len([seconds for seconds in found if seconds > EVERY_SECONDS]) >= 5
