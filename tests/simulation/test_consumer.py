"""The consumer, unchanged, under simulated time against a small broker: read, commit, close, through faults."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient import AsyncConsumer, TopicPartition
from kclient.errors import KclientError
from kclient.simulation.pipe import Act, Trip
from kclient.simulation.world import World, run
from tests.consumer.mini_broker import MiniBroker
from tests.simulation.support import in_another_process

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
KEYS: dict[str, Any] = {
    "bootstrap_servers": "broker:9092",
    "group_id": "g",
    "auto_offset_reset": "earliest",
    "request_timeout_ms": 10_000,
}


async def serve(world: World, records: int) -> MiniBroker:
    """A broker with that many records in each of two partitions."""
    broker = MiniBroker(topics={"t": 2})
    broker.host, broker.port = "broker", 9092
    for partition in range(2):
        broker.fill("t", partition, *(b"%d-%d" % (partition, number) for number in range(records)))
    await world.host("broker").start(broker.__aenter__())
    return broker


async def read_all(world: World, count: int) -> list[bytes]:
    """Read until there are `count` records, commit, close. A failing call is no reason to give up."""
    values: list[bytes] = []
    async with AsyncConsumer("t", runtime=world.runtime("member"), **KEYS) as consumer:
        while len(values) < count:
            try:
                values += [record.value for record in await consumer.poll(1.0)]
            except KclientError as exc:
                world.loop.trace("poll", type(exc).__name__)
        await consumer.commit()
    return values


def scenario(fault: Callable[[World], None], records: int = 200) -> Callable[[World], Awaitable[Any]]:
    async def main(world: World) -> Any:
        wire = world.network.default
        wire.latency, wire.jitter, wire.split, wire.coalesce = 0.005, 0.005, 0.3, 0.2
        broker = await serve(world, records)
        fault(world)
        values = await world.host("member").start(read_all(world, 2 * records))
        await asyncio.sleep(1)
        left = [task.get_name() for task in asyncio.all_tasks() if getattr(task.host, "name", "") == "member"]
        return sorted(values), broker.committed[T0].offset, broker.committed[T1].offset, left

    return main


def everything(records: int = 200) -> Any:
    values = sorted(b"%d-%d" % (partition, number) for partition in range(2) for number in range(records))
    return values, records, records, []


@pytest.mark.parametrize("seed", range(5))
def test_it_joins_reads_commits_and_closes(seed: int) -> None:
    outcome = run(seed, scenario(lambda world: None))
    assert outcome.result == everything()
    assert outcome.findings == ()
    assert outcome.seconds < 10


def test_its_history_is_the_seeds() -> None:
    main = scenario(lambda world: None)
    assert run(3, main) == run(3, main)
    assert run(3, main).digest != run(4, main).digest


def test_its_history_is_the_same_in_every_process() -> None:
    program = "from tests.simulation.test_consumer import *; print(run(3, scenario(cut_frames)).digest)"
    digests = [in_another_process(program, hash_seed) for hash_seed in ("0", "1")]
    assert digests == [run(3, scenario(cut_frames)).digest] * 2


@pytest.mark.parametrize("skew", [-3600.0, 3600.0])
def test_its_history_does_not_depend_on_the_wall_clock(skew: float) -> None:
    def wrong(world: World) -> None:
        cut_frames(world)
        world.clock("member").skew = skew

    assert run(3, scenario(wrong)).digest == run(3, scenario(cut_frames)).digest


def reset_often(world: World) -> None:
    for at in range(1, 40):
        world.loop.call_later(at * 0.013, lambda: [way.reset() for way in world.network.between("broker")])


def cut_frames(world: World) -> None:
    def cut() -> None:
        for way in world.network.between("broker"):
            way.backward.trip = Trip(world.rng.choice(list(Act)), world.rng.randrange(1, 500), 2.0)

    for at in range(1, 20):
        world.loop.call_later(at * 0.03, cut)


def part(world: World) -> None:
    world.loop.call_later(0.05, world.network.cut_both, "member", "broker")
    world.loop.call_later(25.0, world.network.heal_all)


def block_broker(world: World) -> None:
    world.loop.call_later(0.05, world.network.by_name["broker"].block, 8.0)


def block_member(world: World) -> None:
    world.loop.call_later(0.05, lambda: world.network.by_name["member"].block(8.0))


@pytest.mark.parametrize("fault", [reset_often, cut_frames, part, block_broker, block_member])
@pytest.mark.parametrize("seed", range(3))
def test_it_gets_everything_through_faults(seed: int, fault: Callable[[World], None]) -> None:
    outcome = run(seed, scenario(fault))
    values, *rest = outcome.result
    assert set(values) == set(everything()[0])
    assert rest == list(everything()[1:])
    assert outcome.findings == ()
