"""What the tests of commits share: responses to OffsetCommit and OffsetFetch, and commits that a scripted peer gets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs

from kclient.generated.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kclient.generated.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kclient.group.coordinator import Coordinator
from kclient.group.membership import Identity
from kclient.group.offset_commit import OffsetCommitter
from kclient.group.offset_fetch import CommittedOffsets
from kclient.types import TopicPartition
from tests.default_responses import topic_id
from tests.group.scripted_group import GROUP, coordinating
from tests.scripted_broker import ScriptedBroker

F0, F1, P0 = TopicPartition("flights", 0), TopicPartition("flights", 1), TopicPartition("planes", 0)
Codes = dict[TopicPartition, int]


def stored(codes: Codes) -> OffsetCommitResponse:
    """A response to OffsetCommit in any version: names for the old ones, ids for the new ones."""
    topics: dict[str, OffsetCommitResponseTopic] = {}
    for tp, code in codes.items():
        topic = topics.setdefault(
            tp.topic, OffsetCommitResponseTopic(name=tp.topic, topic_id=topic_id(tp.topic))
        )
        topic.partitions.append(OffsetCommitResponsePartition(partition_index=tp.partition, error_code=code))
    return OffsetCommitResponse(topics=list(topics.values()))


def read(offsets: dict[TopicPartition, tuple[int, int]], group_code: int = 0) -> OffsetFetchResponse:
    """A response to OffsetFetch, version 8 or newer: partition → (offset, code)."""
    topics = [
        OffsetFetchResponseTopics(
            name=tp.topic,
            topic_id=topic_id(tp.topic),
            partitions=[
                OffsetFetchResponsePartitions(
                    partition_index=tp.partition, committed_offset=offset, metadata="", error_code=code
                )
            ],
        )
        for tp, (offset, code) in offsets.items()
    ]
    group = OffsetFetchResponseGroup(group_id=GROUP, topics=topics, error_code=group_code)
    return OffsetFetchResponse(groups=[group])


@attrs.frozen
class Asking:
    """What asks one coordinator: `commits` stores, `committed` reads."""

    coordinator: Coordinator
    commits: OffsetCommitter
    committed: CommittedOffsets


@asynccontextmanager
async def committing(
    peer: ScriptedBroker,
    identity: Callable[[], Identity] = Identity,
    ids: Mapping[str, bytes] | None = None,
    reader: Callable[[], Identity] = Identity,
    is_assigned: Callable[[TopicPartition], bool] = lambda partition: False,
    **keys: Any,
) -> AsyncIterator[Asking]:
    """`ids` are of the topics that positions belong to, where that is known."""
    async with coordinating(peer, **keys) as (cluster, coordinator, settings, runtime):
        cluster.set_topics(sorted(peer.topics))
        await cluster.update_now(2.0)
        known = ids or {}
        commits = OffsetCommitter(
            coordinator,
            settings,
            runtime,
            identity,
            topic_id_of=lambda partition, offset: known.get(partition.topic),
            is_assigned=is_assigned,
        )
        yield Asking(coordinator, commits, CommittedOffsets(coordinator, settings, runtime, reader))


def play(peer: ScriptedBroker, scene: Callable[[Asking], Awaitable[None]], **keys: Any) -> ScriptedBroker:
    async def run() -> None:
        async with peer, committing(peer, **keys) as asking, asyncio.timeout(10):
            await scene(asking)

    asyncio.run(run())
    return peer


def lookups(peer: ScriptedBroker) -> int:
    return len(peer.of("FindCoordinatorRequest"))
