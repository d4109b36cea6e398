"""Short scripts about reading for bugs that no drawn seed can show: each runs under a seed and says what is wrong."""

from __future__ import annotations

from typing import Any, Final

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.embedded.listener import Factory, Listener
from kclient.types import TopicPartition
from tests.simulation.mutants.table import Symptoms
from tests.simulation.server import SimServer
from tests.simulation.world import World, run

HERE: Final = TopicPartition("events", 0)
MAX_AGE_MS: Final = 10_000
PATIENCE: Final = 60.0


def follower_left_behind(seed: int) -> Symptoms:
    """Who is sent to a follower asks the leader again after a while, and gets what the follower lacks. I-22."""
    return run(seed, _read_from_follower, limit=600.0).result


def old_format(seed: int) -> Symptoms:
    """Compressed message sets of format 1 say where each message lies relative to the first. I-05."""
    return run(seed, _read_old_format, limit=600.0).result


def _cluster(world: World, brokers: int, **options: Any) -> EmbeddedCluster:
    names = [f"broker-{number + 1}" for number in range(brokers)]
    for name in names:
        world.host(name)

    async def serve(factory: Factory, listener: Listener) -> SimServer:
        return await world.loop.create_server(factory, listener.host, listener.port)

    addresses = [(name, 9092) for name in names]
    runtime = world.runtime("cluster")
    return EmbeddedCluster(brokers, addresses=addresses, runtime=runtime, serve=serve, **options)


async def _read(world: World, count: int) -> list[tuple[int, bytes]]:
    """Offsets and values, until there are so many or patience is at an end."""
    found: list[tuple[int, bytes]] = []
    async with AsyncConsumer(
        bootstrap_servers="broker-1:9092", runtime=world.runtime("client"), metadata_max_age_ms=MAX_AGE_MS
    ) as consumer:
        await consumer.assign([HERE])
        consumer.seek(HERE, 0)
        until = world.loop.time() + PATIENCE
        while len(found) < count and world.loop.time() < until:
            found += [(record.offset, record.value) for record in await consumer.poll(1.0)]
    return found


async def _read_from_follower(world: World) -> Symptoms:
    async with _cluster(world, 2) as cluster:
        cluster.create_topic(HERE.topic, 1, 2)
        cluster.produce(HERE.topic, [b"%d" % number for number in range(10)])
        partition = cluster.state.partition(HERE)
        if partition is None:
            return [("I-22", "the topic was not made")]
        (follower,) = (node for node in partition.replicas if node != partition.leader)
        cluster.lag(HERE.topic, 0, follower, 5)
        partition.isr.remove(follower)  # the high watermark does not wait for it
        cluster.set_follower(HERE.topic, 0, follower)
        world.loop.call_later(MAX_AGE_MS / 2000, cluster.set_follower, HERE.topic, 0, None)
        found = await world.host("client").start(_read(world, 10))
    return [] if len(found) == 10 else [("I-22", f"{len(found)} of 10 records after {PATIENCE:g} s")]


async def _read_old_format(world: World) -> Symptoms:
    async with _cluster(world, 1, release="0.10.2") as cluster:
        cluster.create_topic(HERE.topic, 1)
        for start in (0, 3, 6):
            values = [b"%d" % (start + number) for number in range(3)]
            cluster.produce(HERE.topic, values, codec="gzip")
        found = await world.host("client").start(_read(world, 9))
    wanted = [(offset, b"%d" % offset) for offset in range(9)]
    return [] if found == wanted else [("I-05", f"read {found}")]
