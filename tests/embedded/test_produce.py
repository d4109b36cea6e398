"""Produce beyond what one broker shows: replicas that lag, leaders that move, acks, releases; sequences."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.protocol.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    CORRUPT_MESSAGE,
    INVALID_PRODUCER_EPOCH,
    INVALID_RECORD,
    NONE,
    NOT_ENOUGH_REPLICAS,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    REQUEST_TIMED_OUT,
    UNKNOWN_PRODUCER_ID,
    UNKNOWN_TOPIC_ID,
)
from kclient.protocol.headers import request_frame
from kclient.records.batch import crc32c, read_batches
from kclient.types import TimestampType
from tests.embedded.one_topic import OneTopic, batch, values
from tests.embedded.raw_client import RawClient
from tests.waiting import until

Test = Callable[[EmbeddedCluster, OneTopic], Awaitable[None]]


def run(test: Test, *, brokers: int = 3, config: dict[str, str] | None = None, **options: Any) -> None:
    """The test on a cluster with a topic of one partition, led by broker 1."""

    async def main() -> None:
        async with EmbeddedCluster(brokers=brokers, **options) as cluster, RawClient(cluster) as raw_client:
            cluster.create_topic("orders", 1, config=config)
            await test(cluster, OneTopic(cluster, raw_client, "orders"))

    asyncio.run(main())


def test_acks_all_waits_for_the_replicas_in_sync() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        cluster.lag("orders", 0, 2)
        waiting = asyncio.create_task(on.produce(batch(b"a"), timeout_ms=60_000))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        cluster.catch_up("orders", 0)
        row = await waiting
        assert (row.error_code, row.base_offset) == (NONE, 0)

    run(test)


def test_acks_all_gives_up_after_the_request_s_timeout() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        cluster.lag("orders", 0, 2)
        row = await on.produce(batch(b"a"), timeout_ms=20)
        assert (row.error_code, row.base_offset) == (REQUEST_TIMED_OUT, -1)
        assert on.partition().log.end == 1  # it may be there all the same

    run(test)


def test_acks_all_fails_when_the_leader_goes() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        cluster.lag("orders", 0, 2)
        waiting = asyncio.create_task(on.produce(batch(b"a"), timeout_ms=60_000))
        await asyncio.sleep(0.05)
        cluster.move_leader("orders", 0, 3)
        assert (await waiting).error_code == NOT_LEADER_OR_FOLLOWER

    run(test)


def test_acks_all_wants_enough_replicas_before_and_after() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        cluster.lag("orders", 0, 2)
        waiting = asyncio.create_task(on.produce(batch(b"a"), timeout_ms=60_000))
        await asyncio.sleep(0.05)
        cluster.clock.advance("31s")  # the lagging replica is out of sync
        assert (await waiting).error_code == NOT_ENOUGH_REPLICAS_AFTER_APPEND
        assert (await on.produce(batch(b"b"))).error_code == NOT_ENOUGH_REPLICAS
        assert (await on.produce(batch(b"b"), acks=1)).error_code == NONE

    run(test, config={"min.insync.replicas": "3"})


@pytest.mark.spec("B.10.6")
@pytest.mark.parametrize("version", [9, 10, 12])
def test_another_broker_says_who_leads_from_version_10_on(version: int) -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        data = PartitionProduceData(index=0, records=batch(b"a"))
        topic = TopicProduceData(name="orders", partition_data=[data])
        response = await on.raw_client.ask(ProduceRequest(acks=1, topic_data=[topic]), version, 2)
        row = response.responses[0].partition_responses[0]
        assert row.error_code == NOT_LEADER_OR_FOLLOWER
        if version < 10:
            assert row.current_leader is None
            return
        assert (row.current_leader.leader_id, row.current_leader.leader_epoch) == (1, 0)
        address = cluster.state.brokers[1].listeners[0].address
        assert [(node.node_id, node.host, node.port) for node in response.node_endpoints] == [(1, *address)]

    run(test)


def test_topics_are_named_by_id_from_version_13_on() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        codes = []
        for topic_id in (cluster.state.topics["orders"].topic_id, b"\7" * 16):
            data = PartitionProduceData(index=0, records=batch(b"a"))
            topic = TopicProduceData(topic_id=topic_id, partition_data=[data])
            response = await on.raw_client.ask(ProduceRequest(acks=1, topic_data=[topic]), 13, 1)
            codes.append(response.responses[0].partition_responses[0].error_code)
        assert codes == [NONE, UNKNOWN_TOPIC_ID]

    run(test)


def test_without_acks_there_is_no_response_and_an_error_ends_the_connection() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(on.produce(batch(b"a"), acks=0), 0.1)
        assert on.partition().log.end == 1
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await on.produce(batch(b"a")[:-1] + b"?", acks=0)

    run(test)


@pytest.mark.parametrize("reset", [False, True])
def test_what_came_before_a_client_closed_is_appended_but_not_what_came_before_a_reset(reset: bool) -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        data = PartitionProduceData(index=0, records=batch(b"a"))
        topic = TopicProduceData(name="orders", partition_data=[data])
        requests = [ProduceRequest(acks=acks, timeout_ms=60_000, topic_data=[topic]) for acks in (-1, 0, 0)]
        cluster.lag("orders", 0, 2)  # the first request waits, the others after it
        _reader, writer = await asyncio.open_connection(*cluster.state.brokers[1].listeners[0].address)
        for number, request in enumerate(requests):
            writer.writelines(request_frame(request, 9, number, "hasty"))
        await until(lambda: on.partition().log.end == 1)
        if reset:
            writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
        writer.close()
        await until(lambda: not any(one.connected for one in cluster.state.brokers[1].connections))
        cluster.catch_up("orders", 0)
        await until(lambda: not cluster.state.brokers[1].connections)
        assert on.partition().log.end == (1 if reset else 3)

    run(test)


def test_the_broker_sets_the_time_where_the_topic_says_so() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        for codec in range(5):
            row = await on.produce(batch(b"a" * 100, b"b", timestamp=1, compression=codec))
            assert row.log_append_time_ms > 1
            (header,) = read_batches((await on.fetch(codec * 2)).records)
            assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
            assert header.max_timestamp == row.log_append_time_ms
            header.check_crc()

    run(test, config={"message.timestamp.type": "LogAppendTime"})


def test_a_topic_s_own_codec_is_used() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        await on.produce(
            batch(b"a" * 100, b"b", compression=2, producer_id=7, producer_epoch=0, base_sequence=0)
        )
        row = await on.fetch(0)
        (header,) = read_batches(row.records)
        assert (header.compression, header.producer_id, header.base_sequence) == (3, 7, 0)
        assert values(row) == [b"a" * 100, b"b"]

    run(test, config={"compression.type": "lz4"})


def sequenced(*sequences: tuple[int, int]) -> list[bytes]:
    """One record each, by producer 7: epoch and sequence."""
    return [
        batch(b"v", producer_id=7, producer_epoch=epoch, base_sequence=sequence)
        for epoch, sequence in sequences
    ]


def test_repeated_batches_are_known_and_gaps_refused() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        sent = sequenced((0, 0), (0, 1), (0, 1), (0, 3), (1, 1), (1, 0), (0, 2), (1, 1))
        rows = [await on.produce(one) for one in sent]
        gap = OUT_OF_ORDER_SEQUENCE_NUMBER
        assert [(row.error_code, row.base_offset) for row in rows] == [
            *((NONE, 0), (NONE, 1), (NONE, 1), (gap, -1), (gap, -1), (NONE, 2)),
            *((INVALID_PRODUCER_EPOCH, -1), (NONE, 3)),
        ]

    run(test, brokers=1)


def test_five_batches_are_remembered_and_sequences_begin_again_at_0() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        last = 2**31 - 1
        sent = sequenced(*((0, sequence) for sequence in (last - 2, last - 1, last, 0, 1, 2)))
        assert [(await on.produce(one)).base_offset for one in sent] == [0, 1, 2, 3, 4, 5]
        assert [(await on.produce(one)).base_offset for one in sent] == [-1, 1, 2, 3, 4, 5]

    run(test, brokers=1)


@pytest.mark.parametrize(
    ("release", "code"),
    [("0.11.0", OUT_OF_ORDER_SEQUENCE_NUMBER), ("2.4", UNKNOWN_PRODUCER_ID), ("2.5", NONE), ("4.3", NONE)],
)
def test_a_producer_whose_records_are_gone_may_continue_since_2_5(release: str, code: int) -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        assert (await on.produce(*sequenced((0, 5)), version=3)).error_code == code

    run(test, brokers=1, release=release)


@pytest.mark.parametrize(("release", "code"), [("2.8", CLUSTER_AUTHORIZATION_FAILED), ("4.3", NONE)])
def test_sequences_want_a_right_of_their_own_before_3_0(release: str, code: int) -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        cluster.deny("*", "IDEMPOTENT_WRITE", "Cluster:*")
        assert (await on.produce(*sequenced((0, 0)))).error_code == code
        assert (await on.produce(batch(b"a"))).error_code == NONE

    run(test, brokers=1, release=release)


def test_what_a_new_leader_lost_the_producer_sends_again() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        sent = sequenced((0, 0), (0, 1))
        await on.produce(sent[0])
        cluster.lag("orders", 0, 2)
        await on.produce(sent[1], acks=1)
        cluster.move_leader("orders", 0, 2)
        assert on.partition().log.end == 1
        assert [(await on.produce(one)).base_offset for one in sent] == [0, 1]

    run(test)


@pytest.mark.parametrize(("release", "code"), [("2.3", CORRUPT_MESSAGE), ("4.3", INVALID_RECORD)])
def test_a_record_that_does_not_parse_is_refused_though_the_crc_is_right(release: str, code: int) -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        checked = batch(b"a")[21:-1] + b"\x02"  # a header more than there is
        bad = batch(b"a")[:17] + struct.pack(">I", crc32c(checked)) + checked
        row = await on.produce(bad)
        assert (row.error_code, row.base_offset, on.partition().log.end) == (code, -1, 0)

    run(test, brokers=1, release=release)
