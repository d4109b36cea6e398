"""The whole path on the real transport: scripted brokers of several ages, real frames, real connections."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kclient.change_signal import wait_any
from kclient.config import Config
from kclient.errors import BatchTooLargeError
from kclient.fetch.buffer import FetchBuffer
from kclient.fetch.delivery import RecordDelivery
from kclient.fetch.fetcher import Fetcher
from kclient.generated.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kclient.generated.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kclient.network.cluster import Cluster
from kclient.positions.table import Positions
from kclient.positions.updater import PositionUpdater
from kclient.runtime import Runtime
from kclient.types import TopicPartition
from tests.fetch.fetch_support import P0, batch
from tests.scripted_broker import On, ScriptedBroker

FETCH, LIST = "FetchRequest", "ListOffsetsRequest"


class Reader:
    """Everything below the consumer, put together manually for a manual assignment."""

    def __init__(self, peer: ScriptedBroker, **keys: Any) -> None:
        config = Config(bootstrap_servers=(peer.address,), auto_offset_reset="earliest", **keys)
        runtime = Runtime(rng=random.Random(1))
        self.cluster = Cluster(config, runtime)
        self.positions = Positions()
        self.buffer = FetchBuffer()
        self.position_updater = PositionUpdater(self.cluster, self.positions, config, runtime)
        self.fetcher = Fetcher(self.cluster, self.positions, self.buffer, config, runtime)
        self.delivery = RecordDelivery(self.positions, self.buffer, config)

    async def read(self, count: int) -> list[tuple[int, bytes | None]]:
        """(offset, value) of the next records; raises what a poll would raise."""
        found: list[tuple[int, bytes | None]] = []
        async with asyncio.timeout(10):
            while len(found) < count:
                seen = [(signal, signal.count) for signal in (self.positions.changed, self.buffer.changed)]
                if (error := self.position_updater.take_error() or self.fetcher.take_error()) is not None:
                    raise error
                if (task := self.delivery.begin(500)) is None:
                    await wait_any(*seen)
                    continue
                task.decode()
                found += [(record.offset, record.value) for record in self.delivery.finish(task)]
        return found


@asynccontextmanager
async def reading(peer: ScriptedBroker, *partitions: TopicPartition, **keys: Any) -> AsyncIterator[Reader]:
    reader = Reader(peer, **keys)
    reader.positions.assign(partitions)
    reader.cluster.set_topics(dict.fromkeys(tp.topic for tp in partitions))
    await reader.cluster.start()
    flows = [asyncio.create_task(flow.run()) for flow in (reader.position_updater, reader.fetcher)]
    try:
        yield reader
    finally:
        for flow in flows:
            flow.cancel()
        await asyncio.wait(flows)
        await reader.cluster.close(1)


def stands_at(offset: int, *, old: bool = False) -> ListOffsetsResponse:
    partition = ListOffsetsPartitionResponse(**{"old_style_offsets": [offset]} if old else {"offset": offset})
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=[partition])])


def brings(records: bytes | None, *, code: int = 0, topic_id: bytes | None = None) -> FetchResponse:
    topic = FetchableTopicResponse(**{"topic_id": topic_id} if topic_id else {"topic": "orders"})
    topic.partitions.append(PartitionData(error_code=code, high_watermark=9, records=records))
    return FetchResponse(responses=[topic])


OLD = {"FetchRequest": (0, 2), "ListOffsetsRequest": (0, 0), "MetadataRequest": (0, 1)}
MIDDLE = {"FetchRequest": (4, 12), "ListOffsetsRequest": (1, 5), "MetadataRequest": (4, 9)}


@pytest.mark.parametrize("versions", [OLD, MIDDLE], ids=["0.10", "2.8"])
@pytest.mark.spec("S0-45", "S0-48", "S0-50", "S2-14", "S2-17", "B.8", "A-18")
def test_from_assignment_to_records_with_brokers_of_other_ages(versions: dict[str, tuple[int, int]]) -> None:
    async def scenario() -> None:
        at = versions[FETCH][1]
        script = [
            On(LIST, stands_at(3, old=versions is OLD)),
            On(
                FETCH,
                brings(batch(3, 4)),
                check=lambda request: request.topics[0].partitions[0].fetch_offset == 3,
            ),
            On(
                FETCH,
                brings(batch(5)),
                check=lambda request: request.topics[0].partitions[0].fetch_offset == 5,
            ),
            On(FETCH),
        ]
        async with (
            ScriptedBroker(*script, topics={"orders": 1}, versions=versions) as peer,
            reading(peer, P0) as reader,
        ):
            assert await reader.read(3) == [(3, b"v3"), (4, b"v4"), (5, b"v5")]
            assert {seen.version for seen in peer.requests if seen.name == FETCH} == {at}
            await _until_taken(peer)

    asyncio.run(scenario())


@pytest.mark.spec("S2-28", "B.10.8")
def test_a_record_that_is_larger_than_the_fetch_size_is_reported_with_old_brokers() -> None:
    async def scenario() -> None:
        script = [On(LIST, stands_at(0, old=True)), On(FETCH, brings(batch(0)[:-5]))]
        async with (
            ScriptedBroker(*script, topics={"orders": 1}, versions=OLD) as peer,
            reading(peer, P0) as reader,
        ):
            with pytest.raises(BatchTooLargeError, match="max_partition_fetch_bytes"):
                await reader.read(1)

    asyncio.run(scenario())


@pytest.mark.spec("S2-18", "S2-13")
def test_a_connection_lost_in_the_middle_of_a_fetch_loses_nothing() -> None:
    async def scenario() -> None:
        script = [
            On(LIST, stands_at(0)),
            On(FETCH, close=True),
            On(
                FETCH,
                brings(batch(0, 1)),
                check=lambda request: request.topics[0].partitions[0].fetch_offset == 0,
            ),
            On(FETCH),
        ]
        async with (
            ScriptedBroker(*script, topics={"orders": 1}, versions=MIDDLE) as peer,
            reading(peer, P0) as reader,
        ):
            assert await reader.read(2) == [(0, b"v0"), (1, b"v1")]
            await _until_taken(peer)

    asyncio.run(scenario())


@pytest.mark.spec("S2-18")
def test_a_damaged_stream_costs_a_connection_and_nothing_else() -> None:
    async def scenario() -> None:
        script = [
            On(LIST, stands_at(0)),
            On(FETCH, raw=b"\0\0\0\x09" + b"\0\0\0\x05" + b"\xff" * 5),
            On(FETCH, brings(batch(0))),
            On(FETCH),
        ]
        async with (
            ScriptedBroker(*script, topics={"orders": 1}, versions=MIDDLE) as peer,
            reading(peer, P0) as reader,
        ):
            assert await reader.read(1) == [(0, b"v0")]
            await _until_taken(peer)

    asyncio.run(scenario())


async def _until_taken(peer: ScriptedBroker) -> None:
    """The read-ahead may still be on its way."""
    async with asyncio.timeout(5):
        while peer.script:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
