"""Test a handler under failures, in virtual time: python -m pytest test_bill_once.py

Kafka delivers a record again after a crash or a rebalance. A service that must bill an order once has to know which
orders it has billed. One that keeps them in memory forgets them when it is killed; the simulation finds the seed that
shows it. The other asks the database, in which the order and its bill are written together.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from kclient import AsyncConsumer, Record, handlers
from kclient.simulation import Simulation, SimulationRunner


class Database:
    """What stands for the real one: it outlives the processes that use it."""

    def __init__(self) -> None:
        self.bills: Counter[bytes | None] = Counter()  # by order

    async def bill(self, order: bytes | None) -> None:
        await asyncio.sleep(0.05)
        self.bills[order] += 1

    async def bill_if_new(self, order: bytes | None) -> None:
        """INSERT … ON CONFLICT DO NOTHING."""
        await asyncio.sleep(0.05)
        self.bills.setdefault(order, 1)


async def service(servers: str, handle: Callable[[Record[bytes, bytes]], Awaitable[None]]) -> None:
    async with AsyncConsumer(
        "orders",
        bootstrap_servers=servers,
        group_id="billing",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6_000,
    ) as consumer:
        await handlers.run_async(consumer, handle, concurrency=4)


async def remembers_in_memory(servers: str, database: Database) -> None:
    billed: set[bytes | None] = set()

    async def handle(record: Record[bytes, bytes]) -> None:
        if record.value not in billed:
            await database.bill(record.value)
            billed.add(record.value)

    await service(servers, handle)


async def asks_the_database(servers: str, database: Database) -> None:
    async def handle(record: Record[bytes, bytes]) -> None:
        await database.bill_if_new(record.value)

    await service(servers, handle)


def billing(
    process: Callable[[str, Database], Awaitable[None]],
) -> Callable[[Simulation], Awaitable[None]]:
    """Two processes, a hundred orders in half a minute, and what goes wrong meanwhile."""

    async def scenario(simulation: Simulation) -> None:
        database = Database()
        for name in ("billing-1", "billing-2"):
            simulation.start(name, process, simulation.bootstrap_servers, database)
        orders = [f"order {number}" for number in range(100)]
        faults = simulation.draw_faults(seconds=30)
        await asyncio.gather(simulation.produce("orders", orders, seconds=30), simulation.inject(faults))
        await simulation.heal()
        await simulation.until(lambda: len(database.bills) == len(orders), seconds=60)
        twice = [order for order, count in database.bills.items() if count > 1]
        assert not twice, f"billed more than once: {twice}"

    return scenario


def test_a_set_in_memory_bills_orders_twice(kafka_simulation: SimulationRunner) -> None:
    with pytest.raises(AssertionError, match="billed more than once"):
        kafka_simulation(billing(remembers_in_memory), seeds=range(1, 21), topics={"orders": 4})


def test_the_database_bills_each_order_once(kafka_simulation: SimulationRunner) -> None:
    kafka_simulation(billing(asks_the_database), seeds=range(1, 11), topics={"orders": 4})
