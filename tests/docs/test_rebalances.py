"""docs/rebalances.md: its block runs, and its table lists the calls of a listener."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kclient import AsyncConsumer, RebalanceListener, TopicPartition
from kclient.embedded import EmbeddedCluster
from tests.docs.blocks import python_blocks
from tests.scenarios.support import consumer_of, play

PAGE = (Path(__file__).parents[2] / "docs" / "rebalances.md").read_text()
FAST = {"heartbeat_interval_ms": 50, "session_timeout_ms": 6_000}


class RecordingListener(RebalanceListener):
    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.calls.append(("assigned", len(partitions)))

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.calls.append(("revoked", len(partitions)))

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.calls.append(("lost", len(partitions)))


def test_the_block_runs() -> None:
    (block,) = python_blocks(PAGE)
    exec(compile(block, "rebalances.md", "exec"), {"__name__": "rebalances"})


async def polled(done: Any, *consumers: AsyncConsumer) -> None:
    while not done():
        for consumer in consumers:
            await consumer.poll(0.02)


@pytest.mark.spec("S3-32", "S3-44", "S3-49", "B.17.3", "B.13.8")
@pytest.mark.parametrize(
    ("settings", "second_member"),
    [
        ({"partition_assignment_strategy": "range", **FAST}, [("revoked", 4), ("assigned", 2)]),
        (
            {"partition_assignment_strategy": "cooperative-sticky", **FAST},
            [("revoked", 2), ("assigned", 0), ("assigned", 0)],
        ),
        ({"group_protocol": "consumer"}, [("revoked", 2), ("assigned", 0)]),
    ],
    ids=["eager", "cooperative", "consumer"],
)
def test_the_table_is_what_happens(settings: dict[str, Any], second_member: list[tuple[str, int]]) -> None:
    async def scenario() -> None:
        options = {"group.consumer.heartbeat.interval.ms": 100}
        async with EmbeddedCluster(1, topics={"t": 4}, config=options) as cluster:
            listener = RecordingListener()
            first = consumer_of(cluster, group_id="g", **settings)
            second = consumer_of(cluster, "t", group_id="g", **settings)
            await first.subscribe(["t"], listener=listener)
            await polled(lambda: len(first.assignment()) == 4, first)
            assert listener.calls == [("assigned", 4)]
            listener.calls.clear()
            await polled(lambda: len(second.assignment()) == 2, first, second)
            await polled(lambda: len(listener.calls) >= len(second_member), first, second)
            assert listener.calls == second_member
            await first.close()
            assert listener.calls == [*second_member, ("revoked", 2)]
            await second.close()

    play(scenario)
