"""Short scripts for bugs that no drawn seed can show: each runs under a seed and says what is wrong."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kclient import AsyncConsumer, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.embedded.listener import Factory, Listener
from kclient.errors import ConcurrentUseError, ConnectError, ProtocolDecodeError, WakeupError
from kclient.group.classic.rebalance import JoinGroup
from kclient.runtime import Runtime
from kclient.simulation.server import SimServer
from kclient.simulation.world import World, run
from tests.simulation.mutants.table import Symptoms

PATIENCE = 30.0
CYCLES = 40
SETTINGS: dict[str, Any] = {
    "group_id": "readers",
    "enable_auto_commit": False,
    "session_timeout_ms": 10_000,
    "request_timeout_ms": 3_000,
    "metadata_max_age_ms": 2_000,
    "max_poll_interval_ms": 40_000,
}
OF_THE_CLIENT = tuple(
    f"kclient.{room}." for room in ("consumer", "fetch", "group", "network", "change_signal", "positions")
)
RECORDS = 20
HERE = TopicPartition("events", 0)


Use = Callable[[World, AsyncConsumer, EmbeddedCluster], Any]


def wakeup_between_polls(seed: int) -> Symptoms:
    """A wakeup that comes while no call waits ends the next poll. I-25."""
    return run(seed, lambda world: with_cluster(world, _wake_and_poll), limit=600.0).result


def many_rebalances(seed: int) -> Symptoms:
    """Rebalances leak nothing. I-33."""
    return run(seed, lambda world: with_cluster(world, _rebalance_often), limit=6_000.0).result


def cancelled_question(seed: int) -> Symptoms:
    """A response to a call that was cancelled is not taken for one to the next call. I-16."""
    return run(seed, lambda world: with_cluster(world, _cancel_and_ask), limit=600.0).result


def lost_answer(seed: int) -> Symptoms:
    """The response after one that never came is not taken for that one. I-16."""
    return run(seed, lambda world: with_cluster(world, _ask_two_things), limit=600.0).result


def start_while_refused(seed: int) -> Symptoms:
    """Who polls while no broker is there yet tries to connect again and again, but not at once. I-26."""
    return run(seed, lambda world: with_cluster(world, _poll_in_vain), limit=600.0).result


def silent_coordinator(seed: int) -> Symptoms:
    """A connection that fell silent is given up long before the session is over. I-27."""
    return run(seed, lambda world: with_cluster(world, _fall_silent), limit=600.0).result


def busy_application(seed: int) -> Symptoms:
    """Who works for longer than a session lasts, and less than max.poll.interval, stays a member. I-28."""
    return run(seed, lambda world: with_cluster(world, _work_long), limit=600.0).result


def absent_application(seed: int) -> Symptoms:
    """Who does not poll within max.poll.interval is no member any more. I-28."""
    return run(seed, lambda world: with_cluster(world, _stay_away), limit=600.0).result


def long_outage(seed: int) -> Symptoms:
    """However long nothing could be reached: soon after it can, reading goes on. I-22."""
    return run(seed, lambda world: with_cluster(world, _sit_it_out), limit=600.0).result


def few_warnings(seed: int) -> Symptoms:
    """A broker that stays out of reach is worth a few warnings, not one with each attempt. I-37."""
    return run(seed, lambda world: with_cluster(world, _count_warnings), limit=600.0).result


def slow_partner(seed: int) -> Symptoms:
    """One JoinGroup waits until the last member has come. I-27."""
    return run(seed, lambda world: with_cluster(world, _wait_for_partner), limit=600.0).result


def leader_of_the_past(seed: int) -> Symptoms:
    """Older metadata does not bring back an earlier leader. I-26."""
    return run(seed, lambda world: with_cluster(world, _hear_old_news, brokers=2), limit=600.0).result


def cancelled_polls(seed: int) -> Symptoms:
    """One that was cancelled inside of a poll may poll again. I-30."""
    return run(seed, lambda world: with_cluster(world, _cancel_polls), limit=600.0).result


async def with_cluster(world: World, use: Use, brokers: int = 1) -> Symptoms:
    names = ["broker", "other"][:brokers]
    for name in names:
        world.host(name)

    async def serve(factory: Factory, listener: Listener) -> SimServer:
        return await world.loop.create_server(factory, listener.host, listener.port)

    async def read() -> Symptoms:
        runtime = world.runtime("client")
        async with AsyncConsumer(
            HERE.topic, bootstrap_servers="broker:9092", runtime=runtime, **SETTINGS
        ) as consumer:
            return await use(world, consumer, cluster)  # type: ignore[no-any-return]

    addresses = [(name, 9092) for name in names]
    cluster = EmbeddedCluster(brokers, addresses=addresses, runtime=world.runtime("broker"), serve=serve)
    async with cluster:
        cluster.create_topic(HERE.topic, 1, brokers)
        cluster.produce(HERE.topic, [b"%d" % number for number in range(RECORDS)])
        return await world.host("client").start(read())  # type: ignore[no-any-return]


async def _wake_and_poll(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    await consumer.poll(1.0)
    consumer.wakeup()
    began = world.loop.time()
    try:
        await consumer.poll(PATIENCE)
    except WakeupError:
        return []
    return [("I-25", f"a wakeup was lost: the next poll waited {world.loop.time() - began:.1f} s")]


async def _cancel_polls(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    for step in range(CYCLES):
        poll = asyncio.create_task(consumer.poll(PATIENCE, max_records=1))
        await asyncio.sleep(0.01 * step)
        poll.cancel()
        await asyncio.gather(poll, return_exceptions=True)
        try:
            await consumer.poll(0)
        except ConcurrentUseError as exc:
            return [("I-30", f"after a poll that was cancelled: {exc}")]
    return []


async def _fall_silent(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    while not consumer.assignment():
        await consumer.poll(1.0)
    before = consumer.group_metadata().generation_id
    for connection in world.network.between("client", "broker"):
        connection.backward.silence()
    until = world.loop.time() + 3 * PATIENCE
    while world.loop.time() < until:
        await consumer.poll(1.0)
    now = consumer.group_metadata().generation_id
    return [] if now == before else [("I-27", f"generation {now} follows {before}: a session ended unheard")]


async def _work_long(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    while not consumer.assignment():
        await consumer.poll(1.0)
    before = consumer.group_metadata().generation_id
    await asyncio.sleep(PATIENCE)
    await consumer.poll(5.0)
    now = consumer.group_metadata().generation_id
    return (
        [] if now == before else [("I-28", f"generation {now} follows {before} for {PATIENCE:g} s of work")]
    )


async def _stay_away(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    while not consumer.assignment():
        await consumer.poll(1.0)
    await asyncio.sleep(SETTINGS["max_poll_interval_ms"] / 1000 + 1.0)
    is_member = consumer.group_metadata().generation_id >= 0
    return [("I-28", "still a member, max.poll.interval after the last poll")] if is_member else []


async def _sit_it_out(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    while not consumer.assignment():
        await consumer.poll(1.0)
    world.network.refusing.add("broker")
    for connection in world.network.between("client", "broker"):
        connection.reset()
    until = world.loop.time() + 2 * PATIENCE
    while world.loop.time() < until:
        await consumer.poll(1.0)
    world.network.refusing.clear()
    healed = world.loop.time()
    while not await consumer.poll(1.0):
        cluster.produce(HERE.topic, [b"when all is well"])
    seconds = world.loop.time() - healed
    return [] if seconds < PATIENCE / 2 else [("I-22", f"nothing for {seconds:.1f} s after all was well")]


async def _count_warnings(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    logger, warnings = logging.getLogger("kclient.connection"), list[str]()
    ear = logging.Handler(logging.WARNING)
    ear.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(ear)
    try:
        await _sit_it_out(world, consumer, cluster)
    finally:
        logger.removeHandler(ear)
    return [] if len(warnings) <= PATIENCE else [("I-37", f"{len(warnings)} warnings of one broker")]


async def _wait_for_partner(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    while not consumer.assignment():
        await consumer.poll(1.0)
    joins = 0

    async def counted(self: JoinGroup, topics: Any) -> Any:
        nonlocal joins
        joins += 1
        return await join(self, topics)

    join, JoinGroup.join = JoinGroup.join, counted  # type: ignore[method-assign]
    try:
        async with AsyncConsumer(
            HERE.topic, bootstrap_servers="broker:9092", runtime=world.runtime("client"), **SETTINGS
        ) as second:
            polling = asyncio.ensure_future(second.poll(PATIENCE / 2))
            await asyncio.sleep(PATIENCE / 3)  # the first one does not poll, and gives nothing up
            await asyncio.gather(polling, *(consumer.poll(1.0) for _ in "x"))
            seen = joins
    finally:
        JoinGroup.join = join  # type: ignore[method-assign]
    return [] if seen <= 3 else [("I-27", f"{seen} times JoinGroup for one new member")]


async def _hear_old_news(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    while not consumer.assignment():
        await consumer.poll(1.0)
    partition = cluster.state.topics[HERE.topic].partitions[0]
    leader, epoch = partition.leader, partition.leader_epoch
    cluster.move_leader(HERE.topic, 0, next(node for node in partition.isr if node != leader))
    cluster.produce(HERE.topic, [b"from the new leader"])
    while not await consumer.poll(1.0):
        continue

    def old_news(request: Any, response: Any) -> Any:
        for topic in response.topics:
            for part in topic.partitions:
                part.leader_id, part.leader_epoch = leader, epoch
        return response

    cluster.on("Metadata", old_news)
    cluster.forget_requests()
    for _ in range(10):
        await consumer.poll(1.0)
    asked = [one.request for one in cluster.requests if one.api in ("Fetch", "OffsetForLeaderEpoch")]
    parts = [part for request in asked for topic in request.topics for part in topic.partitions]
    back = sum(part.current_leader_epoch == epoch for part in parts)
    return [("I-26", f"{back} times asked under an epoch that is known to be over")] if back else []


async def _cancel_and_ask(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    await consumer.end_offsets([HERE])
    asking = asyncio.ensure_future(consumer.end_offsets([HERE]))
    await asyncio.sleep(0.001)
    asking.cancel()
    found = await consumer.beginning_offsets([HERE])
    return [] if found == {HERE: 0} else [("I-16", f"beginning_offsets was answered with {found}")]


async def _ask_two_things(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    await consumer.end_offsets([HERE])
    cluster.drop("ListOffsets")
    asking = asyncio.ensure_future(consumer.end_offsets([HERE]))
    await asyncio.sleep(0.001)
    try:
        first, (end,) = await consumer.beginning_offsets([HERE]), (await asking).values()
    except ProtocolDecodeError as exc:
        return [("I-16", f"a response was read as one to another request: {exc.text}")]
    right = first == {HERE: 0} and end == RECORDS
    return [] if right else [("I-16", f"the beginning is {first}, and the end {end}")]


async def _poll_in_vain(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    world.network.refusing.add("broker")
    attempts = 0

    async def counted(self: Runtime, *args: Any, **options: Any) -> Any:
        nonlocal attempts
        attempts += 1
        return await connect(self, *args, **options)

    connect, Runtime.connect = Runtime.connect, counted  # type: ignore[method-assign]
    try:
        until = world.loop.time() + PATIENCE
        while world.loop.time() < until:
            with suppress(ConnectError):
                await consumer.poll(1.0)
    finally:
        Runtime.connect = connect  # type: ignore[method-assign]
        world.network.refusing.clear()
    most = 2 * PATIENCE  # a second for each, but for the first ones
    return [] if attempts <= most else [("I-26", f"{attempts} attempts to connect in {PATIENCE:g} s")]


async def _rebalance_often(world: World, consumer: AsyncConsumer, cluster: EmbeddedCluster) -> Symptoms:
    counts = []
    for _ in range(3):
        for _ in range(CYCLES):
            consumer.enforce_rebalance("to see what it leaves")
            await consumer.poll(1.0)
        counts.append(_objects())
    _, before, after = counts  # the first ones fill caches
    grown = {name: count for name, count in after.items() if count >= before[name] + CYCLES // 2}
    return [("I-33", f"{name}: {before[name]}, then {count}") for name, count in grown.items()]


def _objects() -> Counter[str]:
    """The client's objects by type. Messages and batches are kept by the cluster, which remembers requests."""
    gc.collect()
    kinds = (type(one) for one in gc.get_objects())
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
    return Counter(name for name in names if name.startswith(OF_THE_CLIENT))
