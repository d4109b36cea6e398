"""The fetcher: what it asks whom and when, how far it reads ahead, how much it keeps in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kclient.errors import AuthenticationError, DecodeError, PortClosedError, VersionError
from kclient.positions.state import EARLIEST
from kclient.records.writer import NewRecord, build_batch
from kclient.types import LeaderAndEpoch, OffsetAndMetadata, TopicPartition
from tests.fetch.fetch_support import P0, P1, P2, batch
from tests.fetch.fetcher_support import FETCH, Logs, fetching, move_leader, offsets_asked
from tests.positions.fake_cluster import FakeCluster, run, settle
from tests.waiting import until

ID = bytes(range(16))


def on_node_1(count: int = 3) -> FakeCluster:
    return FakeCluster({("orders", n): (1, 5) for n in range(count)})


def filled(cluster: FakeCluster, *partitions: TopicPartition, batches: int = 6, size: int = 10) -> Logs:
    logs = Logs(cluster)
    for tp in partitions:
        for n in range(batches):
            logs.append(tp, n * size, (n + 1) * size, batch(*range(n * size, (n + 1) * size)))
    return logs


@pytest.mark.spec("S2-14", "S2-15", "S2-16", "B.10.4", "S2-01", "S2-02", "S2-03", "S4-60")
def test_one_request_a_node_with_all_its_partitions_at_their_positions() -> None:
    async def scenario() -> None:
        cluster = FakeCluster({("orders", 0): (1, 5), ("orders", 1): (2, 6), ("orders", 2): (1, 7)})
        Logs(cluster)
        async with fetching(
            cluster,
            P0,
            P1,
            P2,
            client_rack="a",
            isolation_level="read_committed",
            fetch_min_bytes=7,
            fetch_max_bytes=9,
        ):
            first, second = cluster.of(FETCH)
            assert (first.node_id, second.node_id) == (1, 2)
            request = first.message
            assert [
                (p.partition, p.fetch_offset, p.current_leader_epoch)
                for t in request.topics
                for p in t.partitions
            ] == [
                (0, 0, 5),
                (2, 0, 7),
            ]
            (partition, _) = request.topics[0].partitions
            assert (partition.log_start_offset, partition.last_fetched_epoch) == (-1, -1)
            assert partition.partition_max_bytes == 1_048_576
            assert (request.replica_id, request.session_id, request.session_epoch) == (-1, 0, 0)
            assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 7, 9)
            assert (request.isolation_level, request.rack_id) == (1, "a")

    run(scenario())


@pytest.mark.spec("S2-13")
def test_a_node_has_one_fetch_in_flight() -> None:
    async def scenario() -> None:
        cluster = on_node_1()
        Logs(cluster)
        async with fetching(cluster, P0, P1) as (pipeline, _):
            for _ in range(10):
                pipeline.positions.changed.notify()
                await settle()
            assert len(cluster.of(FETCH)) == 1
            await asyncio.sleep(0.55)
            assert len(cluster.of(FETCH)) == 2

    run(scenario())


@pytest.mark.spec("S2-13", "S2-16")
def test_a_fetch_that_is_not_answered_delays_none_to_another_node() -> None:
    async def scenario() -> None:
        cluster = FakeCluster({("orders", 0): (1, 5), ("orders", 1): (2, 5)})
        logs = Logs(cluster)

        async def only_node_2(node: int, request: Any) -> object:
            return await (asyncio.Event().wait() if node == 1 else logs(node, request))

        cluster.answer(FETCH, only_node_2)
        async with fetching(cluster, P0, P1):
            await asyncio.sleep(2.1)  # fetch_max_wait_ms is 500
            assert [asked.node_id for asked in cluster.of(FETCH)] == [1, 2, 2, 2, 2, 2]

    run(scenario())


@pytest.mark.spec("S2-17")
def test_what_was_fetched_ahead_begins_where_it_was_requested_and_is_not_fetched_again() -> None:
    async def scenario() -> None:
        cluster = on_node_1()
        filled(cluster, P0)
        async with fetching(cluster, P0) as (pipeline, _):
            await until(lambda: len(pipeline.buffer.queue(P0)) == 2)
            assert [fetch.fetch_offset for fetch in pipeline.buffer.queue(P0)] == [0, 10]
            assert [len(pipeline.offsets(10)), len(pipeline.offsets(10))] == [10, 10]
            assert offsets_asked(cluster) == [[(0, 0)], [(0, 10)]]

    run(scenario())


@pytest.mark.spec("S2-10", "S2-11", "B.10.1")
def test_per_partition_one_chunk_is_drained_and_one_waits() -> None:
    async def scenario() -> None:
        cluster = on_node_1()
        filled(cluster, P0)
        async with fetching(cluster, P0) as (pipeline, _):
            await asyncio.sleep(5)
            assert offsets_asked(cluster) == [[(0, 0)], [(0, 10)]]
            assert len(pipeline.offsets(5)) == 5
            await asyncio.sleep(5)
            assert len(cluster.of(FETCH)) == 2
            assert len(pipeline.offsets(5)) == 5
            await asyncio.sleep(5)
            assert offsets_asked(cluster)[2:] == [[(0, 20)]]

    run(scenario())


@pytest.mark.spec("B.10.3", "S2-10")
def test_a_node_is_left_alone_while_one_of_its_partitions_is_full_and_then_asked_for_all() -> None:
    async def scenario() -> None:
        cluster = on_node_1()
        filled(cluster, P0, batches=3)
        async with fetching(cluster, P0, P1) as (pipeline, _):
            await asyncio.sleep(5)
            assert offsets_asked(cluster) == [[(0, 0), (1, 0)], [(1, 0), (0, 10)]]
            assert len(pipeline.offsets(10)) == 10
            await settle()
            assert offsets_asked(cluster)[2:] == [[(1, 0), (0, 20)]]

    run(scenario())


@pytest.mark.spec("S2-22", "S2-39", "B.10.9", "D-31")
def test_everything_arrives_once_and_in_order() -> None:
    async def scenario() -> None:
        cluster = on_node_1()
        filled(cluster, P0, P1, P2, batches=20)
        seen: dict[int, list[int]] = {0: [], 1: [], 2: []}
        async with fetching(cluster, P0, P1, P2) as (pipeline, _):
            while sum(map(len, seen.values())) < 600:
                for partition, offset in pipeline.offsets(7):
                    seen[partition].append(offset)
                await asyncio.sleep(0.001)
        assert seen == {n: list(range(200)) for n in range(3)}

    run(scenario())


@pytest.mark.spec("S2-25", "D-31")
@pytest.mark.parametrize("moment", ["in flight", "buffered", "half handed out"])
def test_after_a_seek_the_next_record_is_the_sought_one(moment: str) -> None:
    async def scenario() -> None:
        cluster = on_node_1()
        filled(cluster, P0)
        async with fetching(cluster, P0) as (pipeline, _):
            if moment != "in flight":
                await until(lambda: len(pipeline.buffer.queue(P0)) == 2)
            if moment == "half handed out":
                assert len(pipeline.offsets(5)) == 5
            pipeline.positions.seek(P0, OffsetAndMetadata(33), LeaderAndEpoch(1, 5))
            found: list[tuple[int, int]] = []
            while not found:
                await asyncio.sleep(0.01)
                found = pipeline.offsets(1)
            assert found == [(0, 33)]

    run(scenario())


@pytest.mark.spec("S2-24", "D-22", "B.10.7")
def test_a_paused_partition_is_not_fetched_and_continues_from_memory() -> None:
    async def scenario() -> None:
        cluster = on_node_1()
        filled(cluster, P0)
        async with fetching(cluster, P0) as (pipeline, _):
            await until(lambda: len(pipeline.buffer.queue(P0)) == 2)
            pipeline.positions.pause(P0)
            await asyncio.sleep(3)
            assert len(cluster.of(FETCH)) == 2
            assert pipeline.poll() is None
            pipeline.positions.resume(P0)
            assert len(pipeline.offsets(20)) == 10
            assert len(cluster.of(FETCH)) == 2

    run(scenario())


@pytest.mark.spec("S2-08", "S2-09")
def test_a_paused_or_revoked_partition_is_left_out_of_the_requests() -> None:
    async def scenario() -> None:
        cluster = on_node_1()
        Logs(cluster)
        async with fetching(cluster, P0, P1, P2) as (pipeline, _):
            pipeline.positions.pause(P0)
            await asyncio.sleep(0.6)
            pipeline.positions.assign([P0, P1])
            await asyncio.sleep(0.6)
            pipeline.positions.resume(P0)
            pipeline.positions.mark_pending_revocation([P1])
            await asyncio.sleep(0.6)
            asked = [sorted(partition for partition, _ in one) for one in offsets_asked(cluster)]
            assert asked == [[0, 1, 2], [1, 2], [1], [0]]

    run(scenario())


@pytest.mark.spec("S2-12")
def test_without_a_leader_metadata_is_asked_for_and_the_others_are_fetched() -> None:
    async def scenario() -> None:
        cluster = on_node_1(1)
        Logs(cluster)
        async with fetching(cluster, P0, P1):
            assert cluster.updates
            assert offsets_asked(cluster) == [[(0, 0)]]

    run(scenario())


@pytest.mark.spec("B.10.5", "D-59")
def test_a_partition_that_got_data_goes_to_the_end_of_the_next_request() -> None:
    async def scenario() -> None:
        cluster = on_node_1()
        filled(cluster, P0, batches=3)
        async with fetching(cluster, P0, P1, P2) as (pipeline, _):
            while pipeline.offset(P0) != 30:
                pipeline.poll()
                await asyncio.sleep(0.01)
            orders = [[partition for partition, _ in asked] for asked in offsets_asked(cluster)]
            assert orders[0] == [0, 1, 2]
            assert orders[1] == [1, 2, 0]

    run(scenario())


@pytest.mark.spec("B.10.13", "D-47")
def test_topic_ids_are_used_only_where_every_topic_has_one() -> None:
    async def scenario(ids: dict[str, bytes]) -> tuple[int | None, set[bytes]]:
        cluster = FakeCluster({("orders", 0): (1, 5), ("audit", 0): (1, 5)}, topic_ids=ids)
        logs = Logs(cluster)
        logs.append(P0, 0, 1, batch(0))
        async with fetching(cluster, P0, TopicPartition("audit", 0)) as (pipeline, _):
            await until(lambda: pipeline.offset(P0) == 1 or pipeline.poll())
            first = cluster.of(FETCH)[0]
            return first.max_version, {topic.topic_id for topic in first.message.topics}

    assert run(scenario({"orders": ID, "audit": ID[::-1]})) == (None, {ID, ID[::-1]})
    max_version, _ = run(scenario({"orders": ID}))
    assert max_version == 12


@pytest.mark.spec("S2-18", "I-26")
def test_a_failed_request_leaves_nothing_and_is_repeated_with_backoff() -> None:
    async def scenario() -> None:
        cluster = on_node_1()
        cluster.answer(FETCH, lambda node, request: PortClosedError("gone"))
        async with fetching(cluster, P0) as (pipeline, fetcher):
            await asyncio.sleep(10)
            assert 8 <= len(cluster.of(FETCH)) <= 20
            assert fetcher.take_error() is None
            filled(cluster, P0)
            await until(lambda: pipeline.offsets(1))

    run(scenario())


@pytest.mark.spec("B.10.3")
def test_an_error_that_no_retry_heals_is_reported_once_and_then_tried_again() -> None:
    async def scenario() -> None:
        cluster = on_node_1()
        cluster.answer(FETCH, lambda node, request: AuthenticationError("no"))
        async with fetching(cluster, P0) as (pipeline, fetcher):
            await asyncio.sleep(5)
            assert len(cluster.of(FETCH)) == 1
            assert isinstance(fetcher.take_error(), AuthenticationError)
            assert fetcher.take_error() is None
            filled(cluster, P0)
            await until(lambda: pipeline.offsets(1))

    run(scenario())


@pytest.mark.spec("D-45", "S2-29")
def test_a_new_leader_is_asked_with_its_epoch() -> None:
    async def scenario() -> None:
        cluster = on_node_1()
        logs = filled(cluster, P0)
        logs.fields[P0] = {"error_code": 6}
        async with fetching(cluster, P0) as (pipeline, _):
            assert cluster.updates
            del logs.fields[P0]
            move_leader(cluster, pipeline, P0, LeaderAndEpoch(2, 6))
            await until(lambda: pipeline.offsets(1))
            again = cluster.of(FETCH)[1]
            assert again.node_id == 2
            assert again.message.topics[0].partitions[0].current_leader_epoch == 6

    run(scenario())


@pytest.mark.spec("S2-11", "D-22")
def test_memory_stays_in_the_budget_and_everything_still_arrives() -> None:
    async def scenario() -> None:
        partitions = [TopicPartition("orders", n) for n in range(40)]
        cluster = on_node_1(40)
        logs = Logs(cluster)
        for tp in partitions:
            for n in range(4):
                logs.append(tp, n, n + 1, build_batch([NewRecord(None, bytes(20_000))], base_offset=n))
        most, seen = 0, 0
        async with fetching(
            cluster, *partitions, buffer_memory_bytes=200_000, max_partition_fetch_bytes=30_000
        ) as (pipeline, _):
            while seen < 160:
                await asyncio.sleep(0.001)
                most = max(most, pipeline.buffer.bytes_used)
                seen += len(pipeline.offsets(1))
        assert 100_000 < most < 200_000 + 21_000

    run(scenario())


@pytest.mark.spec("D-22")
def test_data_of_paused_partitions_does_not_starve_the_others() -> None:
    async def scenario() -> None:
        cluster = on_node_1(2)
        filled(cluster, P0, P1)
        async with fetching(cluster, P0, buffer_memory_bytes=100, max_partition_fetch_bytes=100) as (
            pipeline,
            _,
        ):
            await until(lambda: pipeline.buffer.queue(P0))
            pipeline.positions.pause(P0)
            pipeline.positions.assign([P0, P1])
            pipeline.positions.seek(P1, OffsetAndMetadata(0), LeaderAndEpoch(1, 5))
            await until(lambda: pipeline.offsets(1))
            assert pipeline.offset(P1) == 1
            pipeline.positions.resume(P0)
            found: list[tuple[int, int]] = []
            while (0, 0) not in found:
                found += pipeline.offsets(10)
                await asyncio.sleep(0.01)

    run(scenario())


@pytest.mark.spec("D-70", "B.10.14")
@pytest.mark.parametrize("fault", ["missing", "extra", "twice"])
def test_a_response_about_other_partitions_is_discarded(fault: str) -> None:
    async def scenario() -> None:
        cluster = on_node_1()
        logs = filled(cluster, P0, P1)

        async def wrong(node: int, request: object) -> object:
            response = await logs(node, request)
            if fault == "missing":
                del response.responses[0]
            elif fault == "twice":
                response.responses.append(response.responses[0])
            else:
                response.responses[0].topic = "other"
            return response

        cluster.answer(FETCH, wrong)
        async with fetching(cluster, P0, P1) as (pipeline, _):
            await asyncio.sleep(1)
            assert len(pipeline.buffer) == 0
            assert len(cluster.of(FETCH)) < 10
            cluster.answer(FETCH, logs)
            await until(lambda: pipeline.offsets(1))

    run(scenario())


@pytest.mark.spec("S2-07", "D-53")
def test_formats_whose_end_only_decoding_reports_are_not_read_ahead() -> None:
    async def scenario() -> None:
        cluster = on_node_1()
        logs = Logs(cluster)
        old = bytearray(batch(0, 1))
        old[16] = 1
        logs.append(P0, 0, 2, bytes(old))
        async with fetching(cluster, P0) as (pipeline, _):
            await asyncio.sleep(2)
            assert len(cluster.of(FETCH)) == 1
            assert len(pipeline.buffer.queue(P0)) == 1

    run(scenario())


@pytest.mark.spec("U-03", "D-59")
def test_a_partition_that_waits_for_the_user_does_not_stop_its_node() -> None:
    def fails(topic: str, headers: object, raw: bytes) -> bytes:
        raise ValueError("cannot be read")

    async def scenario() -> None:
        cluster = on_node_1()
        logs = filled(cluster, P0)
        async with fetching(cluster, P0, P1, value_deserializer=fails) as (pipeline, _):
            await until(lambda: len(pipeline.buffer.queue(P0)) == 2)
            with pytest.raises(DecodeError):
                pipeline.poll()
            logs.append(P1, 0, 1, build_batch([NewRecord(None, None)]))
            await until(lambda: pipeline.offsets() if pipeline.buffer.queue(P1) else None)
            assert pipeline.offset(P1) == 1

    run(scenario())


@pytest.mark.spec("D-22", "D-59", "U-03")
def test_data_of_paused_and_of_broken_partitions_does_not_starve_the_others() -> None:
    def fails(topic: str, headers: object, raw: bytes) -> bytes:
        raise ValueError("cannot be read")

    async def scenario() -> None:
        cluster = on_node_1()
        logs = filled(cluster, P0, batches=1)
        logs.append(P1, 0, 1, batch(0))
        logs.append(P2, 0, 1, build_batch([NewRecord(None, None)]))
        memory = len(logs.batches[P0][0][2]) + len(logs.batches[P1][0][2])
        keys = {"buffer_memory_bytes": memory, "max_partition_fetch_bytes": memory}
        async with fetching(cluster, P0, P1, value_deserializer=fails, **keys) as (pipeline, _):
            await until(lambda: pipeline.buffer.queue(P0) and pipeline.buffer.queue(P1))
            pipeline.positions.pause(P1)
            with pytest.raises(DecodeError):
                pipeline.poll()
            pipeline.positions.assign([P0, P1, P2])
            pipeline.positions.seek(P2, OffsetAndMetadata(0), LeaderAndEpoch(1, 5))
            await until(lambda: pipeline.buffer.queue(P2))

    run(scenario())


@pytest.mark.spec("S2-15", "S0-46")
def test_a_node_is_asked_for_records_when_it_has_said_where_all_its_partitions_begin() -> None:
    async def scenario() -> None:
        cluster = FakeCluster({("orders", 0): (1, 5), ("orders", 1): (1, 5), ("orders", 2): (2, 5)})
        Logs(cluster)
        async with fetching(cluster, P0, P1, P2) as (pipeline, _):
            pipeline.positions.request_offset_reset(P1, EARLIEST)
            versions = {P1: pipeline.positions.state(P1).position_version}
            pipeline.positions.mark_in_flight(versions, 10**9)
            await asyncio.sleep(1.1)  # the fetches in flight have ended
            assert len([asked for asked in cluster.of(FETCH) if asked.node_id == 1]) == 1
            assert len([asked for asked in cluster.of(FETCH) if asked.node_id == 2]) == 3
            pipeline.positions.clear_in_flight(versions)
            pipeline.positions.seek(P1, OffsetAndMetadata(7), LeaderAndEpoch(1, 5))
            await settle()
            assert offsets_asked(cluster)[-1] == [(0, 0), (1, 7)]

    run(scenario())


@pytest.mark.spec("B.18", "B.10.14")
def test_a_broker_without_our_fetch_versions_keeps_no_other_session_open() -> None:
    async def scenario() -> None:
        cluster = FakeCluster({("orders", 0): (1, 5), ("orders", 1): (2, 5)})
        Logs(cluster).answer_fields = {"session_id": 7}

        def usable_version(node_id: int, message: Any, **_: Any) -> int:
            if node_id == 1:
                raise VersionError("Fetch: the broker has 99 to 100, we have 4 to 18")
            return 12

        cluster.usable_version = usable_version  # type: ignore[method-assign]
        cluster.is_connected = lambda node_id, purpose="": True  # type: ignore[attr-defined]
        async with fetching(cluster, P0, P1) as (_, fetcher):
            await asyncio.sleep(1)
            await fetcher.close_sessions(asyncio.get_running_loop().time() + 5)
            assert [(one.node_id, one.message.session_epoch) for one in cluster.of(FETCH)][-1] == (2, -1)

    run(scenario())
