"""A fetcher at work over a fake cluster whose brokers hold logs, under virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kclient.fetch.fetcher import Fetcher
from kclient.generated.fetch_response import FetchResponse
from kclient.protocol.primitives import ZERO_UUID
from kclient.runtime import Runtime
from kclient.types import LeaderAndEpoch, OffsetAndMetadata, TopicPartition
from tests.fetch.fetch_support import DeliveryPipeline, answer, data
from tests.positions.fake_cluster import FakeCluster, settle

FETCH = "FetchRequest"


class Logs:
    """A broker's response to Fetch: batches from the asked offset on, an error, or nothing after fetch_max_wait.

    `batches[tp]` are (base offset, next offset, bytes); one fetch brings at most `batches_a_fetch` of a partition.
    """

    def __init__(self, cluster: FakeCluster, batches_a_fetch: int = 1) -> None:
        self.batches: dict[TopicPartition, list[tuple[int, int, bytes]]] = {}
        self.fields: dict[TopicPartition, dict[str, Any]] = {}
        self.answer_fields: dict[str, Any] = {}
        self.batches_a_fetch = batches_a_fetch
        self.names = {topic_id: name for name, topic_id in cluster.topic_ids.items()}
        cluster.answer(FETCH, self)

    def append(self, tp: TopicPartition, base_offset: int, next_offset: int, records: bytes) -> None:
        self.batches.setdefault(tp, []).append((base_offset, next_offset, records))

    async def __call__(self, node_id: int, request: Any) -> FetchResponse:
        partitions, room = [], request.max_bytes
        for topic in request.topics:
            by_id = topic.topic_id != ZERO_UUID
            name = self.names[topic.topic_id] if by_id else topic.topic
            for asked in topic.partitions:
                tp = TopicPartition(name, asked.partition)
                fields = dict(self.fields.get(tp, {}))
                found = [b for _, end, b in self.batches.get(tp, ()) if end > asked.fetch_offset]
                records = b"".join(found[: self.batches_a_fetch]) if room > 0 else b""
                room -= len(records)
                partitions.append(data(tp, None if fields.get("error_code") else records, **fields))
        if not any(one.records or one.error_code for _, one in partitions):
            await asyncio.sleep(request.max_wait_ms / 1000)
        return answer(*partitions, **self.answer_fields)


@asynccontextmanager
async def fetching(
    cluster: FakeCluster, *partitions: TopicPartition, **keys: Any
) -> AsyncIterator[tuple[DeliveryPipeline, Fetcher]]:
    """All partitions stand at 0, led as metadata says."""
    pipeline = DeliveryPipeline(**keys)
    pipeline.positions.assign(partitions)
    for tp in partitions:
        pipeline.positions.seek(tp, OffsetAndMetadata(0), cluster.metadata.leader(tp))
    runtime = Runtime(rng=random.Random(1))
    fetcher = Fetcher(cluster, pipeline.positions, pipeline.buffer, pipeline.config, runtime)  # type: ignore[arg-type]
    task = asyncio.create_task(fetcher.run())
    try:
        await settle()
        yield pipeline, fetcher
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert not [other for other in asyncio.all_tasks() if "fetch" in other.get_name()]


def move_leader(
    cluster: FakeCluster, pipeline: DeliveryPipeline, tp: TopicPartition, leader: LeaderAndEpoch
) -> None:
    """What the position updater does after a metadata update, where nothing has to be validated."""
    cluster.set_leaders({tuple(tp): (leader.node_id or 0, leader.epoch or 0)})
    pipeline.positions.follow_leader(tp, leader, can_validate=False)


def offsets_asked(cluster: FakeCluster) -> list[list[tuple[int, int]]]:
    """Per request: (partition, offset) in the order of the request."""
    return [
        [(p.partition, p.fetch_offset) for t in asked.message.topics for p in t.partitions]
        for asked in cluster.of(FETCH)
    ]
