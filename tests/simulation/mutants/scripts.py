"""Short scripts for bugs that no drawn seed can show: each runs under a seed and says what is wrong."""

from __future__ import annotations

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.embedded.listener import Factory, Listener
from kclient.errors import WakeupError
from tests.simulation.mutants.table import Symptoms
from tests.simulation.server import SimServer
from tests.simulation.world import World, run

PATIENCE = 30.0


def wakeup_between_polls(seed: int) -> Symptoms:
    """A wakeup that comes while nobody waits ends the next poll."""

    async def main(world: World) -> Symptoms:
        world.host("broker")

        async def serve(factory: Factory, listener: Listener) -> SimServer:
            return await world.loop.create_server(factory, listener.host, listener.port)

        cluster = EmbeddedCluster(addresses=[("broker", 9092)], runtime=world.runtime("broker"), serve=serve)
        async with cluster:
            cluster.create_topic("events", 1)
            return await world.host("client").start(_wake_and_poll(world))  # type: ignore[no-any-return]

    return run(seed, main, limit=600.0).result


async def _wake_and_poll(world: World) -> Symptoms:
    runtime = world.runtime("client")
    async with AsyncConsumer(
        "events", bootstrap_servers="broker:9092", group_id="readers", runtime=runtime
    ) as consumer:
        await consumer.poll(1.0)
        consumer.wakeup()
        began = world.loop.time()
        try:
            await consumer.poll(PATIENCE)
        except WakeupError:
            return []
        return [("I-25", f"a wakeup was lost: the next poll waited {world.loop.time() - began:.1f} s")]
