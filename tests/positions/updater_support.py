"""The position updater over a fake cluster, and the responses of its brokers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from kclient.generated.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from kclient.positions.lookup_context import OffsetReset
from kclient.positions.state import FetchState
from kclient.positions.table import Positions
from kclient.positions.updater import PositionUpdater
from kclient.runtime import Runtime
from kclient.types import LeaderAndEpoch, OffsetAndMetadata, TopicPartition
from tests.positions.fake_cluster import FakeCluster, config, settle
from tests.positions.test_list_offsets import answer

INITIALIZING, FETCHING, AWAIT_RESET, AWAIT_VALIDATION = FetchState
P0, P1, P2 = (TopicPartition("orders", n) for n in range(3))
ON_1 = LeaderAndEpoch(1, 5)
NOW_MS = 1_700_000_000_000
LIST, EPOCH = "ListOffsetsRequest", "OffsetForLeaderEpochRequest"

Committed = dict[TopicPartition, OffsetAndMetadata | None]


@asynccontextmanager
async def updater(
    cluster: FakeCluster,
    *partitions: TopicPartition,
    committed: Any = None,
    jumps: list[OffsetReset] | None = None,
    **keys: Any,
) -> AsyncIterator[tuple[Positions, PositionUpdater]]:
    positions = Positions()
    positions.assign(partitions)
    runtime = Runtime(rng=random.Random(1), wall_clock=lambda: NOW_MS / 1000)
    resets = [] if jumps is None else jumps
    one = PositionUpdater(cluster, positions, config(**keys), runtime, committed, resets.append)  # type: ignore[arg-type]
    task = asyncio.create_task(one.run())
    try:
        await settle()
        yield positions, one
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


def all_found(positions: Positions) -> bool:
    """Whether every assigned partition has a valid position."""
    return all(positions.position(tp) is not None for tp in positions.assigned())


def led_by_1(count: int = 3) -> FakeCluster:
    return FakeCluster({("orders", n): (1, 5) for n in range(count)})


def lists(offset: int, code: int = 0) -> Callable[[int, Any], Any]:
    """Every asked partition stands at this offset."""
    return lambda node, request: answer(
        *(
            (TopicPartition(t.name, p.partition_index), code, offset)
            for t in request.topics
            for p in t.partitions
        )
    )


def epoch_ends(epoch: int, end_offset: int, code: int = 0) -> Callable[[int, Any], Any]:
    def handler(node: int, request: Any) -> OffsetForLeaderEpochResponse:
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[
                        EpochEndOffset(
                            partition=p.partition, error_code=code, leader_epoch=epoch, end_offset=end_offset
                        )
                        for p in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return handler


def timestamps(cluster: FakeCluster) -> list[int]:
    return [p.timestamp for a in cluster.of(LIST) for t in a.message.topics for p in t.partitions]
