"""What thousands of assigned partitions cost, counted in function calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from kclient.types import OffsetAndMetadata, TopicPartition
from tests.call_counter import CallCounter
from tests.positions.fake_cluster import FakeCluster, run, settle
from tests.positions.updater_support import EPOCH, LIST, Committed, all_found, epoch_ends, lists, updater


def led_by_3(count: int, epoch: int = 5, shift: int = 0) -> dict[tuple[str, int], tuple[int, int]]:
    return {("orders", n): (1 + (n + shift) % 3, epoch) for n in range(count)}


def start(count: int, offset: OffsetAndMetadata | None) -> int:
    """The calls from the assignment until every partition has its position."""

    async def committed(partitions: Sequence[TopicPartition]) -> Committed:
        return dict.fromkeys(partitions, offset)

    async def scenario() -> int:
        cluster = FakeCluster(led_by_3(count))
        cluster.answer(LIST, lists(7))
        cluster.answer(EPOCH, epoch_ends(3, 1000))
        async with updater(cluster, committed=committed) as (positions, _):
            with CallCounter() as calls:
                positions.assign([TopicPartition("orders", n) for n in range(count)])
                await settle()
            assert all_found(positions)
            assert len(cluster.asked) in (0, 3)
            return calls.count

    return run(scenario())


@pytest.mark.parametrize(
    "offset", [None, OffsetAndMetadata(5), OffsetAndMetadata(5, 3)], ids=["reset", "committed", "validated"]
)
@pytest.mark.spec("S0-45", "B.9")
def test_the_start_of_many_partitions_is_linear_and_three_requests(offset: OffsetAndMetadata | None) -> None:
    few, many = start(300, offset), start(3_000, offset)
    assert many < 10.5 * few


def doing(work: Callable[[FakeCluster], None], count: int) -> int:
    async def scenario() -> int:
        cluster = FakeCluster(led_by_3(count))
        async with updater(cluster) as (positions, one):
            positions.assign([TopicPartition("orders", n) for n in range(count)])
            for tp in positions.assigned():
                positions.seek(tp, OffsetAndMetadata(5), cluster.metadata.leader(tp))
            await settle()
            with CallCounter() as calls:
                for _ in range(50):
                    work(cluster)
                    assert one.take_error() is None
                    await asyncio.sleep(0.01)
            assert cluster.asked == []
            return calls.count

    return run(scenario())


@pytest.mark.spec("S0-05", "B.7")
def test_polls_cost_the_same_with_three_partitions_and_with_thousands() -> None:
    assert doing(lambda cluster: None, 3_000) == doing(lambda cluster: None, 3)
