"""Nothing piles up: a thousand lost connections later a consumer has as many objects of each type. I-33."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections import Counter
from typing import Final

import pytest

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.embedded.listener import Factory, Listener
from kclient.simulation.schedule import SimTimer
from kclient.simulation.world import World, run

CYCLES: Final = 1_000
WARM_UP: Final = 50
MAY_DIFFER: Final = 3  # a request may be under way at the one moment and not at the other
OF_A_CLIENT: Final = ("kclient.", "asyncio.", "_asyncio", "tests.simulation.")


def counted() -> Counter[str]:
    """Objects by type, of the client and of what it stands on; but for cancelled timers, dropped once they are many."""
    gc.collect()
    alive = (one for one in gc.get_objects() if not (isinstance(one, SimTimer) and one.cancelled()))
    names = (f"{type(one).__module__}.{type(one).__qualname__}" for one in alive)
    return Counter(name for name in names if name.startswith(OF_A_CLIENT) and ".embedded." not in name)


async def lose_connections(world: World) -> tuple[Counter[str], Counter[str]]:
    broker, client = world.host("broker"), world.host("client")
    assert broker.alive

    async def serve(factory: Factory, listener: Listener) -> asyncio.Server:
        return await world.loop.create_server(factory, listener.host, listener.port)

    cluster = EmbeddedCluster(
        topics={"t": 2}, addresses=[("broker", 9092)], runtime=world.runtime("cluster"), serve=serve
    )

    async def read() -> tuple[Counter[str], Counter[str]]:
        consumer = AsyncConsumer(
            "t",
            bootstrap_servers="broker:9092",
            group_id="g",
            enable_auto_commit=False,
            reconnect_backoff_max_ms=50,
            runtime=world.runtime("client"),
        )
        before: Counter[str] = Counter()
        for cycle in range(WARM_UP + CYCLES):
            await consumer.poll(1.0)
            for connection in world.network.between("client", "broker"):
                connection.reset()
            if cycle == WARM_UP:
                cluster.forget_requests()
                await consumer.poll(10.0)
                before = counted()
        cluster.forget_requests()
        await consumer.poll(10.0)
        after = counted()
        await consumer.close()
        return before, after

    async with cluster:
        return await client.start(read())


@pytest.mark.timeout(120)
def test_a_thousand_lost_connections_leak_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("kclient"), "disabled", True)
    monkeypatch.setattr(logging.getLogger("kclient.connection"), "disabled", True)
    before, after = run(1, lose_connections, limit=10_000.0).result
    assert before["kclient.network.connection.Connection"]
    grown = {
        name: (before[name], count) for name, count in after.items() if count > before[name] + MAY_DIFFER
    }
    assert not grown
