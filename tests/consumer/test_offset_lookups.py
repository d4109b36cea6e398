"""end_offsets, current_lag, offsets_for_times and position, at both isolation levels, before an open transaction."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient import AsyncConsumer, Broker, OffsetAndTimestamp, PartitionInfo, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import (
    ArgumentError,
    DeadlineError,
    NotAssignedError,
    TopicAuthorizationError,
    UnknownTopicError,
)
from kclient.runtime import Runtime
from tests.call_counter import CallCounter
from tests.consumer.mini_broker import FAST
from tests.embedded.raw_client import RawClient
from tests.embedded.raw_producer import RawProducer
from tests.waiting import until

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
NOON = 1_800_000_000_000
OPEN_AT, END = 5, 8
BEGINS = 2

Play = Callable[[EmbeddedCluster, AsyncConsumer], Awaitable[None]]
levels = pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])


def ask(play: Play, level: str = "read_uncommitted", **settings: Any) -> None:
    """a-0 holds 2, 3, 4 (0 and 1 were deleted; one second apart), an open transaction at 5, 6 and 7. a-1 is empty."""

    async def main() -> None:
        async with EmbeddedCluster(brokers=2, topics={"a": 2}) as kafka, RawClient(kafka) as raw_client:
            for number in range(OPEN_AT):
                kafka.produce("a", [str(number)], partition=0, timestamp_ms=NOON + 1_000 * number)
            kafka.delete_records("a", 0, BEGINS)
            producer = RawProducer(kafka, raw_client, "t")
            await producer.init()
            await producer.begin_write(A0, b"open")
            kafka.produce("a", ["6", "7"], partition=0, timestamp_ms=NOON + 60_000)
            keys = {"bootstrap_servers": kafka.bootstrap_servers, "auto_offset_reset": "earliest"}
            async with AsyncConsumer(isolation_level=level, **{**FAST, **keys, **settings}) as consumer:
                await play(kafka, consumer)

    asyncio.run(asyncio.wait_for(main(), 30))


def end_of(level: str) -> int:
    return OPEN_AT if level == "read_committed" else END


@levels
@pytest.mark.spec("B.2", "B.8", "S0-51", "U-26")
def test_the_ends_are_those_of_what_may_be_read(level: str) -> None:
    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        assert await consumer.beginning_offsets([A0, A1]) == {A0: BEGINS, A1: 0}
        assert await consumer.end_offsets([A1, A0]) == {A1: 0, A0: end_of(level)}
        assert await consumer.end_offsets([]) == {}

    ask(play, level)


@levels
@pytest.mark.spec("B.2", "U-26", "S2-27")
def test_the_lag_goes_by_the_same_end_and_by_what_was_returned(level: str) -> None:
    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        with pytest.raises(NotAssignedError):
            consumer.current_lag(A0)
        await consumer.assign([A0])
        assert consumer.current_lag(A0) is None
        assert len(await consumer.poll(5, max_records=1)) == 1
        assert consumer.current_lag(A0) == end_of(level) - BEGINS - 1
        consumer.seek(A0, BEGINS)
        assert consumer.current_lag(A0) == end_of(level) - BEGINS

    ask(play, level)


@levels
@pytest.mark.spec("B.2", "U-26")
def test_end_offsets_reports_the_lag_too(level: str) -> None:
    """As in Java. Beginnings are no ends, and partitions that are not assigned have no lag."""

    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        kafka.fail("Fetch", "UNKNOWN_SERVER_ERROR", times=None)
        await consumer.assign([A0])
        consumer.seek(A0, BEGINS)
        await consumer.beginning_offsets([A0, A1])
        await consumer.end_offsets([A0, A1])
        assert consumer.current_lag(A0) == end_of(level) - BEGINS
        kafka.lift()

    ask(play, level)


@levels
@pytest.mark.spec("B.2")
def test_a_lag_whose_end_is_not_known_is_asked_for_once_and_not_waited_for(level: str) -> None:
    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        kafka.fail("Fetch", "UNKNOWN_SERVER_ERROR", times=None)
        await consumer.assign([A0])
        consumer.seek(A0, BEGINS)
        await consumer.poll(0.1)
        before = len([one for one in kafka.requests if one.api == "ListOffsets"])
        assert [consumer.current_lag(A0) for _ in range(5)] == [None] * 5
        await until(lambda: consumer.current_lag(A0) == end_of(level) - BEGINS)
        sent = [one for one in kafka.requests if one.api == "ListOffsets"][before:]
        assert [one.request.isolation_level for one in sent] == [int(level == "read_committed")]
        kafka.lift()

    ask(play, level)


@pytest.mark.spec("B.2", "B.8", "I-26")
def test_the_ends_of_many_partitions_are_asked_for_together() -> None:
    async def main() -> None:
        async with EmbeddedCluster(topics={"wide": 64}) as kafka:
            kafka.fail("Fetch", "UNKNOWN_SERVER_ERROR", times=None)
            wide = [TopicPartition("wide", number) for number in range(64)]
            async with AsyncConsumer(bootstrap_servers=kafka.bootstrap_servers) as consumer:
                await consumer.assign(wide)
                consumer.seek_to_beginning(wide)
                for tp in wide:
                    await consumer.position(tp)
                before = len(kafka.requests)
                assert {consumer.current_lag(tp) for tp in wide} == {None}
                await until(lambda: all(consumer.current_lag(tp) == 0 for tp in wide))
                sent = [one.api for one in kafka.requests[before:] if one.api in ("ListOffsets", "Metadata")]
                assert sent == ["ListOffsets"]
            kafka.lift()

    asyncio.run(main())


def test_the_lag_of_one_partition_costs_the_same_with_four_partitions_and_with_hundreds() -> None:
    async def calls(count: int) -> int:
        partitions = [TopicPartition("wide", number) for number in range(count)]
        async with (
            EmbeddedCluster(topics={"wide": count}) as kafka,
            AsyncConsumer(
                bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest"
            ) as consumer,
        ):
            await consumer.assign(partitions)
            await consumer.poll(0)
            for tp in partitions:
                await consumer.position(tp)
            await until(lambda: consumer.current_lag(partitions[0]) == 0)
            with CallCounter() as made:
                consumer.current_lag(partitions[0])
            return made.count

    assert asyncio.run(calls(300)) == asyncio.run(calls(4))


@levels
@pytest.mark.spec("B.2", "B.8", "U-22")
def test_offsets_for_times_are_the_first_at_or_after_each_time(level: str) -> None:
    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        for when, offset in ((NOON, 2), (NOON + 3_000, 3), (NOON + 3_001, 4)):
            found = await consumer.offsets_for_times({A0: when})
            assert found == {A0: OffsetAndTimestamp(offset, NOON + 1_000 * offset, 0)}
        late = await consumer.offsets_for_times({A0: NOON + 50_000, A1: 0})
        assert late == {
            A0: None if level == "read_committed" else OffsetAndTimestamp(6, NOON + 60_000, 0),
            A1: None,
        }
        assert await consumer.offsets_for_times({A0: NOON * 2}) == {A0: None}

    ask(play, level)


@pytest.mark.spec("U-22", "B.2")
def test_a_time_may_be_a_datetime_that_knows_its_zone() -> None:
    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        moment = datetime.datetime.fromtimestamp(NOON / 1000 + 3, datetime.UTC)
        there = moment.astimezone(datetime.timezone(datetime.timedelta(hours=5.5)))
        for same in (moment, there):
            found = await consumer.offsets_for_times({A0: same})
            assert found[A0] == OffsetAndTimestamp(3, NOON + 3_000, 0)
        with pytest.raises(ArgumentError, match="has no time zone"):
            await consumer.offsets_for_times({A0: moment.replace(tzinfo=None)})

    ask(play)


@pytest.mark.spec("U-22", "B.2")
def test_a_timedelta_is_so_long_ago() -> None:
    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        consumer._core.offset_lookup._runtime = OtherClock(NOON + 10_000)
        found = await consumer.offsets_for_times({A0: datetime.timedelta(seconds=7)})
        assert found[A0] == OffsetAndTimestamp(3, NOON + 3_000, 0)
        ages = datetime.timedelta(days=99_999), datetime.timedelta(0)
        assert await consumer.offsets_for_times({A0: ages[0]}) == await consumer.offsets_for_times({A0: 0})
        assert found != await consumer.offsets_for_times({A0: ages[1]})
        with pytest.raises(ArgumentError, match="a timedelta is an age"):
            await consumer.offsets_for_times({A0: datetime.timedelta(hours=-1)})

    ask(play)


class OtherClock(Runtime):
    """A wall clock that stands still."""

    def __init__(self, wall_ms: int) -> None:
        super().__init__()
        self._wall_ms = wall_ms

    def wall_ms(self) -> int:
        return self._wall_ms


@pytest.mark.spec("U-22", "B.2")
@pytest.mark.parametrize("when", [-1, True, 1.5, "now", None, 1_700_000_000, 10**9, 10**11 - 1])
def test_what_is_no_time_is_refused_before_anything_is_sent(when: Any) -> None:
    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        seconds = isinstance(when, int) and when >= 10**9
        with pytest.raises(
            ArgumentError, match="looks like seconds" if seconds else "whole milliseconds"
        ) as caught:
            await consumer.offsets_for_times({A0: when})
        assert isinstance(caught.value, ValueError)
        assert not [one for one in kafka.requests if one.api == "ListOffsets"]

    ask(play)


@pytest.mark.spec("B.2", "B.8")
def test_with_timeout_0_it_is_sent_and_nothing_is_known() -> None:
    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        assert await consumer.offsets_for_times({A0: NOON, A1: 0}, timeout=0) == {A0: None, A1: None}
        assert await consumer.end_offsets([A0], timeout=0) == {}
        assert await consumer.beginning_offsets([A0], timeout=0) == {}
        await until(lambda: len([one for one in kafka.requests if one.api == "ListOffsets"]) >= 3)
        await consumer.assign([A0])
        with pytest.raises(DeadlineError):
            await consumer.position(A0, timeout=0)
        assert await consumer.position(A0) == BEGINS

    ask(play)


@levels
@pytest.mark.spec("B.2", "S4-47")
def test_the_position_is_what_comes_next_for_every_caller(level: str) -> None:
    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        await consumer.assign([A0, A1])
        assert await asyncio.gather(consumer.position(A0), consumer.position(A1)) == [BEGINS, 0]
        async for record in consumer:
            assert await consumer.position(A0) == record.offset + 1
            break
        consumer.seek(A0, 4)
        assert await consumer.position(A0, timeout=0.0001) == 4
        consumer.seek_to_end([A0])
        assert await consumer.position(A0) == end_of(level)
        consumer.seek_to_beginning()
        assert (await consumer.position(A0), await consumer.position(A1)) == (BEGINS, 0)
        with pytest.raises(NotAssignedError):
            await consumer.position(B0)

    ask(play, level)


@pytest.mark.spec("B.2", "B.15.9")
def test_a_partition_that_is_not_there_is_named_when_time_is_over() -> None:
    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        for missing in (TopicPartition("a", 7), TopicPartition("nowhere", 0)):
            with pytest.raises(DeadlineError, match=f"{missing} .* may not exist"):
                await consumer.end_offsets([A0, missing], timeout=0.4)
        assert await consumer.end_offsets([A0]) == {A0: END}

    ask(play, allow_auto_create_topics=False)


@pytest.mark.spec("B.2", "B.15.9")
def test_a_member_that_may_not_describe_a_topic_gets_the_error() -> None:
    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        kafka.deny("User:ANONYMOUS", "DESCRIBE", "Topic:a")
        for question in (consumer.end_offsets, consumer.beginning_offsets):
            with pytest.raises((TopicAuthorizationError, UnknownTopicError)):
                await question([A0], timeout=2)
        kafka.allow("User:ANONYMOUS", "DESCRIBE", "Topic:a")
        assert await consumer.end_offsets([A0]) == {A0: END}

    ask(play)


@pytest.mark.spec("B.2", "B.15.9")
@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "OFFSET_NOT_AVAILABLE", "LEADER_NOT_AVAILABLE"])
def test_what_passes_automatically_is_asked_again(error: str) -> None:
    async def play(kafka: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        kafka.fail("ListOffsets", error, times=3)
        assert await consumer.end_offsets([A0]) == {A0: END}

    ask(play)


@pytest.mark.spec("B.2")
def test_partitions_and_brokers_come_with_host_port_and_rack() -> None:
    """As in Java's PartitionInfo, whose Nodes have them; an id of a broker that is down has none."""

    async def main() -> None:
        async with EmbeddedCluster(3, racks=["a", "b", None], topics={"t": 1}) as kafka:
            addresses = [address.rsplit(":", 1) for address in kafka.bootstrap_servers.split(",")]
            one, two, three = (
                Broker(number, host, int(port), rack)
                for number, (host, port), rack in zip((1, 2, 3), addresses, ("a", "b", None), strict=True)
            )
            async with AsyncConsumer(bootstrap_servers=kafka.bootstrap_servers) as consumer:
                assert await consumer.brokers() == {1: one, 2: two, 3: three}
                (info,) = await consumer.partitions_for("t")
                assert (info.leader, info.leader_broker) == (1, one)
                assert (info.replicas, info.replica_brokers) == ((1, 2, 3), (one, two, three))
                assert info.in_sync_replica_brokers == (one, two, three)
                assert info.offline_replica_brokers == ()
                kafka.kill(3)
                assert await consumer.brokers() == {1: one, 2: two}
                ((info,),) = (await consumer.list_topics()).values()
                assert info.replica_brokers == (one, two, Broker(3, "", -1))
                assert info.offline_replica_brokers == (Broker(3, "", -1),)
                assert PartitionInfo("t", 0, None).leader_broker is None
                assert info == PartitionInfo("t", 0, 1, (1, 2, 3), (1, 2), (3,))

    asyncio.run(main())
