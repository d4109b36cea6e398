"""What costs nothing, costs nothing: polls over idle partitions, plans that cannot have changed."""

from __future__ import annotations

import statistics
import time

import pytest

from kclient.types import TopicPartition
from tests.fetch.fetch_support import P0, Shop, batch
from tests.fetch.fetcher_support import Logs, fetching, offsets_asked
from tests.positions.fake_cluster import FakeCluster, run, settle


def idle_poll_seconds(partitions: int) -> float:
    shop = Shop(*(TopicPartition("idle", n) for n in range(partitions)))
    times = []
    for _ in range(200):
        before = time.perf_counter()
        assert shop.poll(500) is None
        times.append(time.perf_counter() - before)
    return statistics.median(times)


@pytest.mark.spec("S2-20")
def test_a_poll_over_2000_idle_partitions_costs_at_most_twice_one_over_20() -> None:
    ratios = [idle_poll_seconds(2000) / idle_poll_seconds(20) for _ in range(5)]
    assert min(ratios) <= 2


def test_2000_partitions_without_data_are_not_looked_at_when_one_has_some() -> None:
    shop = Shop(P0, *(TopicPartition("idle", n) for n in range(2000)))
    shop.arrive(P0, batch(0))
    looked_at = []
    find = shop.positions.find
    shop.positions.find = lambda tp, era=None: looked_at.append(tp) or find(tp, era)  # type: ignore[method-assign]
    assert shop.offsets() == [(0, 0)]
    assert set(looked_at) == {P0}


@pytest.mark.spec("S2-13")
def test_while_every_node_is_busy_nothing_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        cluster = FakeCluster({("orders", 0): (1, 5)})
        Logs(cluster)
        async with fetching(cluster, P0) as (shop, _):
            plans = len(planned)
            for _ in range(5):
                shop.buffer.room.notify()
                await settle()
            assert len(planned) == plans
            shop.positions.changed.notify()
            await settle()
            assert len(planned) == plans + 1
            assert len(offsets_asked(cluster)) == 1

    import kclient.fetch.fetcher as module

    planned: list[int] = []
    real = module.make_plan
    monkeypatch.setattr(module, "make_plan", lambda *args: planned.append(1) or real(*args))
    run(scenario())
