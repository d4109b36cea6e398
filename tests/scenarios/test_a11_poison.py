"""Scenario A-11: a record that cannot be decoded, and a batch whose CRC is wrong, beside partitions that are well."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient import AsyncConsumer, Consumer, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import CorruptBatchError, DecodeError, KclientError, UnsupportedFormatError
from kclient.records.records import Record
from kclient.records.writer import NewRecord
from tests.scenarios.support import SETTINGS, T0, T1, asked, consumer_of, play, read

T2 = TopicPartition("t", 2)
POISON = b"poison"
CRC_POSITION, ATTRIBUTES_POSITION = 17, 22
HEADERS = (("trace", b"7"), ("trace", b"8"), ("empty", None))

pytestmark = pytest.mark.spec(
    "A-11", "S2-48", "S2-50", "S2-06", "S2-39", "B.10.11", "B.10.12", "B.11.7", "D-23", "D-58",
)  # fmt: skip


class Picky:
    """A deserializer that fails on POISON until it is healed."""

    def __init__(self) -> None:
        self.healed = False

    def __call__(self, topic: str, headers: object, data: bytes) -> str:
        if data == POISON and not self.healed:
            raise UnicodeError("not what I expect")
        return data.decode()


def fill(cluster: EmbeddedCluster) -> None:
    """t-0: ten records, number 5 is poison. t-1: three batches of three, the second damaged later. t-2: ten records."""
    values: list[Any] = [f"v{number}" for number in range(10)]
    values[5] = NewRecord(b"the key", POISON, 1_700_000_000_123, HEADERS)
    cluster.produce("t", values, partition=0)
    for _ in range(3):
        cluster.produce("t", ["x", "y", "z"], partition=1)
    cluster.produce("t", ["sound"] * 10, partition=2)


def damage(position: int, *, of_base_offset: int = 3) -> Callable[[Any, Any], Any]:
    """Flip a bit of the batch of t-1 that begins at an offset, in every response that brings it."""

    def edit(request: Any, response: Any) -> Any:
        for topic in response.responses:
            for partition in topic.partitions:
                if partition.partition_index == T1.partition and partition.records:
                    partition.records = _flipped(bytes(partition.records), of_base_offset, position)
        return response

    return edit


def _flipped(data: bytes, base_offset: int, position: int) -> bytes:
    start, found = 0, bytearray(data)
    while start < len(data):
        if int.from_bytes(data[start : start + 8], "big") == base_offset:
            found[start + position] ^= 0x07
        start += 12 + int.from_bytes(data[start + 8 : start + 12], "big")
    return bytes(found)


def poisoned(scenario: Callable[[EmbeddedCluster], Awaitable[None]]) -> None:
    async def run() -> None:
        async with EmbeddedCluster(brokers=1, topics={"t": 3}) as cluster:
            fill(cluster)
            await scenario(cluster)

    play(run)


async def poll_until_error(
    consumer: AsyncConsumer, kind: type[KclientError], found: list[Record[Any, Any]]
) -> KclientError:
    """Poll until an error of this kind is raised; what comes before it goes to `found`."""
    for _ in range(100):
        try:
            found += await consumer.poll(0.3)
        except kind as exc:
            return exc
    raise AssertionError(f"no {kind.__name__}, but {found}")


def offsets(records: list[Record[Any, Any]], tp: TopicPartition) -> list[int]:
    return [record.offset for record in records if record.partition == tp.partition]


def test_the_records_before_the_poison_come_first_then_the_error_with_all_there_is_to_know() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        async with consumer_of(cluster, value_deserializer=Picky()) as consumer:
            await consumer.assign([T0])
            assert offsets(await read(consumer, 5), T0) == [0, 1, 2, 3, 4]
            for _ in range(2):
                with pytest.raises(DecodeError) as caught:
                    await consumer.poll(5)
                error = caught.value
                assert (error.topic, error.partition, error.offset, error.part) == ("t", 0, 5, "value")
                assert (error.timestamp, error.raw_key, error.raw_value) == (
                    1_700_000_000_123,
                    b"the key",
                    POISON,
                )
                assert error.headers == HEADERS
                assert isinstance(error.__cause__, UnicodeError)
                assert await consumer.position(T0) == 5

    poisoned(scenario)


def test_a_deserializer_that_recovers_gets_the_same_record() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        picky = Picky()
        async with consumer_of(cluster, value_deserializer=picky) as consumer:
            await consumer.assign([T0])
            found: list[Record[Any, Any]] = []
            await poll_until_error(consumer, DecodeError, found)
            fetches = len(asked(cluster, "Fetch"))
            picky.healed = True
            found += await consumer.poll(5)
            assert offsets(found, T0) == list(range(10))
            assert found[5].value == "poison"
            assert not _fetched_from(cluster, T0, below=10, since=fetches)

    poisoned(scenario)


def test_a_seek_after_it_continues_with_nothing_twice_and_nothing_skipped() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        async with consumer_of(cluster, value_deserializer=Picky()) as consumer:
            await consumer.assign([T0])
            found: list[Record[Any, Any]] = []
            error = await poll_until_error(consumer, DecodeError, found)
            assert isinstance(error, DecodeError)
            assert f"seek to offset {error.offset + 1}" in error.text
            consumer.seek(T0, error.offset + 1)
            found += await read(consumer, 4)
            assert offsets(found, T0) == [0, 1, 2, 3, 4, 6, 7, 8, 9]

    poisoned(scenario)


@pytest.mark.spec("H-11")
def test_a_wrong_crc_is_reported_at_every_poll_until_a_seek_past_it() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        cluster.on("Fetch", damage(CRC_POSITION))
        async with consumer_of(cluster) as consumer:
            await consumer.assign([T1])
            assert offsets(await read(consumer, 3), T1) == [0, 1, 2]
            for _ in range(3):
                with pytest.raises(CorruptBatchError) as caught:
                    await consumer.poll(5)
                error = caught.value
                assert (error.topic, error.partition, error.base_offset, error.next_offset) == ("t", 1, 3, 6)
                assert await consumer.position(T1) == 3
            assert len(_fetched_from(cluster, T1, below=4, at_least=3)) == 1  # once more, and not again
            consumer.seek(T1, error.next_offset)
            assert offsets(await read(consumer, 3), T1) == [6, 7, 8]

    poisoned(scenario)


@pytest.mark.spec("H-11")
def test_a_batch_with_a_bit_flipped_on_the_wire_is_fetched_again() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        cluster.on("Fetch", damage(CRC_POSITION), times=1)
        async with consumer_of(cluster) as consumer:
            await consumer.assign([T1])
            assert offsets(await read(consumer, 9), T1) == list(range(9))

    poisoned(scenario)


def test_without_check_crcs_the_batch_is_delivered() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        cluster.on("Fetch", damage(CRC_POSITION))
        async with consumer_of(cluster, check_crcs=False) as consumer:
            await consumer.assign([T1])
            assert offsets(await read(consumer, 9), T1) == list(range(9))

    poisoned(scenario)


def test_an_unknown_codec_is_reported_in_the_same_way() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        cluster.on("Fetch", damage(ATTRIBUTES_POSITION))
        async with consumer_of(cluster, check_crcs=False) as consumer:
            await consumer.assign([T1, T2])
            found: list[Record[Any, Any]] = []
            error = await poll_until_error(consumer, UnsupportedFormatError, found)
            assert isinstance(error, UnsupportedFormatError)
            assert (error.topic, error.partition, error.base_offset, error.next_offset) == ("t", 1, 3, 6)
            assert "seek to offset 6" in error.text
            consumer.seek(T1, 6)
            found += await read(consumer, 16 - len(found))
            assert (offsets(found, T1), offsets(found, T2)) == ([0, 1, 2, 6, 7, 8], list(range(10)))

    poisoned(scenario)


@pytest.mark.parametrize("max_poll_records", [1, 2, 500])
def test_no_error_costs_another_partition_a_record(max_poll_records: int) -> None:
    """Both partitions stay broken; whatever is produced to the third goes on arriving, each record once."""

    async def scenario(cluster: EmbeddedCluster) -> None:
        cluster.on("Fetch", damage(CRC_POSITION))
        settings = {"value_deserializer": Picky(), "max_poll_records": max_poll_records}
        async with consumer_of(cluster, **settings) as consumer:
            await consumer.assign([T0, T1, T2])
            found: list[Record[Any, Any]] = []
            raised: dict[type[Exception], int] = {}
            for turn in range(3_000):
                if turn == 20:
                    cluster.produce("t", ["late"] * 10, partition=2)
                try:
                    found += await consumer.poll(0.05)
                except (DecodeError, CorruptBatchError) as exc:
                    raised[type(exc)] = raised.get(type(exc), 0) + 1
                if len(found) == 28 and min(raised.values(), default=0) >= 2 and len(raised) == 2:
                    break
            assert offsets(found, T0) == [0, 1, 2, 3, 4]
            assert offsets(found, T1) == [0, 1, 2]
            assert offsets(found, T2) == list(range(20))
            positions = [await consumer.position(tp) for tp in (T0, T1, T2)]
            assert positions == [5, 3, 20]

    poisoned(scenario)


def test_a_thread_sees_the_same() -> None:
    with EmbeddedCluster(brokers=1, topics={"t": 3}) as cluster:
        fill(cluster)
        keys = {**SETTINGS, "value_deserializer": Picky()}
        with Consumer(bootstrap_servers=cluster.bootstrap_servers, **keys) as consumer:
            consumer.assign([T0])
            found: list[Record[Any, Any]] = []
            with pytest.raises(DecodeError) as caught:
                found.extend(consumer)
            assert (offsets(found, T0), caught.value.offset, consumer.position(T0)) == ([0, 1, 2, 3, 4], 5, 5)
            consumer.seek(T0, 6)
            for record in consumer:
                found.append(record)
                if record.offset == 9:
                    break
            assert offsets(found, T0) == [0, 1, 2, 3, 4, 6, 7, 8, 9]


def _fetched_from(
    cluster: EmbeddedCluster, tp: TopicPartition, *, below: int, at_least: int = 0, since: int = 0
) -> list[int]:
    """The offsets of a partition that Fetch requests asked for, in a range, from the request number `since` on."""
    return [
        partition.fetch_offset
        for one in asked(cluster, "Fetch")[since:]
        for topic in one.request.topics
        for partition in topic.partitions
        if partition.partition == tp.partition and at_least <= partition.fetch_offset < below
    ]
