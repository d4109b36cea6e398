"""Seeks, pauses, revocations, leader moves, errors in any order: delivered is the log, from the position on."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from kclient.errors import PortClosedError
from kclient.records.writer import NewRecord, build_batch, build_marker
from kclient.types import LeaderAndEpoch, OffsetAndMetadata, TopicPartition
from tests.fetch.fetch_support import P0, P1, P2, DeliveryPipeline
from tests.fetch.fetcher_support import FETCH, Logs, fetching
from tests.positions.fake_cluster import FakeCluster, run

PARTITIONS = (P0, P1, P2)
END = 400


def log_with_holes(rng: random.Random) -> tuple[list[tuple[int, int, bytes]], list[int]]:
    """Batches up to END – full, compacted, empty, markers – and the offsets of their records."""
    batches: list[tuple[int, int, bytes]] = []
    visible: list[int] = []
    base = 0
    while base < END:
        size = rng.randint(1, 12)
        kept = sorted(rng.sample(range(base, base + size), rng.randint(0, size)))
        last = base + size - 1
        if rng.random() < 0.15:
            last = base
            data = build_marker(commit=True, offset=base, producer_id=1, producer_epoch=0)
        elif kept:
            visible += kept
            rows = [NewRecord(None, b"", 0, offset=offset) for offset in kept]
            data = build_batch(rows, base_offset=base, last_offset=last)
        else:
            data = build_batch([], base_offset=base, last_offset=last)
        batches.append((base, last + 1, data))
        base = last + 1
    return batches, visible


class Oracle:
    """Per partition the offset from which on records are due; None while it is not assigned."""

    def __init__(self, visible: dict[TopicPartition, list[int]]) -> None:
        self.visible = visible
        self.due: dict[TopicPartition, int | None] = dict.fromkeys(PARTITIONS, 0)

    def hand_out(self, tp: TopicPartition, offset: int) -> None:
        due = self.due[tp]
        assert due is not None, f"{tp} is not assigned"
        expected = next((o for o in self.visible[tp] if o >= due), None)
        assert offset == expected
        self.due[tp] = offset + 1


def step(
    rng: random.Random, cluster: FakeCluster, pipeline: DeliveryPipeline, logs: Logs, oracle: Oracle
) -> None:
    """One thing that a user, a rebalance or a broker may do at any moment."""
    tp = rng.choice(PARTITIONS)
    action = rng.choice(
        ["poll"] * 8 + ["seek", "pause", "resume", "revoke", "assign", "move", "error", "heal", "cut"]
    )
    positions, leader = pipeline.positions, cluster.metadata.leader(tp)
    if action == "poll":
        paused = positions.paused()
        for record in pipeline.poll(rng.randint(1, 30)) or ():
            handed = TopicPartition(record.topic, record.partition)
            assert handed not in paused
            oracle.hand_out(handed, record.offset)
    elif action == "assign" and tp not in positions:
        positions.assign([*positions.assigned(), tp])
        oracle.due[tp] = rng.randint(0, END)
        positions.seek(tp, OffsetAndMetadata(oracle.due[tp] or 0), leader)
    elif tp not in positions:
        return
    elif action == "seek":
        oracle.due[tp] = rng.randint(0, END)
        positions.seek(tp, OffsetAndMetadata(oracle.due[tp] or 0), leader)
    elif action == "pause":
        positions.pause(tp)
    elif action == "resume":
        positions.resume(tp)
    elif action == "revoke":
        positions.assign([other for other in positions.assigned() if other != tp])
        oracle.due[tp] = None
    elif action == "move":
        moved = LeaderAndEpoch(rng.randint(1, 3), (leader.epoch or 0) + 1)
        leaders = {tuple(p): cluster.metadata.leader(p) for p in PARTITIONS} | {tuple(tp): moved}
        cluster.set_leaders({key: (value.node_id or 1, value.epoch or 0) for key, value in leaders.items()})  # type: ignore[misc]
        positions.follow_leader(tp, moved, can_validate=rng.random() < 0.5)
        positions.complete_validation(tp)
    elif action == "error":
        logs.fields[tp] = {"error_code": rng.choice([6, 9, 56, 74, 75, 78, 3, 100, -1])}
    elif action == "heal":
        logs.fields.clear()
        cluster.answer(FETCH, logs)
    elif action == "cut":
        cluster.answer(FETCH, lambda node, request: PortClosedError("cut"))


async def scenario(seed: int) -> None:
    rng = random.Random(seed)
    cluster = FakeCluster({tuple(tp): (1 + tp.partition, 5) for tp in PARTITIONS})  # type: ignore[misc]
    logs, visible = Logs(cluster, batches_a_fetch=3), {}
    for tp in PARTITIONS:
        logs.batches[tp], visible[tp] = log_with_holes(rng)
    oracle = Oracle(visible)
    async with fetching(cluster, *PARTITIONS, buffer_memory_bytes=rng.choice([500, 2_000, 10**6])) as (
        pipeline,
        fetcher,
    ):
        for _ in range(150):
            await asyncio.sleep(rng.choice([0, 0, 0.001, 0.1]))
            step(rng, cluster, pipeline, logs, oracle)
        logs.fields.clear()
        cluster.answer(FETCH, logs)
        assert fetcher.take_error() is None
        for tp in pipeline.positions.assigned():
            pipeline.positions.resume(tp)
        ends = {tp: logs.batches[tp][-1][1] for tp in pipeline.positions.assigned()}
        while any((pipeline.offset(tp) or 0) < end for tp, end in ends.items()):
            await asyncio.sleep(0.01)
            for record in pipeline.poll() or ():
                oracle.hand_out(TopicPartition(record.topic, record.partition), record.offset)
        for tp in ends:
            assert not [o for o in visible[tp] if o >= (oracle.due[tp] or 0)]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.spec(
    "S0-13", "S2-25", "S2-37", "S2-40", "S2-49", "B.10.9", "B.10.10", "D-31", "D-50", "D-60", "A-13"
)
def test_the_returned_records_are_the_log_from_the_position_on(seed: int) -> None:
    run(scenario(seed))


def test_the_same_seed_sends_the_same_requests() -> None:
    async def questions() -> list[Any]:
        cluster = FakeCluster({tuple(tp): (1 + tp.partition, 5) for tp in PARTITIONS})  # type: ignore[misc]
        logs = Logs(cluster)
        for tp in PARTITIONS:
            logs.batches[tp], _ = log_with_holes(random.Random(7))
        async with fetching(cluster, *PARTITIONS) as (pipeline, _):
            for _ in range(50):
                await asyncio.sleep(0.01)
                pipeline.poll(20)
        return [(asked.node_id, str(asked.message)) for asked in cluster.asked]

    assert run(questions()) == run(questions())
