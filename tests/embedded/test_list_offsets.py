"""ListOffsets and OffsetForLeaderEpoch beyond what one broker shows: replicas, isolation, new leaders, releases."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.protocol.errors import (
    FENCED_LEADER_EPOCH,
    KAFKA_STORAGE_ERROR,
    LEADER_NOT_AVAILABLE,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_NOT_AVAILABLE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_LEADER_EPOCH,
    UNSUPPORTED_VERSION,
)
from tests.embedded.one_topic import NOW, OneTopic, batch
from tests.embedded.raw_client import RawClient

Test = Callable[[EmbeddedCluster, OneTopic], Awaitable[None]]
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3


def run(test: Test, **options: Any) -> None:
    async def main() -> None:
        async with EmbeddedCluster(brokers=3, **options) as cluster, RawClient(cluster) as raw_client:
            cluster.create_topic("orders", 1)
            await test(cluster, OneTopic(cluster, raw_client, "orders"))

    asyncio.run(main())


def brief(row: Any) -> tuple[int, int, int, int]:
    return row.error_code, row.timestamp, row.offset, row.leader_epoch


@pytest.mark.spec("S0-51", "S0-53", "S0-54")
def test_the_latest_offset_depends_on_who_asks() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        options = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
        await on.produce(batch(b"a", b"b"))
        from kclient.embedded.replication import append

        append(cluster.state, on.partition(), batch(b"c", **options))
        cluster.lag("orders", 0, 2)
        await on.produce(batch(b"d"), acks=1)
        assert brief(await on.listed(LATEST)) == (NONE, -1, 3, 0)
        assert brief(await on.listed(LATEST, isolation=1)) == (NONE, -1, 2, 0)
        for replica in (3, -2):  # another broker, a debugger
            assert brief(await on.listed(LATEST, replica=replica)) == (NONE, -1, 4, 0)
        cluster.delete_records("orders", 0, 1)
        assert brief(await on.listed(EARLIEST)) == (NONE, -1, 1, 0)

    run(test)


@pytest.mark.spec("S0-52", "S0-53", "S0-62")
@pytest.mark.parametrize(
    ("version", "code"), [(4, LEADER_NOT_AVAILABLE), (5, OFFSET_NOT_AVAILABLE), (11, OFFSET_NOT_AVAILABLE)]
)
def test_a_new_leader_does_not_know_the_latest_offset_before_its_followers_are_there(
    version: int, code: int
) -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        await on.produce(batch(b"a", timestamp=NOW))
        cluster.lag("orders", 0, 2)
        await on.produce(batch(b"b", timestamp=NOW + 5), acks=1)
        cluster.move_leader("orders", 0, 3)
        cluster.lag("orders", 0, 2, 1)
        assert on.partition().high_watermark == 1
        assert brief(await on.listed(LATEST, version=version)) == (code, -1, -1, -1)
        assert brief(await on.listed(NOW + 1, version=version)) == (code, -1, -1, -1)
        assert brief(await on.listed(NOW, version=version)) == (NONE, NOW, 0, 0)
        assert brief(await on.listed(EARLIEST, version=version))[:3] == (NONE, -1, 0)
        assert brief(await on.listed(LATEST, version=version, replica=1)) == (NONE, -1, 2, 1)  # a follower
        cluster.catch_up("orders", 0)
        assert brief(await on.listed(LATEST, version=version)) == (NONE, -1, 2, 1)

    run(test)


@pytest.mark.spec("S0-55")
def test_a_timestamp_finds_the_first_record_that_is_not_older() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        for first, second in ((10, 50), (30, 20), (90, 40)):
            await on.produce(batch(b"a", timestamp=NOW + first))
            await on.produce(batch(b"a", timestamp=NOW + second))
        cluster.delete_records("orders", 0, 1)
        found = {at: (await on.listed(NOW + at)).offset for at in (0, 20, 50, 51, 90, 91)}
        assert found == {0: 1, 20: 1, 50: 1, 51: 4, 90: 4, 91: -1}
        assert brief(await on.listed(MAX_TIMESTAMP)) == (NONE, NOW + 90, 4, 0)
        await on.produce(batch(b"a", b"a", timestamp=NOW + 100))
        cluster.delete_records("orders", 0, 7)  # the log begins inside of a batch
        assert brief(await on.listed(NOW)) == (NONE, NOW + 100, 7, 0)

    run(test)


@pytest.mark.spec("S0-55", "S0-62")
def test_a_timestamp_finds_nothing_that_may_not_be_read_yet() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        await on.produce(batch(b"a", timestamp=NOW))
        await on.produce(batch(b"b", timestamp=NOW + 5))
        cluster.set_watermarks("orders", 0, high=1)
        for word in (NOW + 1, MAX_TIMESTAMP):
            assert brief(await on.listed(word)) == (NONE, -1, -1, -1)
        assert brief(await on.listed(NOW + 1, replica=3)) == (NONE, NOW + 5, 1, 0)
        cluster.catch_up("orders", 0)
        assert brief(await on.listed(NOW + 1)) == (NONE, NOW + 5, 1, 0)

    run(test)


@pytest.mark.spec("B.8")
@pytest.mark.parametrize(
    ("release", "version", "timestamp", "expected"),
    [
        ("2.8", 6, MAX_TIMESTAMP, (NONE, NOW, 0, 0)),  # not known there: a time before everything
        ("3.0", 7, MAX_TIMESTAMP, (NONE, NOW + 1, 1, 0)),
        ("4.3", 6, MAX_TIMESTAMP, (UNSUPPORTED_VERSION, -1, -1, -1)),
        ("4.3", 8, -4, (NONE, -1, 0, 0)),
        ("4.3", 8, -5, (UNSUPPORTED_VERSION, -1, -1, -1)),
        ("4.3", 9, -5, (NONE, -1, -1, -1)),
        ("4.3", 11, -6, (NONE, -1, -1, -1)),
        ("4.3", 11, -7, (UNSUPPORTED_VERSION, -1, -1, -1)),
    ],
)
def test_words_for_offsets_have_a_version_each(
    release: str, version: int, timestamp: int, expected: tuple[int, ...]
) -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        await on.produce(batch(b"a", timestamp=NOW))
        await on.produce(batch(b"a", timestamp=NOW + 1))
        assert brief(await on.listed(timestamp, version=version)) == expected

    run(test, release=release)


@pytest.mark.spec("B.9", "S0-61")
def test_epochs_end_where_the_next_leader_began() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        await on.produce(batch(b"a", b"b"))
        cluster.move_leader("orders", 0, 2)  # epoch 1
        await on.produce(batch(b"c"))
        cluster.move_leader("orders", 0, 3)  # epoch 2, which writes nothing
        cluster.move_leader("orders", 0, 1)  # epoch 3
        rows = [await on.epoch_end(epoch) for epoch in (0, 1, 2, 3, 4, -1)]
        assert [(row.leader_epoch, row.end_offset) for row in rows] == [
            *((0, 2), (1, 3), (1, 3), (3, 3), (-1, -1), (-1, -1)),
        ]
        codes = [(await on.epoch_end(0, current=current)).error_code for current in (2, 3, 4)]
        assert codes == [FENCED_LEADER_EPOCH, NONE, UNKNOWN_LEADER_EPOCH]
        assert (await on.epoch_end(0, node=2)).error_code == NOT_LEADER_OR_FOLLOWER
        assert (await on.epoch_end(0, current=2, node=2)).error_code == FENCED_LEADER_EPOCH
        on.partition().offline.append(1)
        assert (await on.epoch_end(0, current=0)).error_code == KAFKA_STORAGE_ERROR
        assert (await on.listed(LATEST)).error_code == KAFKA_STORAGE_ERROR

    run(test)


def test_both_want_describe() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        cluster.deny("*", "DESCRIBE", "Topic:orders")
        assert (await on.listed(LATEST)).error_code == TOPIC_AUTHORIZATION_FAILED
        assert (await on.epoch_end(0)).error_code == TOPIC_AUTHORIZATION_FAILED

    run(test)


@pytest.mark.spec("F-39", "B.9")
def test_an_unclean_leader_loses_records_and_says_where() -> None:
    async def test(cluster: EmbeddedCluster, on: OneTopic) -> None:
        await on.produce(batch(b"a"))
        for node in (2, 3):
            cluster.lag("orders", 0, node)
        await on.produce(batch(b"b"), acks=1)
        cluster.clock.advance("31s")
        assert on.partition().isr == [1]
        cluster.kill(1)
        assert (on.partition().leader, on.partition().log.end) == (2, 1)
        row = await on.epoch_end(0)
        assert (row.leader_epoch, row.end_offset) == (0, 1)

    run(test, config={"unclean.leader.election.enable": True})
