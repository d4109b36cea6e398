"""Which node a question goes to that any can answer, as long as none is connected."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import attrs
import pytest

from kclient.network.broker import ConnectionContext
from kclient.network.metadata import MetadataCache
from kclient.network.pool import ConnectionPool
from kclient.runtime import Address, Runtime
from kclient.types import Broker
from tests.network.support import SETTINGS


@attrs.define
class Unanswered(Runtime):
    """A runtime whose resolver never answers, so every attempt stays under way."""

    async def resolve(self, host: str, port: int) -> list[Address]:
        await asyncio.Event().wait()
        return []


@contextmanager
def three_brokers() -> Iterator[ConnectionPool]:
    metadata = MetadataCache()
    for node_id in range(3):
        metadata.learn_broker(Broker(node_id, "broker", 9092 + node_id))
    around = ConnectionContext(SETTINGS, Unanswered(), (50, 50), (10_000, 30_000), lambda node, problem: None)
    pool = ConnectionPool([], metadata, around)
    yield pool
    pool.disconnect()


@pytest.mark.spec("B.4.7")
def test_a_node_that_is_being_connected_comes_before_those_that_are_not() -> None:
    async def main() -> None:
        with three_brokers() as pool:
            waiting = asyncio.create_task(pool.node(1, "").ready())
            await asyncio.sleep(0.01)
            assert [pool.least_loaded() for _ in range(20)] == [pool.node(1, "")] * 20
            waiting.cancel()

    asyncio.run(main())


@pytest.mark.spec("B.4.7")
def test_of_nodes_that_are_not_connected_the_one_whose_attempt_is_longest_ago_comes_first() -> None:
    async def main() -> None:
        with three_brokers() as pool:
            for node_id, attempted in enumerate((7.0, 5.0, 6.0)):
                pool.node(node_id, "").last_attempt = attempted
            assert [pool.least_loaded() for _ in range(20)] == [pool.node(1, "")] * 20

    asyncio.run(main())
