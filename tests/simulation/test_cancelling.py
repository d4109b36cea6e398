"""A call may be cancelled at any await: the consumer can be used on, or closed, and nothing is left of it. I-30.

A scripted run is repeated, each time cancelled at another of its awaits; what it had begun is then finished manually.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from random import Random
from typing import Any, Final

import attrs
import pytest

from kclient import AsyncConsumer, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.embedded.listener import Factory, Listener
from kclient.simulation.network import Host
from kclient.simulation.world import World, run

SAMPLES: Final = 200
SEEDS: Final = 3
RECORDS: Final = 100
T0: Final = TopicPartition("t", 0)
NEVER: Final = 1 << 30


@attrs.define
class Cancelling:
    """Awaits a coroutine and counts at how many points it waits; at point `at` the task is cancelled."""

    work: Coroutine[Any, Any, None]
    at: int
    points: int = 0

    def __await__(self) -> Generator[Any, Any, None]:
        step: Any = self.work.send
        argument: Any = None
        while True:
            try:
                waits_for = step(argument)
            except StopIteration:
                return
            self.points += 1
            if self.points == self.at:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            try:
                argument = yield waits_for
                step = self.work.send
            except BaseException as exc:  # noqa: BLE001 – it is the work's to deal with
                argument, step = exc, self.work.throw


@attrs.define
class Trial:
    """One run of the script: where it is cancelled, and what was seen."""

    cluster: EmbeddedCluster
    consumer: AsyncConsumer
    at: int
    offsets: list[int] = attrs.field(factory=list)
    points: int = 0

    async def script(self) -> None:
        """Something of everything that waits."""
        consumer = self.consumer
        while len(self.offsets) < RECORDS:
            self.offsets += [record.offset for record in await consumer.poll(0.05, max_records=2)]
            if len(self.offsets) % 4 == 0:
                await consumer.commit()
        await consumer.position(T0)
        await consumer.committed([T0])
        await consumer.end_offsets([T0])
        await consumer.offsets_for_times({T0: 0})
        await consumer.list_topics()
        await consumer.poll(0.2)
        await consumer.unsubscribe()
        await consumer.subscribe(["t"])
        while not consumer.assignment():
            await consumer.poll(0.2)
        await consumer.close()

    async def run(self) -> None:
        """The script, cancelled on its way; then what is left to do."""
        cancelling = Cancelling(self.script(), self.at)
        try:
            await cancelling
        except asyncio.CancelledError:
            await self.go_on()
        finally:
            self.points = cancelling.points

    async def go_on(self) -> None:
        """Use it: a new record comes, nothing before it was skipped. Or find it closed."""
        consumer = self.consumer
        if not consumer.closed:
            if not consumer.subscription():
                await consumer.subscribe(["t"])
            ((_, last),) = self.cluster.produce("t", ["one more"], partition=0)
            async with asyncio.timeout(60.0):
                while last not in self.offsets:
                    self.offsets += [record.offset for record in await consumer.poll(0.2)]
        await consumer.close(10.0)


async def one_trial(world: World, at: int) -> tuple[Trial, list[str]]:
    broker, client = world.host("broker"), world.host("client")
    assert broker.alive

    async def serve(factory: Factory, listener: Listener) -> asyncio.Server:
        return await world.loop.create_server(factory, listener.host, listener.port)

    runtime = world.runtime("cluster")
    async with EmbeddedCluster(
        topics={"t": 1}, addresses=[("broker", 9092)], runtime=runtime, serve=serve
    ) as cluster:
        cluster.produce("t", [f"v{number}" for number in range(RECORDS)], partition=0)
        trial = await client.start(_begun(world, cluster, at))
        await asyncio.sleep(31.0)  # a close that was cancelled has ended by then
        return trial, _left(client)


async def _begun(world: World, cluster: EmbeddedCluster, at: int) -> Trial:
    consumer = AsyncConsumer(
        "t",
        bootstrap_servers="broker:9092",
        group_id="g",
        auto_offset_reset="earliest",
        runtime=world.runtime("client"),
    )
    trial = Trial(cluster, consumer, at)
    await trial.run()
    return trial


def _left(client: Host) -> list[str]:
    return [
        what for what in client.leftovers() if "SimTransport." not in what and "RetransmitTimer." not in what
    ]


def points_of_the_script() -> int:
    """At how many points the script waits when it is not disturbed."""
    trial, left = run(0, lambda world: one_trial(world, NEVER)).result
    assert trial.offsets == list(range(RECORDS))
    assert not left
    return trial.points


@pytest.mark.timeout(300)
def test_cancelled_at_any_await_a_consumer_continues_or_ends() -> None:
    points = points_of_the_script()
    every = [(seed, at) for seed in range(SEEDS) for at in range(1, points + 1)]
    for seed, at in Random(0).sample(every, SAMPLES):
        outcome = run(seed, lambda world, at=at: one_trial(world, at))
        trial, left = outcome.result
        assert not left, f"cancelled at await {at}, seed {seed}"
        assert not outcome.findings, f"cancelled at await {at}, seed {seed}"
        assert _is_whole(trial.offsets), f"cancelled at await {at}, seed {seed}: {trial.offsets}"


def _is_whole(offsets: list[int]) -> bool:
    """Nothing is left out: each is one further than the one before, or goes back to what is read again."""
    return all(later <= earlier + 1 for earlier, later in zip([-1, *offsets], offsets, strict=False))
