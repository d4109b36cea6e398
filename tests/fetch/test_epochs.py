"""Epochs and ids in requests and responses: diverging logs, leaders named in responses, topics recreated."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.embedded.observer import LoggedRequest
from kclient.errors import LogTruncatedError
from kclient.generated import fetch_response
from kclient.positions.state import AWAIT_VALIDATION, EpochEnd
from kclient.types import LeaderAndEpoch, OffsetAndMetadata, TopicPartition
from tests.fetch.fetch_support import ON_1, P0, P1, batch
from tests.fetch.fetcher_support import FETCH, Logs, fetching
from tests.positions.fake_cluster import FakeCluster, run, settle
from tests.waiting import until

OLD_ID, NEW_ID = bytes(range(16)), bytes(range(16, 32))
EARLIEST: dict[str, Any] = {"auto_offset_reset": "earliest"}
TOLD: dict[str, Any] = {"on_no_committed_offset": "earliest", "on_offset_out_of_range": "error"}


def on_node_1(version: int = 17) -> FakeCluster:
    cluster = FakeCluster({("orders", 0): (1, 5), ("orders", 1): (1, 5)}, topic_ids={"orders": OLD_ID})
    cluster.versions[FETCH] = version
    return cluster


def epochs_asked(cluster: FakeCluster) -> list[list[tuple[int, int, int]]]:
    """Per request: (offset, leader epoch, epoch of the data before the offset)."""
    return [
        [
            (p.fetch_offset, p.current_leader_epoch, p.last_fetched_epoch)
            for t in asked.message.topics
            for p in t.partitions
        ]
        for asked in cluster.of(FETCH)
    ]


@pytest.mark.spec("B.10.16", "B.10.4")
def test_the_leader_gets_the_epoch_before_the_position_and_nothing_of_a_read_ahead() -> None:
    async def scenario() -> None:
        cluster = on_node_1()
        logs = Logs(cluster)
        logs.append(P0, 0, 1, batch(0, epoch=3))
        logs.append(P0, 1, 2, batch(1, epoch=4))
        async with fetching(cluster, P0) as (pipeline, _):
            await until(lambda: len(pipeline.buffer.queue(P0)) == 2)
            assert epochs_asked(cluster) == [[(0, 5, -1)], [(1, 5, -1)]]
            assert [*pipeline.offsets(), *pipeline.offsets()] == [(0, 0), (0, 1)]
            await settle()
            assert epochs_asked(cluster)[2:] == [[(2, 5, 4)]]

    run(scenario())


@pytest.mark.spec("B.10.16")
@pytest.mark.parametrize("where", ["at a follower", "at an old broker"])
def test_an_epoch_goes_to_no_broker_that_may_not_know_it(where: str) -> None:
    async def scenario() -> None:
        cluster = on_node_1(version=11 if where == "at an old broker" else 17)
        Logs(cluster)
        async with fetching(cluster, P0) as (pipeline, _):
            pipeline.positions.advance(P0, 5, 4)
            if where == "at a follower":
                state = pipeline.positions.state(P0)
                state.preferred_read_replica, state.preferred_until = 2, 10**9
            pipeline.positions.changed.notify()
            await asyncio.sleep(1.1)
            assert epochs_asked(cluster)[1] == [(5, 5, -1)]
            assert cluster.of(FETCH)[1].node_id == (2 if where == "at a follower" else 1)

    run(scenario())


@pytest.mark.spec("B.10.16")
def test_a_diverging_epoch_makes_the_position_wait_for_a_judgement() -> None:
    async def scenario() -> None:
        cluster = on_node_1()
        logs = Logs(cluster)
        end = fetch_response.EpochEndOffset(epoch=3, end_offset=2)
        async with fetching(cluster, P0) as (pipeline, _):
            pipeline.positions.advance(P0, 5, 4)
            pipeline.positions.changed.notify()
            logs.fields[P0] = {"diverging_epoch": end}
            await asyncio.sleep(1.1)
            state = pipeline.positions.state(P0)
            assert (state.fetch_state, state.divergence) == (AWAIT_VALIDATION, EpochEnd(3, 2))
            assert len(cluster.of(FETCH)) == 2
            assert len(pipeline.buffer) == 0

    run(scenario())


def diverging(scenario: Callable[[EmbeddedCluster, AsyncConsumer], Awaitable[None]], **keys: Any) -> None:
    """Ten records were read; then the leader says once that the logs agree up to offset 6 only."""
    diverged: list[int] = []

    def edit(request: Any, response: Any) -> Any:
        for topic in response.responses:
            for row in topic.partitions:
                if not diverged:
                    diverged.append(row.partition_index)
                    row.records = b""
                    row.diverging_epoch = fetch_response.EpochEndOffset(epoch=0, end_offset=6)
        return response

    async def main() -> None:
        async with EmbeddedCluster(topics={"t": 1}) as cluster:
            for n in range(10):
                cluster.produce("t", [b"%d" % n])
            servers = cluster.bootstrap_servers
            async with AsyncConsumer(bootstrap_servers=servers, fetch_max_wait_ms=50, **keys) as consumer:
                await consumer.assign([TopicPartition("t", 0)])
                seen = 0
                while seen < 10:
                    seen += len(await consumer.poll(1.0))
                await consumer.poll(0.3)
                cluster.on("Fetch", edit)
                await consumer.poll(0.3)  # a request that came before does not know of it
                cluster.produce("t", [b"10"])
                async with asyncio.timeout(10):
                    await scenario(cluster, consumer)
                assert diverged

    asyncio.run(main())


@pytest.mark.spec("B.10.16", "B.9", "S0-04")
def test_a_diverging_epoch_goes_back_to_where_the_logs_part_if_a_policy_allows() -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        offsets: list[int] = []
        while len(offsets) < 5:
            offsets += [record.offset for record in await consumer.poll(0.1)]
        assert offsets == [6, 7, 8, 9, 10]

    diverging(scenario, **EARLIEST)


@pytest.mark.spec("B.10.16", "B.9")
def test_a_diverging_epoch_is_reported_without_a_policy_with_where_the_logs_part() -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        tp = TopicPartition("t", 0)
        with pytest.raises(LogTruncatedError) as caught:
            assert list(await consumer.poll(5.0)) == []
        assert caught.value.divergent[tp] == OffsetAndMetadata(6, 0)

    diverging(scenario, **TOLD)


@pytest.mark.spec("B.10.6", "B.5.8", "D-42", "D-45")
def test_a_leader_named_in_a_response_is_used_with_its_epoch_without_metadata() -> None:
    async def main() -> None:
        async with EmbeddedCluster(brokers=2) as cluster:
            cluster.create_topic("t", 1)
            cluster.move_leader("t", 0, 1)
            cluster.produce("t", [b"old"])
            keys: dict[str, Any] = {"fetch_max_wait_ms": 50, **EARLIEST}
            async with AsyncConsumer(bootstrap_servers=cluster.bootstrap_servers, **keys) as consumer:
                await consumer.assign([TopicPartition("t", 0)])
                assert [r.value for r in await consumer.poll(5.0)] == [b"old"]
                await consumer.poll(0.2)
                cluster.drop("Metadata", times=None)
                cluster.move_leader("t", 0, 2)
                cluster.produce("t", [b"new"])
                cluster.forget_requests()
                assert [r.value for r in await consumer.poll(5.0)] == [b"new"]
            at_2 = [one for one in cluster.requests if one.api == "Fetch" and one.node == 2]
            epochs = {
                p.current_leader_epoch for one in at_2 for t in one.request.topics for p in t.partitions
            }
            assert epochs == {cluster.state.topics["t"].partitions[0].leader_epoch}

    asyncio.run(main())


@pytest.mark.spec("B.5.8")
@pytest.mark.parametrize(
    ("leader", "epoch", "host"), [(7, 5, "b7"), (7, 4, "b7"), (-1, 9, "b7"), (7, -1, "b7"), (7, 9, "")]
)
def test_a_leader_that_cannot_be_is_not_taken_over(leader: int, epoch: int, host: str) -> None:
    """Not newer, no leader, without an epoch, or without an address."""

    async def scenario() -> None:
        cluster = on_node_1()
        logs = Logs(cluster)
        hint = fetch_response.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
        logs.fields[P0] = {"error_code": 6, "current_leader": hint}
        endpoint = fetch_response.NodeEndpoint(node_id=7, host=host, port=9092)
        logs.answer_fields = {"node_endpoints": [endpoint]}
        async with fetching(cluster, P0):
            await settle()
            assert cluster.metadata.leader(P0) == LeaderAndEpoch(1, 5)
            assert cluster.updates

    run(scenario())


@pytest.mark.spec("I-14", "D-25")
def test_a_position_is_not_taken_along_into_another_topic_of_the_same_name() -> None:
    """Metadata names the new topic before anybody has judged the position."""

    async def scenario() -> None:
        cluster = on_node_1()
        logs = Logs(cluster)
        async with fetching(cluster, P0, P1) as (pipeline, _):
            for tp in (P0, P1):
                pipeline.positions.follow_topic(tp, OLD_ID)
            cluster.topic_ids["orders"] = NEW_ID
            cluster.set_leaders({("orders", 0): (1, 0), ("orders", 1): (1, 0)})
            logs.names[NEW_ID] = "orders"
            logs.append(P0, 0, 1, batch(0))
            await asyncio.sleep(1.1)
            assert {t.topic_id for one in cluster.of(FETCH) for t in one.message.topics} == {OLD_ID}
            pipeline.positions.follow_topic(P0, NEW_ID)
            assert list(pipeline.positions.take_out_of_range()) == [P0]
            assert P0 not in pipeline.positions.all_consumed()
            assert P1 in pipeline.positions.all_consumed()
            pipeline.positions.seek(P0, OffsetAndMetadata(0), ON_1)
            await until(pipeline.offsets)
            last = cluster.of(FETCH)[-1].message
            assert {t.topic_id for t in last.topics} == {NEW_ID}

    run(scenario())


@pytest.mark.spec("I-14", "S2-25")
def test_what_was_fetched_of_the_old_topic_is_not_returned() -> None:
    async def scenario() -> None:
        cluster = on_node_1()
        logs = Logs(cluster)
        logs.append(P0, 0, 1, batch(0))
        async with fetching(cluster, P0) as (pipeline, _):
            pipeline.positions.follow_topic(P0, OLD_ID)
            await until(lambda: pipeline.buffer.queue(P0))
            pipeline.positions.follow_topic(P0, NEW_ID)
            assert pipeline.poll() is None
            await settle()
            assert len(pipeline.buffer) == 0

    run(scenario())


@pytest.mark.spec("S2-27", "B.10.8", "B.10.14")
def test_numbers_of_a_response_that_came_too_late_for_its_position_are_kept() -> None:
    """A fetch session sends them only once."""

    async def scenario() -> None:
        cluster = on_node_1()
        logs = Logs(cluster)
        gate = asyncio.Event()

        async def held(node: int, request: Any) -> object:
            reply = await logs(node, request)
            await gate.wait()
            return reply

        cluster.answer(FETCH, held)
        logs.fields[P0] = {"high_watermark": 70, "last_stable_offset": 60, "log_start_offset": 5}
        async with fetching(cluster, P0) as (pipeline, _):
            pipeline.positions.seek(P0, OffsetAndMetadata(50), ON_1)
            gate.set()
            await asyncio.sleep(0.6)
            state = pipeline.positions.state(P0)
            assert (state.high_watermark, state.last_stable_offset, state.log_start_offset) == (70, 60, 5)

    run(scenario())


@pytest.mark.spec("I-14", "D-25")
@pytest.mark.parametrize("release", ["4.3", "2.8"])
def test_the_offset_of_a_deleted_topic_is_not_committed_into_its_successor(release: str) -> None:
    """The commit before a rebalance is tried again while the topic is away; when it is back, it is another one."""
    tp = TopicPartition("t", 0)

    async def main() -> None:
        async with EmbeddedCluster(topics={"t": 1}, release=release) as cluster:
            cluster.produce("t", [b"old"] * 10)
            keys: dict[str, Any] = {
                "group_id": "g",
                "metadata_max_age_ms": 300,
                "allow_auto_create_topics": False,
            }
            servers = cluster.bootstrap_servers
            async with AsyncConsumer("t", bootstrap_servers=servers, **keys, **EARLIEST) as consumer:
                await came(consumer, 10)
                # As while it is away.
                rule = cluster.fail("OffsetCommit", "UNKNOWN_TOPIC_OR_PARTITION", times=None)
                cluster.delete_topic("t")
                assert list(await consumer.poll(1.0)) == []
                cluster.create_topic("t", 1)
                before = len(asked_for_metadata(cluster))
                while len(asked_for_metadata(cluster)) < before + 2:  # the first may have been on its way
                    await consumer.poll(0.1, max_records=1)
                cluster.lift(rule)
                cluster.produce("t", [b"new"] * 20)
                assert await came(consumer, 20) == [(n, b"new") for n in range(20)]
                await consumer.commit()
                assert cluster.committed("g") == {tp: 20}

    asyncio.run(main())


def asked_for_metadata(cluster: EmbeddedCluster) -> list[LoggedRequest]:
    return [one for one in cluster.requests if one.api == "Metadata"]


async def came(consumer: AsyncConsumer, count: int) -> list[tuple[int, Any]]:
    """Offset and value of so many records."""
    found: list[tuple[int, Any]] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            found += [(record.offset, record.value) for record in await consumer.poll(0.3)]
    return found
