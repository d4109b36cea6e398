"""What costs nothing, costs nothing: polls over idle partitions, plans that cannot have changed."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable

import pytest

from kclient.errors import ConnectError
from kclient.fetch import plan
from kclient.fetch.session import FetchSession
from kclient.positions.state import EARLIEST
from kclient.positions.table import Positions
from kclient.types import LeaderAndEpoch, OffsetAndMetadata, TopicPartition
from tests.fetch.fetch_support import P0, P1, DeliveryPipeline, batch
from tests.fetch.fetcher_support import Logs, fetching, offsets_asked
from tests.positions.fake_cluster import FakeCluster, run, settle


def idle_poll_seconds(partitions: int) -> float:
    pipeline = DeliveryPipeline(*(TopicPartition("idle", n) for n in range(partitions)))
    times = []
    for _ in range(200):
        before = time.perf_counter()
        assert pipeline.poll(500) is None
        times.append(time.perf_counter() - before)
    return statistics.median(times)


@pytest.mark.exclusive
@pytest.mark.spec("S2-20")
def test_a_poll_over_2000_idle_partitions_costs_at_most_twice_one_over_20() -> None:
    ratios = [idle_poll_seconds(2000) / idle_poll_seconds(20) for _ in range(5)]
    assert min(ratios) <= 2


def test_2000_partitions_without_data_are_not_looked_at_when_one_has_some() -> None:
    pipeline = DeliveryPipeline(P0, *(TopicPartition("idle", n) for n in range(2000)))
    pipeline.arrive(P0, batch(0))
    looked_at = []
    find = pipeline.positions.find
    pipeline.positions.find = lambda tp, position_version=None: (
        looked_at.append(tp) or find(tp, position_version)
    )  # type: ignore[method-assign]
    assert pipeline.offsets() == [(0, 0)]
    assert set(looked_at) == {P0}


def test_one_busy_partition_of_many_is_the_only_one_that_a_fetch_looks_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And the session hears of it alone: what a Fetch costs does not grow with the assignment."""
    partitions = [P0, *(TopicPartition("orders", n) for n in range(1, 300))]

    async def scenario() -> None:
        cluster = FakeCluster({tuple(tp): (1, 5) for tp in partitions})
        logs = Logs(cluster)
        async with fetching(cluster, *partitions) as (pipeline, _):
            await asyncio.sleep(1)
            looked_at.clear()
            changes.clear()
            for offset in range(5):
                logs.append(P0, offset, offset + 1, batch(offset))
                await asyncio.sleep(1)
                assert pipeline.offsets() == [(0, offset)]
            await asyncio.sleep(1)
            assert set(looked_at) == {P0}
            assert {tp for news in changes for tp in news} == {P0}
            assert [asked for asked in offsets_asked(cluster)[-1] if asked[0] == 0] == [(0, 5)]

    looked_at: list[TopicPartition] = []
    changes: list[list[TopicPartition]] = []
    place, next_request = plan._plan_partition, FetchSession.next_request
    monkeypatch.setattr(plan, "_plan_partition", lambda *args: looked_at.append(args[1]) or place(*args))
    monkeypatch.setattr(
        FetchSession,
        "next_request",
        lambda self, wanted, news=None, **keys: (
            changes.append(list(wanted if news is None else news)) or next_request(self, wanted, news, **keys)
        ),
    )
    run(scenario())


def test_a_partition_without_a_leader_does_not_have_all_others_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is looked at again with newer metadata, which the fetcher keeps asking for."""
    partitions = [P0, *(TopicPartition("orders", n) for n in range(1, 100))]
    leaderless = partitions[-1]

    async def scenario() -> None:
        cluster = FakeCluster({tuple(tp): (1, 5) for tp in partitions})
        logs = Logs(cluster)
        async with fetching(cluster, *partitions) as (pipeline, _):
            pipeline.positions.follow_leader(leaderless, LeaderAndEpoch(9, 6), can_validate=False)
            await asyncio.sleep(1)
            asked = len(cluster.updates)
            looked_at.clear()
            for offset in range(5):
                logs.append(P0, offset, offset + 1, batch(offset))
                await asyncio.sleep(1)
                assert pipeline.offsets() == [(0, offset)]
            await asyncio.sleep(1)
            assert set(looked_at) == {P0}
            assert len(cluster.updates) > asked
            cluster.set_leaders({tuple(tp): (1, 7) for tp in partitions})
            pipeline.positions.follow_leader(leaderless, LeaderAndEpoch(1, 7), can_validate=False)
            await asyncio.sleep(1)
            assert any((leaderless.partition, 0) in asked for asked in offsets_asked(cluster)[-3:])

    looked_at: list[TopicPartition] = []
    place = plan._plan_partition
    monkeypatch.setattr(plan, "_plan_partition", lambda *args: looked_at.append(args[1]) or place(*args))
    run(scenario())


MOVES: dict[str, Callable[[Positions, TopicPartition], object]] = {
    "seek": lambda positions, tp: positions.seek(tp, OffsetAndMetadata(7), LeaderAndEpoch(1, 5)),
    "pause": lambda positions, tp: positions.pause(tp),
    "resume": lambda positions, tp: positions.resume(tp),
    "reset": lambda positions, tp: positions.request_offset_reset(tp, EARLIEST),
}


@pytest.mark.parametrize("callback_done", [True, False], ids=["told", "while the listener is told"])
@pytest.mark.parametrize("move", MOVES)
def test_a_client_that_moves_partitions_one_by_one_has_each_looked_at_once(
    move: str, callback_done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a thread each of them is a call of its own, and the fetcher runs between any two."""
    partitions = [TopicPartition("orders", n) for n in range(100)]

    async def scenario() -> None:
        cluster = FakeCluster({tuple(tp): (1, 5) for tp in partitions})
        Logs(cluster)
        async with fetching(cluster, *partitions) as (pipeline, _):
            if not callback_done:
                pipeline.positions.mark_pending_callback(partitions)
                pipeline.positions.changed.notify()
                await settle()
            looked_at.clear()
            for tp in partitions:
                MOVES[move](pipeline.positions, tp)
                await settle()
            assert looked_at == partitions

    looked_at: list[TopicPartition] = []
    place = plan._plan_partition
    monkeypatch.setattr(plan, "_plan_partition", lambda *args: looked_at.append(args[1]) or place(*args))
    run(scenario())


def test_one_partition_that_errs_does_not_have_all_others_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    partitions = [TopicPartition("orders", n) for n in range(100)]

    async def scenario() -> None:
        cluster = FakeCluster({tuple(tp): (1, 5) for tp in partitions})
        logs = Logs(cluster)
        logs.fields[partitions[0]] = {"error_code": 29}
        async with fetching(cluster, *partitions) as (pipeline, _):
            await asyncio.sleep(0.05)
            looked_at.clear()
            for tp in partitions[1:]:
                pipeline.positions.pause(tp)
                await settle()
            assert looked_at == partitions[1:]

    looked_at: list[TopicPartition] = []
    place = plan._plan_partition
    monkeypatch.setattr(plan, "_plan_partition", lambda *args: looked_at.append(args[1]) or place(*args))
    run(scenario())


def test_session_changes_lost_with_a_connection_are_in_the_next_request() -> None:
    async def scenario() -> None:
        cluster = FakeCluster({("orders", 0): (1, 5), ("orders", 1): (1, 5)})
        logs = Logs(cluster)
        logs.answer_fields = {"session_id": 7}
        logs.append(P0, 0, 1, batch(0))
        connected = 0

        async def connect(node_id: int, purpose: str = "") -> None:
            nonlocal connected
            connected += 1
            if connected == 2:  # for the request that goes on behind the batch
                raise ConnectError("the broker is away for a moment")

        cluster.connect = connect  # type: ignore[method-assign]
        async with fetching(cluster, P0, P1) as (_, fetcher):
            await asyncio.sleep(2)
            assert connected > 2
            assert {tp: one.offset for tp, one in fetcher._nodes[1].session.partitions.items()} == {
                P0: 1,
                P1: 0,
            }

    run(scenario())


@pytest.mark.spec("S2-13")
def test_while_every_node_is_busy_nothing_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        cluster = FakeCluster({("orders", 0): (1, 5)})
        Logs(cluster)
        async with fetching(cluster, P0) as (pipeline, _):
            plans = len(planned)
            for _ in range(5):
                pipeline.buffer.space_freed.notify()
                await settle()
            assert len(planned) == plans
            cluster.metadata.changed.notify()
            await settle()
            assert len(planned) == plans + 1
            assert len(offsets_asked(cluster)) == 1

    import kclient.fetch.fetcher as module

    planned: list[int] = []
    for name in ("build_plan", "update_plan"):
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, real=real: planned.append(1) or real(*args))
    run(scenario())
