"""Short scripts about reading for bugs that no drawn seed can show: each runs under a seed and says what is wrong."""

from __future__ import annotations

from typing import Any, Final

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.embedded.listener import Factory, Listener
from kclient.errors import CorruptBatchError
from kclient.protocol.errors import KAFKA_STORAGE_ERROR
from kclient.simulation.server import SimServer
from kclient.simulation.world import World, run
from kclient.types import TopicPartition
from tests.simulation.mutants.table import Symptoms

HERE: Final = TopicPartition("events", 0)
MAX_AGE_MS: Final = 10_000
PATIENCE: Final = 60.0


def follower_left_behind(seed: int) -> Symptoms:
    """Who is sent to a follower asks the leader again after a while, and gets what the follower lacks. I-22."""
    return run(seed, _read_from_follower, limit=600.0).result


def moved_leader(seed: int) -> Symptoms:
    """Who hears that another broker leads finds out which, and need not wait until metadata are old. I-22."""
    return run(seed, _read_from_moved, limit=600.0).result


def damage_beside(seed: int) -> Symptoms:
    """A batch that cannot be read takes nothing of other partitions with it. I-04."""
    return run(seed, _read_beside_damage, limit=600.0).result


def error_beside(seed: int) -> Symptoms:
    """An error of one partition does not stop the others. I-22."""
    return run(seed, _read_beside_error, limit=600.0).result


def old_format(seed: int) -> Symptoms:
    """Compressed message sets of format 1 say where each message lies relative to the first. I-05."""
    return run(seed, _read_old_format, limit=600.0).result


def cut_and_unchecked(seed: int) -> Symptoms:
    """While a position is looked for in the new leader's log nothing is delivered from there. I-13."""
    return run(seed, _read_from_cut, limit=600.0).result


def cut_and_committed(seed: int) -> Symptoms:
    """Who goes on at a commit goes back with the log that was cut below it. I-13."""
    return run(seed, _go_on_in_cut, limit=600.0).result


def _cluster(world: World, brokers: int, **options: Any) -> EmbeddedCluster:
    names = [f"broker-{number + 1}" for number in range(brokers)]
    for name in names:
        world.host(name)

    async def serve(factory: Factory, listener: Listener) -> SimServer:
        return await world.loop.create_server(factory, listener.host, listener.port)

    addresses = [(name, 9092) for name in names]
    runtime = world.runtime("cluster")
    return EmbeddedCluster(brokers, addresses=addresses, runtime=runtime, serve=serve, **options)


async def _read(
    world: World, count: int, *, from_commit: bool = False, **settings: Any
) -> list[tuple[int, bytes]]:
    """Offsets and values, until there are so many or patience is at an end."""
    found: list[tuple[int, bytes]] = []
    settings.setdefault("metadata_max_age_ms", MAX_AGE_MS)
    async with AsyncConsumer(
        bootstrap_servers="broker-1:9092", runtime=world.runtime("client"), **settings
    ) as consumer:
        await consumer.assign([HERE])
        if not from_commit:
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


async def _read_from_moved(world: World) -> Symptoms:
    async with _cluster(world, 2) as cluster:
        cluster.create_topic(HERE.topic, 1, 2)
        cluster.produce(HERE.topic, [b"%d" % number for number in range(10)])
        world.loop.call_later(2.0, _move_leader, cluster)
        found = await world.host("client").start(_read(world, 20, metadata_max_age_ms=10 * MAX_AGE_MS))
    return [] if len(found) == 20 else [("I-22", f"{len(found)} of 20 records after {PATIENCE:g} s")]


def _move_leader(cluster: EmbeddedCluster) -> None:
    partition = cluster.state.partition(HERE)
    if partition is not None:
        (other,) = (node for node in partition.replicas if node != partition.leader)
        cluster.move_leader(HERE.topic, 0, other)
        cluster.produce(HERE.topic, [b"%d" % number for number in range(10, 20)])


async def _read_old_format(world: World) -> Symptoms:
    async with _cluster(world, 1, release="0.10.2") as cluster:
        cluster.create_topic(HERE.topic, 1)
        for start in (0, 3, 6):
            values = [b"%d" % (start + number) for number in range(3)]
            cluster.produce(HERE.topic, values, codec="gzip")
        found = await world.host("client").start(_read(world, 9))
    wanted = [(offset, b"%d" % offset) for offset in range(9)]
    return [] if found == wanted else [("I-05", f"read {found}")]


async def _read_beside_damage(world: World) -> Symptoms:
    async with _cluster(world, 1) as cluster:
        cluster.create_topic(HERE.topic, 2)
        for partition in (0, 1):
            cluster.produce(HERE.topic, [b"%d" % number for number in range(10)], partition=partition)
        cluster.on("Fetch", _damage_second, times=3)
        found = await world.host("client").start(_read_both(world))
    return [] if found == list(range(10)) else [("I-04", f"of the partition beside it came {found}")]


async def _read_beside_error(world: World) -> Symptoms:
    async with _cluster(world, 1) as cluster:
        cluster.create_topic(HERE.topic, 2)
        for partition in (0, 1):
            cluster.produce(HERE.topic, [b"%d" % number for number in range(10)], partition=partition)
        cluster.on("Fetch", _refuse_second, times=3)
        found = await world.host("client").start(_read_both(world))
    return [] if found == list(range(10)) else [("I-22", f"of the partition beside it came {found}")]


def _refuse_second(request: Any, response: Any) -> Any:
    for part in (part for topic in response.responses for part in topic.partitions):
        if part.partition_index == 1:
            part.error_code, part.records = KAFKA_STORAGE_ERROR, b""
    return response


def _damage_second(request: Any, response: Any) -> Any:
    for part in (part for topic in response.responses for part in topic.partitions):
        if part.partition_index == 1 and part.records:
            part.records = bytes(part.records[:-1]) + bytes([part.records[-1] ^ 1])
    return response


async def _read_both(world: World) -> list[int]:
    """The offsets of partition 0, whatever is wrong with partition 1."""
    both, found = [HERE, HERE._replace(partition=1)], []
    async with AsyncConsumer(
        bootstrap_servers="broker-1:9092", runtime=world.runtime("client"), fetch_min_bytes=200
    ) as consumer:
        await consumer.assign(both)
        for tp in both:
            consumer.seek(tp, 0)
        until = world.loop.time() + PATIENCE
        while world.loop.time() < until:
            try:
                records = await consumer.poll(1.0)
            except CorruptBatchError:
                consumer.seek(both[1], 0)
            else:
                found += [record.offset for record in records if record.partition == 0]
    return found


async def _read_from_cut(world: World) -> Symptoms:
    """Brokers before 2.7 do not say in responses to Fetch where logs part."""
    async with _cluster(world, 1, release="2.6") as cluster:
        cluster.create_topic(HERE.topic, 1)
        cluster.produce(HERE.topic, [b"old"] * 10)
        cluster.fail("OffsetForLeaderEpoch", "UNKNOWN_LEADER_EPOCH", times=5)
        world.loop.call_later(2.0, _cut, cluster)
        found = await world.host("client").start(_read(world, 11, auto_offset_reset="earliest"))
    return [] if found[10:11] == [(5, b"new")] else [("I-13", f"behind the old records came {found[10:11]}")]


async def _go_on_in_cut(world: World) -> Symptoms:
    async with _cluster(world, 1) as cluster:
        cluster.create_topic(HERE.topic, 1)
        cluster.produce(HERE.topic, [b"old"] * 10)
        client = world.host("client")
        await client.start(_read(world, 10, group_id="readers"))
        _cut(cluster)
        found = await client.start(
            _read(world, 1, group_id="readers", auto_offset_reset="earliest", from_commit=True)
        )
    return [] if found[:1] == [(5, b"new")] else [("I-13", f"at the commit of a lost tail came {found[:1]}")]


def _cut(cluster: EmbeddedCluster) -> None:
    """Lose the records after offset 5, and write others."""
    cluster.truncate(HERE.topic, 0, 5)
    cluster.produce(HERE.topic, [b"new"] * 10)
