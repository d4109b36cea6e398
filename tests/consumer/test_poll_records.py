"""poll() and the records that it returns: leftovers, prefetch, positions, pause, seek and reset."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import Any

import pytest

from kclient import AsyncConsumer, OffsetAndMetadata, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import BrokerError, NoOffsetError
from kclient.protocol.errors import UNSUPPORTED_COMPRESSION_TYPE
from kclient.records.records import Record
from tests.consumer.mini_broker import FAST
from tests.waiting import until

A0, A1, A2 = (TopicPartition("a", number) for number in range(3))
GROUP: dict[str, Any] = {"group_id": "g", "enable_auto_commit": False}

Play = Callable[[EmbeddedCluster], Awaitable[None]]


def play(scenario: Play, *, brokers: int = 1, partitions: int = 2) -> None:
    async def main() -> None:
        async with EmbeddedCluster(brokers=brokers, topics={"a": partitions}) as kafka:
            kafka.prepare_groups()
            for partition in range(partitions):
                kafka.produce("a", [str(number) for number in range(10)], partition=partition)
            await scenario(kafka)

    asyncio.run(asyncio.wait_for(main(), 30))


def consumer_of(kafka: EmbeddedCluster, *topics: str, **settings: Any) -> AsyncConsumer:
    keys = {"bootstrap_servers": kafka.bootstrap_servers, "auto_offset_reset": "earliest"}
    return AsyncConsumer(*topics, **{**FAST, **keys, **settings})


def of(kafka: EmbeddedCluster, api: str) -> list[Any]:
    return [one for one in kafka.requests if one.api == api]


def asked_from(kafka: EmbeddedCluster) -> list[int]:
    """The offsets that Fetches asked for, one partition after the other, in the order of the requests."""
    topics = [topic for one in of(kafka, "Fetch") for topic in one.request.topics]
    return [partition.fetch_offset for topic in topics for partition in topic.partitions]


def has_asked(kafka: EmbeddedCluster, times: int) -> bool:
    return len(asked_from(kafka)) >= times


async def commit(kafka: EmbeddedCluster, offsets: dict[TopicPartition, int]) -> None:
    """These were committed before."""
    async with consumer_of(kafka, **GROUP) as consumer:
        await consumer.commit({tp: OffsetAndMetadata(offset) for tp, offset in offsets.items()})
    kafka.forget_requests()


def offsets(records: list[Record[Any, Any]], tp: TopicPartition) -> list[int]:
    return [record.offset for record in records if record.partition == tp.partition]


async def buffered(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
    """Wait until every assigned partition has something for the next poll."""
    async with asyncio.timeout(10):
        while not all(text.startswith("ready") for text in (await consumer.explain(ask=False)).values()):  # noqa: ASYNC110
            await asyncio.sleep(0.002)


# --- draining


@pytest.mark.spec("S2-19", "S3-10")
def test_records_continue_coming_while_a_join_is_prepared_elsewhere() -> None:
    """Δ of "rebalance needed: return nothing". The coordinator is out of reach, so the member cannot join again."""

    async def scenario(kafka: EmbeddedCluster) -> None:
        async with consumer_of(kafka, "a", **GROUP) as consumer:
            found: list[Record[Any, Any]] = []
            while len(found) < 6:
                found += await consumer.poll(5, max_records=3)
            kafka.fail("Heartbeat", "NOT_COORDINATOR", times=None)
            kafka.fail("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", times=None)
            await until(lambda: len(of(kafka, "FindCoordinator")) > 3)
            consumer.enforce_rebalance("a test")
            while len(found) < 20:
                records = await consumer.poll(2, max_records=3)
                assert len(records)
                found += records
            assert (offsets(found, A0), offsets(found, A1)) == (list(range(10)), list(range(10)))
            kafka.lift()

    play(scenario)


@pytest.mark.spec("S2-36", "S2-41")
def test_a_poll_that_finds_nothing_moves_nothing() -> None:
    async def scenario(kafka: EmbeddedCluster) -> None:
        async with consumer_of(kafka) as consumer:
            await consumer.assign([A0, A1])
            consumer.seek(A0, 4)
            consumer.seek(A1, 10)
            consumer.pause([A0])
            for _ in range(3):
                records = await consumer.poll(0.05)
                assert (len(records), records.partitions(), records.next_offsets()) == (0, (), {})
            assert (await consumer.position(A0), await consumer.position(A1)) == (4, 10)

    play(scenario)


@pytest.mark.spec("S2-20", "S2-21", "S2-22", "S2-23")
def test_leftovers_come_first_without_the_network_and_in_order_within_each_partition() -> None:
    async def scenario(kafka: EmbeddedCluster) -> None:
        async with consumer_of(kafka, max_poll_records=7) as consumer:
            await consumer.assign([A0, A1, A2])
            await consumer.poll(0)
            await buffered(kafka, consumer)
            kafka.drop("Fetch", times=None)  # from here on nothing comes over the wire
            polls = []
            for _ in range(5):
                records = await consumer.poll(1)
                polls.append(list(records))
                assert list(records.next_offsets()) == list(records.partitions())
            assert [len(records) for records in polls] == [7, 7, 7, 7, 2]
            everything = [record for records in polls for record in records]
            assert [offsets(everything, tp) for tp in (A0, A1, A2)] == [list(range(10))] * 3
            assert len(list(groupby(everything, key=lambda record: record.partition))) == 3
            kafka.lift()

    play(scenario, partitions=3)


@pytest.mark.spec("S2-07", "S3-13")
def test_the_next_fetch_goes_out_between_polls_and_what_waits_has_an_end() -> None:
    """One response is being drained and one waits; the third is asked for when the first is used up, and not before."""

    async def scenario(kafka: EmbeddedCluster) -> None:
        for _ in range(4):
            kafka.produce("a", [str(number) for number in range(10)])
        async with consumer_of(kafka, max_poll_records=5, max_partition_fetch_bytes=1) as consumer:
            await consumer.assign([A0])
            for offsets_asked in ([0, 10], [0, 10, 20], [0, 10, 20]):
                assert len(await consumer.poll(5)) == 5
                await until(partial(has_asked, kafka, len(offsets_asked)))
                await asyncio.sleep(0.05)
                assert asked_from(kafka) == offsets_asked

    play(scenario, partitions=1)


@pytest.mark.spec("S2-03")
def test_no_partition_brings_more_than_its_own_limit_at_once() -> None:
    async def scenario(kafka: EmbeddedCluster) -> None:
        for number in range(40):
            kafka.produce("a", ["x" * 50], partition=number % 2)
        async with consumer_of(kafka, max_partition_fetch_bytes=300) as consumer:
            await consumer.assign([A0, A1])
            found: list[Record[Any, Any]] = []
            while len(found) < 60:
                found += await consumer.poll(5)
            responses = [one.response for one in of(kafka, "Fetch") if one.response is not None]
        rows = [row for response in responses for topic in response.responses for row in topic.partitions]
        sizes = [len(row.records) for row in rows if row.records]
        assert max(sizes) <= 300
        assert sum(sizes) > 3_000

    play(scenario)


@pytest.mark.spec("S2-22")
def test_what_is_left_over_is_not_fetched_once_more() -> None:
    async def scenario(kafka: EmbeddedCluster) -> None:
        async with consumer_of(kafka, max_poll_records=3) as consumer:
            await consumer.assign([A0])
            found = list(await consumer.poll(5))
            await asyncio.sleep(0.1)  # what is fetched now is at hand
            while len(found) < 10:
                found += await consumer.poll(1)
            assert offsets(found, A0) == list(range(10))
            assert len([one for one in of(kafka, "Fetch") if brings_records(one.response)]) == 1

    play(scenario)


@pytest.mark.spec("S2-50", "B.15.12")
def test_an_error_leaves_the_queue_when_it_is_reported_and_its_partition_is_fetched_again() -> None:
    async def scenario(kafka: EmbeddedCluster) -> None:
        kafka.on("Fetch", refuse_a1, times=None)
        async with consumer_of(kafka) as consumer:
            await consumer.assign([A1, A0])
            found: list[Record[Any, Any]] = []
            caught: list[BrokerError] = []
            async with asyncio.timeout(10):
                while len(caught) < 3 or len(found) < 10:
                    try:
                        found += await consumer.poll(1, max_records=2)
                    except BrokerError as exc:
                        caught.append(exc)
            assert {error.code for error in caught} == {UNSUPPORTED_COMPRESSION_TYPE}
            assert offsets(found, A0) == list(range(10))
            assert await consumer.position(A1) == 0
            kafka.lift()
            async with asyncio.timeout(10):
                while len(found) < 20:
                    with suppress(BrokerError):  # one that was on its way already
                        found += await consumer.poll(1)
            assert offsets(found, A1) == list(range(10))

    play(scenario)


def brings_records(response: Any) -> bool:
    rows = () if response is None else [row for topic in response.responses for row in topic.partitions]
    return any(row.records for row in rows)


def refuse_a1(request: Any, response: Any) -> Any:
    for topic in response.responses:
        for partition in topic.partitions:
            if partition.partition_index == A1.partition:
                partition.error_code, partition.records = UNSUPPORTED_COMPRESSION_TYPE, b""
    return response


@pytest.mark.spec("S2-26", "D-32")
@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_a_commit_in_the_middle_of_a_batch_repeats_nothing(codec: str) -> None:
    async def scenario(kafka: EmbeddedCluster) -> None:
        kafka.create_topic("b")
        kafka.produce("b", [str(number) for number in range(10)], codec=codec)
        tp = TopicPartition("b", 0)
        async with consumer_of(kafka, **GROUP) as consumer:
            await consumer.assign([tp])
            assert len(await consumer.poll(5, max_records=4)) == 4
            await consumer.commit()
        async with consumer_of(kafka, **GROUP) as consumer:
            await consumer.assign([tp])
            records = list(await consumer.poll(5))
            assert [record.offset for record in records] == [4, 5, 6, 7, 8, 9]

    play(scenario)


@pytest.mark.spec("S2-49", "B.10.7")
def test_a_hole_between_two_polls_costs_no_fetch() -> None:
    async def scenario(kafka: EmbeddedCluster) -> None:
        kafka.create_topic("b")
        kafka.produce("b", [str(number) for number in range(8)])
        kafka.remove_records("b", 0, [2, 3, 4])
        tp = TopicPartition("b", 0)
        async with consumer_of(kafka) as consumer:
            await consumer.assign([tp])
            found = [[record.offset for record in await consumer.poll(5, max_records=2)] for _ in range(3)]
            assert found == [[0, 1], [5, 6], [7]]
            asked = [
                row.fetch_offset
                for one in of(kafka, "Fetch")
                for topic in one.request.topics
                for row in topic.partitions
            ]
            assert [offset for offset in asked if offset < 8] == [0]

    play(scenario)


@pytest.mark.spec("S2-41", "B.10.9")
def test_a_range_without_records_moves_the_position_and_says_so() -> None:
    """Δ: compacted away is not nothing. The poll returns at once, without records, with the new position."""

    async def scenario(kafka: EmbeddedCluster) -> None:
        kafka.create_topic("b")
        kafka.produce("b", [str(number) for number in range(5)])
        kafka.remove_records("b", 0, range(5))
        tp = TopicPartition("b", 0)
        async with consumer_of(kafka) as consumer:
            await consumer.assign([tp])
            async with asyncio.timeout(2):
                records = await consumer.poll(10)  # not ten seconds: something has moved
            assert len(records) == 0
            assert {tp: after.offset for tp, after in records.next_offsets().items()} == {tp: 5}
            assert await consumer.position(tp) == 5
            kafka.produce("b", ["5"])
            assert [record.offset for record in await consumer.poll(5)] == [5]

    play(scenario)


# --- the old position update, as it holds now


@pytest.mark.spec("S2-42", "D-22")
def test_a_partition_with_a_position_is_not_looked_up_though_it_is_paused() -> None:
    async def scenario(kafka: EmbeddedCluster) -> None:
        async with consumer_of(kafka, **GROUP) as consumer:
            await commit(kafka, {A0: 2})
            await consumer.assign([A0])
            assert [record.offset for record in await consumer.poll(5, max_records=4)] == [2, 3, 4, 5]
            consumer.pause([A0])
            before = (len(of(kafka, "OffsetFetch")), len(of(kafka, "ListOffsets")))
            for _ in range(5):
                assert not len(await consumer.poll(0.02))
            await consumer.assign([A0, A1])  # the new one is looked up, the paused one is not
            assert await consumer.position(A1) == 0
            looked_up = [_partitions(one.request) for one in of(kafka, "OffsetFetch")[before[0] :]]
            assert looked_up == [[A1.partition]]
            assert await consumer.position(A0) == 6
            consumer.resume([A0])
            found: list[Record[Any, Any]] = []
            while len(offsets(found, A0)) < 4:
                found += await consumer.poll(5)
            assert offsets(found, A0) == [6, 7, 8, 9]

    play(scenario)


def _partitions(request: Any) -> list[int]:
    topics = request.groups[0].topics if request.groups else request.topics
    return [index for topic in topics for index in topic.partition_indexes]


@pytest.mark.spec("D-22", "S2-38", "S2-39", "S2-42")
def test_a_commit_while_paused_is_of_what_was_delivered_and_the_rest_comes_without_a_fetch() -> None:
    async def scenario(kafka: EmbeddedCluster) -> None:
        async with consumer_of(kafka, **GROUP) as consumer:
            await consumer.assign([A0])
            assert len(await consumer.poll(5, max_records=3)) == 3
            consumer.pause([A0])
            await consumer.commit()
            assert not len(await consumer.poll(0.1))
            assert await consumer.committed([A0]) == {A0: OffsetAndMetadata(3, 0)}
            kafka.drop("Fetch", times=None)  # from here on nothing comes over the wire
            consumer.resume([A0])
            assert [record.offset for record in await consumer.poll(2)] == [3, 4, 5, 6, 7, 8, 9]
            kafka.lift()

    play(scenario)


@pytest.mark.spec("S2-43", "S2-45", "S2-46")
def test_a_requested_reset_precedes_the_commit_and_keeps_its_strategy() -> None:
    async def scenario(kafka: EmbeddedCluster) -> None:
        await commit(kafka, {A0: 2, A1: 2})
        async with consumer_of(kafka, **GROUP, auto_offset_reset="latest") as consumer:
            await consumer.committed([A1])  # the coordinator is connected: its response would be there first
            kafka.delay("ListOffsets", ms=300)
            await consumer.assign([A0, A1])
            consumer.seek_to_beginning([A0])
            assert (await consumer.position(A0), await consumer.position(A1)) == (0, 2)
            sent = [
                row
                for one in of(kafka, "ListOffsets")
                for topic in one.request.topics
                for row in topic.partitions
            ]
            assert (sent[-1].partition_index, sent[-1].timestamp) == (A0.partition, -2)

    play(scenario)


@pytest.mark.spec("S2-44", "S2-46")
@pytest.mark.parametrize(("policy", "timestamp", "position"), [("earliest", -2, 0), ("latest", -1, 10)])
def test_without_a_commit_the_policy_is_asked_for(policy: str, timestamp: int, position: int) -> None:
    async def scenario(kafka: EmbeddedCluster) -> None:
        async with consumer_of(kafka, **GROUP, auto_offset_reset=policy) as consumer:
            await consumer.assign([A0])
            assert await consumer.position(A0) == position
            apis = [one.api for one in kafka.requests if one.api in ("OffsetFetch", "ListOffsets")]
            assert apis == ["OffsetFetch", "ListOffsets"]
            (topic,) = of(kafka, "ListOffsets")[0].request.topics
            assert [(row.partition_index, row.timestamp) for row in topic.partitions] == [(0, timestamp)]

    play(scenario)


@pytest.mark.spec("S2-44")
def test_every_partition_without_a_commit_begins_where_the_policy_says() -> None:
    async def scenario(kafka: EmbeddedCluster) -> None:
        await commit(kafka, {A1: 3})
        async with consumer_of(kafka, **GROUP, auto_offset_reset="latest") as consumer:
            await consumer.assign([A0, A1, A2])
            await consumer.poll(0)
            assert [await consumer.position(tp, timeout=5) for tp in (A0, A1, A2)] == [10, 3, 10]
            assert [len(of(kafka, api)) for api in ("OffsetFetch", "ListOffsets")] == [1, 1]

    play(scenario, partitions=3)


@pytest.mark.spec("S2-44", "S2-46", "S0-41")
def test_without_a_commit_and_without_a_policy_the_partitions_are_named() -> None:
    async def scenario(kafka: EmbeddedCluster) -> None:
        async with consumer_of(kafka, **GROUP, auto_offset_reset="none") as consumer:
            await commit(kafka, {A1: 3})
            await consumer.assign([A0, A1])
            with pytest.raises(NoOffsetError) as caught:
                await consumer.position(A0)
            assert caught.value.partitions == (A0,)
            assert await consumer.position(A1) == 3
            assert not of(kafka, "ListOffsets")

    play(scenario)


@pytest.mark.spec("S2-47")
def test_each_leader_is_asked_for_its_own_and_nothing_waits_for_the_slow_one() -> None:
    """Δ: asynchronous and parallel. The one that is slow holds up neither the other nor a poll."""

    async def scenario(kafka: EmbeddedCluster) -> None:
        kafka.move_leader("a", 0, 1)
        kafka.move_leader("a", 1, 2)
        kafka.delay("ListOffsets", ms=1_500, broker=1)
        async with consumer_of(kafka) as consumer:
            await consumer.assign([A0, A1])
            async with asyncio.timeout(1.2):
                found: list[Record[Any, Any]] = []
                while len(found) < 10:
                    found += await consumer.poll(0.2)
            assert (offsets(found, A0), offsets(found, A1)) == ([], list(range(10)))
            while len(found) < 20:
                found += await consumer.poll(1)
            assert offsets(found, A0) == list(range(10))
            for one in of(kafka, "ListOffsets"):
                rows = [row.partition_index for topic in one.request.topics for row in topic.partitions]
                assert rows == [one.node - 1]

    play(scenario, brokers=2)


@pytest.mark.spec("S2-47", "S0-48", "D-27")
@pytest.mark.parametrize("what", ["revoked", "sought"])
def test_a_response_that_comes_too_late_is_not_applied(what: str) -> None:
    async def scenario(kafka: EmbeddedCluster) -> None:
        kafka.delay("ListOffsets", ms=300, times=1)
        async with consumer_of(kafka) as consumer:
            await consumer.assign([A0])
            await consumer.poll(0)
            await until(lambda: of(kafka, "ListOffsets"))
            if what == "revoked":
                await consumer.assign([A1])
                found: list[Record[Any, Any]] = []
                while len(found) < 10:
                    found += await consumer.poll(1)
                assert offsets(found, A0) == []
            else:
                consumer.seek(A0, 7)
                await asyncio.sleep(0.4)
                assert [record.offset for record in await consumer.poll(5)] == [7, 8, 9]

    play(scenario)
