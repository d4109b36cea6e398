"""The error table of Fetch, row by row, and the numbers that a response leaves behind."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest

from kclient.errors import PortClosedError, TopicAuthorizationError
from kclient.generated.fetch_response import FetchResponse, LeaderIdAndEpoch, NodeEndpoint
from kclient.types import LeaderAndEpoch, OffsetAndMetadata
from tests.fetch.fetch_support import ON_1, P0, P1, batch
from tests.fetch.fetcher_support import FETCH, Logs, fetching, offsets_asked
from tests.positions.fake_cluster import FakeCluster, run, settle
from tests.waiting import until


def one_leader() -> FakeCluster:
    return FakeCluster({("orders", 0): (1, 5), ("orders", 1): (1, 5)})


@pytest.mark.parametrize("code", [6, 9, 56, 74, 78, 3, 100, 103])
@pytest.mark.spec("B.15.12", "S2-29", "D-61")
def test_stale_metadata_errors_update_metadata_and_are_retried_without_a_warning(code: int) -> None:
    async def scenario() -> None:
        cluster = one_leader()
        logs = Logs(cluster)
        logs.append(P0, 0, 1, batch(0))
        logs.fields[P0] = {"error_code": code}
        async with fetching(cluster, P0) as (pipeline, fetcher):
            pipeline.positions.state(P0).preferred_read_replica = 1
            await asyncio.sleep(0.5)
            assert cluster.updates
            assert pipeline.positions.state(P0).preferred_read_replica is None
            assert pipeline.poll() is None
            assert fetcher.take_error() is None
            asked = len(cluster.of(FETCH))
            assert 2 <= asked <= 5
            del logs.fields[P0]
            await until(pipeline.offsets)

    run(scenario())


@pytest.mark.spec("S2-04", "B.15.12", "I-26")
def test_a_partition_that_errs_is_asked_again_with_growing_pauses_and_the_others_at_once() -> None:
    """From retry_backoff_ms on, twice as long each time, a fifth more or less; a response without error ends that."""

    async def scenario() -> None:
        cluster = one_leader()
        logs = Logs(cluster)
        logs.append(P0, 0, 1, batch(0))
        logs.fields[P0] = {"error_code": 75}
        times: list[float] = []
        others = 0

        async def timed(node: int, request: Any) -> object:
            nonlocal others
            asked = [p.partition for t in request.topics for p in t.partitions]
            others += asked == [1]
            if 0 in asked:
                times.append(asyncio.get_running_loop().time())
            return await logs(node, request)

        cluster.answer(FETCH, timed)
        keys: dict[str, Any] = {
            "retry_backoff_ms": 100,
            "retry_backoff_max_ms": 1_000,
            "fetch_max_wait_ms": 10,
        }
        async with fetching(cluster, P0, P1, **keys) as (pipeline, _):
            await until(lambda: len(times) == 8)
            for step, (earlier, later) in enumerate(pairwise(times)):
                middle = min(0.1 * 2**step, 1.0)
                assert 0.8 * middle <= later - earlier <= min(1.2 * middle, 1.0) + 0.05, step
            assert others > 100
            del logs.fields[P0]
            await until(pipeline.offsets)
            logs.fields[P0] = {"error_code": 75}
            times.clear()
            await until(lambda: len(times) == 3)
            assert 0.08 <= times[2] - times[1] <= 0.45

    run(scenario())


@pytest.mark.spec("S2-04")
def test_a_node_that_does_not_answer_is_asked_again_with_growing_pauses() -> None:
    """A response ends that, and the next failure is followed by a short pause."""

    async def scenario() -> None:
        cluster = one_leader()
        logs = Logs(cluster)
        logs.append(P0, 0, 1, batch(0))
        times: list[float] = []

        async def gone(node: int, request: Any) -> object:
            times.append(asyncio.get_running_loop().time())
            await asyncio.sleep(0.001)
            return PortClosedError("gone")

        keys: dict[str, Any] = {"retry_backoff_ms": 40, "retry_backoff_max_ms": 400, "fetch_max_wait_ms": 10}
        cluster.answer(FETCH, gone)
        async with fetching(cluster, P0, **keys) as (pipeline, _):
            await until(lambda: len(times) == 7)
            for step, (earlier, later) in enumerate(pairwise(times)):
                middle = min(0.04 * 2**step, 0.4)
                assert 0.8 * middle <= later - earlier <= min(1.2 * middle, 0.4) + 0.05, step
            cluster.answer(FETCH, logs)
            await until(pipeline.offsets)
            times.clear()
            cluster.answer(FETCH, gone)
            await until(lambda: len(times) == 2)
            assert times[1] - times[0] < 0.15

    run(scenario())


@pytest.mark.parametrize(("code", "level"), [(75, logging.DEBUG), (-1, logging.WARNING)])
@pytest.mark.spec("B.15.12", "S2-34")
def test_errors_that_pass_are_asked_again_without_new_metadata(
    code: int, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        cluster = one_leader()
        logs = Logs(cluster)
        logs.fields[P0] = {"error_code": code}
        logs.append(P0, 0, 1, batch(0))
        async with fetching(cluster, P0) as (pipeline, _):
            assert cluster.updates == []
            del logs.fields[P0]
            await until(pipeline.offsets)

    caplog.set_level(logging.DEBUG)
    run(scenario())
    assert [record.levelno for record in caplog.records if "Fetch of orders-0" in record.getMessage()] == [
        level
    ]


@pytest.mark.spec("B.15.12", "S2-33", "U-07")
def test_a_refused_topic_is_reported_by_the_polls_until_it_is_granted() -> None:
    async def scenario() -> None:
        cluster = one_leader()
        logs = Logs(cluster)
        logs.append(P0, 0, 1, batch(0))
        logs.append(P1, 0, 1, batch(0))
        logs.fields[P0] = {"error_code": 29}
        async with fetching(cluster, P0, P1) as (pipeline, _):
            errors, seen = 0, []
            for _ in range(5):
                await asyncio.sleep(1.5)
                try:
                    seen += pipeline.offsets()
                except TopicAuthorizationError:
                    errors += 1
            assert errors >= 3
            assert seen == [(1, 0)]
            del logs.fields[P0]
            await asyncio.sleep(1.5)
            with suppress(TopicAuthorizationError):
                seen += pipeline.offsets()
            await asyncio.sleep(1.5)
            assert [*seen, *pipeline.offsets()] == [(1, 0), (0, 0)]

    run(scenario())


@pytest.mark.spec("B.15.12", "S2-31", "S2-32")
def test_out_of_range_from_the_leader_is_queued_and_not_requested_again_meanwhile() -> None:
    async def scenario() -> None:
        cluster = one_leader()
        logs = Logs(cluster)
        logs.fields[P0] = {"error_code": 1}
        async with fetching(cluster, P0) as (pipeline, _):
            await asyncio.sleep(3)
            assert len(cluster.of(FETCH)) == 1
            assert pipeline.poll() is None
            assert list(pipeline.positions.take_out_of_range()) == [P0]
            await asyncio.sleep(3)
            assert len(cluster.of(FETCH)) == 1

    run(scenario())


@pytest.mark.spec("B.10.2", "B.10.15", "S2-30")
def test_a_preferred_replica_is_asked_until_it_errs_and_then_the_leader_without_a_reset() -> None:
    async def scenario() -> None:
        cluster = one_leader()
        logs = Logs(cluster)
        logs.append(P0, 0, 1, batch(0))

        async def by_node(node: int, request: object) -> object:
            logs.fields[P0] = {2: {"error_code": 1}}.get(node, {})
            if node == 1 and len(cluster.of(FETCH)) == 1:
                logs.fields[P0] = {"preferred_read_replica": 2}
                logs.batches, kept = {}, logs.batches
                response = await logs(node, request)
                logs.batches = kept
                return response
            return await logs(node, request)

        cluster.answer(FETCH, by_node)
        async with fetching(cluster, P0) as (pipeline, _):
            await until(pipeline.offsets)
            assert [asked.node_id for asked in cluster.of(FETCH)[:3]] == [1, 2, 1]
            assert not pipeline.positions.take_out_of_range()
            assert pipeline.positions.state(P0).preferred_read_replica is None

    run(scenario())


@pytest.mark.spec("B.10.2", "B.10.15")
def test_a_preferred_replica_expires_and_is_not_used_while_offline() -> None:
    async def scenario() -> None:
        cluster = one_leader()
        Logs(cluster)
        async with fetching(cluster, P0, metadata_max_age_ms=2_000) as (pipeline, _):
            state = pipeline.positions.state(P0)
            state.preferred_read_replica, state.preferred_until = 2, asyncio.get_running_loop().time() + 2
            pipeline.buffer.mark_dirty(P0)
            await asyncio.sleep(3.1)
            nodes = [asked.node_id for asked in cluster.of(FETCH)]
            assert nodes == [1, 2, 2, 2, 1, 1, 1]
            assert cluster.updates == []
            state.preferred_read_replica, state.preferred_until = 9, asyncio.get_running_loop().time() + 99
            pipeline.buffer.mark_dirty(P0)
            await asyncio.sleep(1.1)
            assert {asked.node_id for asked in cluster.of(FETCH)[len(nodes) :]} == {1}
            assert state.preferred_read_replica is None
            assert len(cluster.updates) == 1

    run(scenario())


@pytest.mark.parametrize("code", [6, 74])
@pytest.mark.spec("B.10.6", "B.5.8", "B.15.12")
def test_a_named_leader_is_taken_over_without_asking(code: int) -> None:
    async def scenario() -> None:
        cluster = one_leader()
        logs = Logs(cluster)
        logs.fields[P0] = {
            "error_code": code,
            "current_leader": LeaderIdAndEpoch(leader_id=7, leader_epoch=6),
        }
        logs.answer_fields = {"node_endpoints": [NodeEndpoint(node_id=7, host="b7", port=9092)]}
        async with fetching(cluster, P0):
            await settle()
            assert cluster.metadata.leader(P0) == LeaderAndEpoch(7, 6)
            assert cluster.metadata.brokers[7].host == "b7"

    run(scenario())


@pytest.mark.spec("B.10.8", "S2-27")
def test_a_response_updates_the_log_offsets() -> None:
    async def scenario() -> None:
        cluster = one_leader()
        logs = Logs(cluster)
        logs.fields[P0] = {"high_watermark": 70, "last_stable_offset": 60, "log_start_offset": 5}
        async with fetching(cluster, P0) as (pipeline, _):
            state = pipeline.positions.state(P0)
            await until(lambda: state.high_watermark)
            assert (state.high_watermark, state.last_stable_offset, state.log_start_offset) == (70, 60, 5)
            logs.fields[P0] = {"high_watermark": -1, "last_stable_offset": -1, "log_start_offset": -1}
            await asyncio.sleep(2)
            assert (state.high_watermark, state.last_stable_offset, state.log_start_offset) == (70, 60, 5)

    run(scenario())


@pytest.mark.parametrize("code", [0, 1, 29])
@pytest.mark.spec("S2-24", "S2-25", "S2-52", "B.15.12")
def test_whatever_arrives_for_a_partition_that_moved_is_dropped(code: int) -> None:
    async def scenario() -> None:
        cluster = one_leader()
        logs = Logs(cluster)
        logs.append(P0, 0, 1, batch(0))
        logs.fields[P0] = {"error_code": code}
        gate = held(cluster, logs)
        async with fetching(cluster, P0) as (pipeline, _):
            pipeline.positions.seek(P0, OffsetAndMetadata(50), ON_1)
            cluster.answer(FETCH, logs)
            logs.fields.clear()
            gate.set()
            await settle()
            assert len(pipeline.buffer) == 0
            assert pipeline.offset(P0) == 50
            await asyncio.sleep(0.6)
            assert offsets_asked(cluster)[1] == [(0, 50)]

    run(scenario())


@pytest.mark.spec("B.10.14")
def test_a_top_level_error_leaves_the_node_alone_for_a_while() -> None:
    async def scenario() -> None:
        cluster = one_leader()
        logs = Logs(cluster)
        logs.append(P0, 0, 1, batch(0))
        logs.answer_fields = {"error_code": 106}
        async with fetching(cluster, P0) as (pipeline, _):
            await asyncio.sleep(1)
            assert cluster.updates
            assert 2 <= len(cluster.of(FETCH)) <= 6
            logs.answer_fields = {}
            await until(pipeline.offsets)

    run(scenario())


def held(cluster: FakeCluster, logs: Logs) -> asyncio.Event:
    """Fetches are answered when the event is set."""
    gate = asyncio.Event()

    async def handler(node: int, request: object) -> object:
        reply = await logs(node, request)
        await gate.wait()
        return reply

    cluster.answer(FETCH, handler)
    return gate


@pytest.mark.spec("D-43", "S2-25")
def test_a_fetch_that_was_in_flight_during_a_validation_brings_nothing() -> None:
    async def scenario() -> None:
        cluster = one_leader()
        logs = Logs(cluster)
        logs.append(P0, 0, 1, batch(0))
        gate = held(cluster, logs)
        async with fetching(cluster, P0) as (pipeline, _):
            pipeline.positions.advance(P0, 0, 4)
            pipeline.positions.follow_leader(P0, LeaderAndEpoch(1, 6), can_validate=True)
            pipeline.positions.complete_validation(P0)
            logs.batches.clear()
            gate.set()
            await settle()
            assert len(pipeline.buffer) == 0
            assert offsets_asked(cluster) == [[(0, 0)], [(0, 0)]]

    run(scenario())


@pytest.mark.spec("S2-40", "D-60")
def test_a_read_ahead_whose_predecessor_was_dropped_is_dropped_too() -> None:
    async def scenario() -> None:
        cluster = one_leader()
        logs = Logs(cluster)
        logs.append(P0, 0, 1, batch(0))
        logs.append(P0, 1, 2, batch(1))
        gate = asyncio.Event()

        async def second_held(node: int, request: Any) -> object:
            reply = await logs(node, request)
            if request.topics[0].partitions[0].fetch_offset == 1:
                await gate.wait()
            return reply

        cluster.answer(FETCH, second_held)
        async with fetching(cluster, P0) as (pipeline, _):
            assert offsets_asked(cluster) == [[(0, 0)], [(0, 1)]]
            pipeline.buffer.drop([P0])
            gate.set()
            await settle()
            assert offsets_asked(cluster)[2] == [(0, 0)]
            assert pipeline.offsets() == [(0, 0)]

    run(scenario())


@pytest.mark.spec("S2-18", "B.10.15")
def test_a_failed_request_ends_the_preference_for_a_replica() -> None:
    async def scenario() -> None:
        cluster = one_leader()
        logs = Logs(cluster)
        cluster.answer(
            FETCH, lambda node, request: PortClosedError("gone") if node == 2 else logs(node, request)
        )
        async with fetching(cluster, P0) as (pipeline, _):
            state = pipeline.positions.state(P0)
            state.preferred_read_replica, state.preferred_until = 2, 10**9
            pipeline.buffer.mark_dirty(P0)
            await asyncio.sleep(0.6)
            assert [asked.node_id for asked in cluster.of(FETCH)] == [1, 2, 1]

    run(scenario())


@pytest.mark.spec("B.10.14")
def test_a_throttled_response_without_partitions_is_not_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        cluster = one_leader()
        logs = Logs(cluster)
        logs.append(P0, 0, 1, batch(0))

        async def first_throttled(node: int, request: object) -> object:
            if len(cluster.of(FETCH)) == 1:
                return FetchResponse(throttle_time_ms=100)
            return await logs(node, request)

        cluster.answer(FETCH, first_throttled)
        async with fetching(cluster, P0) as (pipeline, _):
            assert pipeline.offsets() == [(0, 0)]
            assert cluster.updates == []

    caplog.set_level(logging.INFO)
    run(scenario())
    assert caplog.records == []
