"""Scenario A-13: poll(0), wakeup, seek, pause and revocation at any moment, and calls that must be refused."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kclient import AsyncConsumer, Consumer, OffsetAndMetadata, RebalanceListener, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import (
    ArgumentError,
    ClosedError,
    ConcurrentUseError,
    NotAssignedError,
    UsageError,
    UsedAfterForkError,
    WakeupError,
)
from kclient.records.records import Record
from tests.scenarios.support import SETTINGS, T0, T1, asked, consumer_of, play, read
from tests.waiting import until

TEN = list(range(10))

pytestmark = pytest.mark.spec("A-13")

Scenario = Callable[[EmbeddedCluster], Awaitable[None]]


def at_a_moment(scenario: Scenario, partitions: int = 1) -> None:
    """Ten records in each partition."""

    async def run() -> None:
        async with EmbeddedCluster(brokers=1, topics={"t": partitions}) as cluster:
            for partition in range(partitions):
                cluster.produce("t", [f"{number}" for number in TEN], partition=partition)
            cluster.prepare_groups()
            await scenario(cluster)

    play(run)


def offsets(records: list[Record[Any, Any]], tp: TopicPartition = T0) -> list[int]:
    return [record.offset for record in records if record.partition == tp.partition]


# --- poll(0)


@pytest.mark.spec("S3-10", "S3-11", "S3-16", "B.3")
def test_poll_0_alone_joins_finds_positions_and_delivers_and_never_blocks() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        for api in ("FindCoordinator", "JoinGroup", "SyncGroup", "OffsetFetch", "ListOffsets", "Fetch"):
            cluster.delay(api, ms=500, times=1)
        async with consumer_of(cluster, "t", group_id="g") as consumer:
            found: list[Record[Any, Any]] = []
            longest = 0.0
            async with asyncio.timeout(20):
                while len(found) < 10:
                    began = time.perf_counter()
                    found += await consumer.poll(0)
                    longest = max(longest, time.perf_counter() - began)
                    await asyncio.sleep(0.001)
            assert offsets(found) == TEN
            assert longest < 0.45  # each of the six waits took 0.5 s

    at_a_moment(scenario)


# --- wakeup


def held_back(cluster: EmbeddedCluster, api: str) -> Callable[[], bool]:
    """Answer the next request of an API late; gives back whether it came."""
    before = len(asked(cluster, api))
    cluster.delay(api, ms=500, times=1)
    return lambda: len(asked(cluster, api)) > before


WAITS = ("Metadata", "FindCoordinator", "JoinGroup", "SyncGroup", "OffsetFetch", "ListOffsets", "Fetch")


@pytest.mark.spec("S1-12", "S3-09", "S4-21", "S0-58", "S4-03", "B.3.7")
@pytest.mark.parametrize("api", WAITS)
def test_a_wakeup_ends_each_wait_once_and_what_is_in_flight_continues(api: str) -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        came = held_back(cluster, api)
        async with consumer_of(cluster, "t", group_id="g") as consumer:
            poll = asyncio.create_task(consumer.poll(20))
            await until(came)
            consumer.wakeup()
            async with asyncio.timeout(0.45):
                with pytest.raises(WakeupError):
                    await poll
            assert offsets(await read(consumer, 10)) == TEN
        check_that_one_member_joined_once(cluster)

    at_a_moment(scenario)


@pytest.mark.spec("S1-12", "S3-09", "B.3.7")
@pytest.mark.parametrize("api", WAITS)
def test_a_cancelled_poll_leaves_a_consumer_that_continues(api: str) -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        came = held_back(cluster, api)
        async with consumer_of(cluster, "t", group_id="g") as consumer:
            poll = asyncio.create_task(consumer.poll(20))
            await until(came)
            poll.cancel()
            with pytest.raises(asyncio.CancelledError):
                await poll
            assert offsets(await read(consumer, 10)) == TEN
        check_that_one_member_joined_once(cluster)

    at_a_moment(scenario)


def check_that_one_member_joined_once(cluster: EmbeddedCluster) -> None:
    """One JoinGroup to get a member id, one with it; one SyncGroup; they contain no wait of a poll."""
    assert [bool(one.request.member_id) for one in asked(cluster, "JoinGroup")] == [False, True]
    assert len(asked(cluster, "SyncGroup")) == 1
    assert len(asked(cluster, "OffsetFetch")) == 1


@pytest.mark.spec("S3-14", "S3-09")
def test_a_wakeup_after_records_were_taken_is_for_the_next_poll() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        def waking(topic: str, headers: object, data: bytes) -> bytes:
            if data == b"3":
                consumer.wakeup()
            return data

        async with consumer_of(cluster, value_deserializer=waking) as consumer:
            await consumer.assign([T0])
            found = list(await consumer.poll(5))
            with pytest.raises(WakeupError):
                await consumer.poll(5)
            assert offsets(found) == TEN
            assert not len(await consumer.poll(0))

    at_a_moment(scenario)


# --- seek, pause and revocation at each stage of a fetch


Stage = Callable[[EmbeddedCluster, AsyncConsumer], Awaitable[list[Record[Any, Any]]]]


async def unsent(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> list[Record[Any, Any]]:
    await consumer.assign([T0, T1])
    return []


async def in_flight(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> list[Record[Any, Any]]:
    came = held_back(cluster, "Fetch")
    await consumer.assign([T0, T1])
    await consumer.poll(0)
    await until(came)
    return []


async def buffered(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> list[Record[Any, Any]]:
    await consumer.assign([T0, T1])
    await consumer.poll(0)
    async with asyncio.timeout(10):
        while not all(text.startswith("ready") for text in (await consumer.explain()).values()):  # noqa: ASYNC110
            await asyncio.sleep(0.002)
    return []


async def half_delivered(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> list[Record[Any, Any]]:
    await buffered(cluster, consumer)
    found: list[Record[Any, Any]] = []
    while not offsets(found):
        found += await consumer.poll(1, max_records=3)
    return found


stages = pytest.mark.parametrize("stage", [unsent, in_flight, buffered, half_delivered])


async def everything(consumer: AsyncConsumer, found: list[Record[Any, Any]], count: int) -> None:
    """Poll until so many are there; then nothing more may come."""
    async with asyncio.timeout(10):
        while len(found) < count:
            found += await consumer.poll(0.5)
    for _ in range(3):
        found += await consumer.poll(0.05)
    assert len(found) == count, [(record.partition, record.offset) for record in found]


@stages
@pytest.mark.spec("S2-25", "S2-39", "S2-40", "D-31", "S0-09")
@pytest.mark.parametrize("target", [7, 1])
def test_after_a_seek_the_next_record_is_the_sought_one(stage: Stage, target: int) -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        async with consumer_of(cluster) as consumer:
            found = await stage(cluster, consumer)
            before = len(offsets(found))
            consumer.seek(T0, OffsetAndMetadata(target))
            assert await consumer.position(T0) == target
            await everything(consumer, found, before + 10 - target + 10)
            assert offsets(found)[before:] == TEN[target:]
            assert offsets(found, T1) == TEN

    at_a_moment(scenario, partitions=2)


@stages
@pytest.mark.spec("S2-24", "S2-38", "D-22", "B.10.7")
def test_what_was_fetched_of_a_paused_partition_is_kept(stage: Stage) -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        async with consumer_of(cluster) as consumer:
            found = await stage(cluster, consumer)
            before = len(offsets(found))
            consumer.pause([T0])
            await everything(consumer, found, before + 10)
            assert offsets(found, T1) == TEN
            assert len(offsets(found)) == before
            assert await consumer.position(T0) == before
            sent = len(asked(cluster, "Fetch"))
            consumer.resume([T0])
            await everything(consumer, found, 20)
            assert offsets(found) == TEN
            again = [
                row.fetch_offset
                for one in asked(cluster, "Fetch")[sent:]
                for topic in one.request.topics
                for row in topic.partitions
                if row.partition == 0 and row.fetch_offset < 10
            ]
            assert again == ([0] if stage is unsent else [])

    at_a_moment(scenario, partitions=2)


@stages
@pytest.mark.spec("S2-24", "S2-37", "S2-52")
def test_nothing_comes_of_a_partition_that_is_not_assigned_any_more(stage: Stage) -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        async with consumer_of(cluster) as consumer:
            found = await stage(cluster, consumer)
            before = len(offsets(found))
            await consumer.assign([T1])
            await everything(consumer, found, before + 10)
            assert (len(offsets(found)), offsets(found, T1)) == (before, TEN)
            with pytest.raises(NotAssignedError):
                await consumer.position(T0)
            await consumer.assign([T0, T1])
            await everything(consumer, found, before + 20)
            assert offsets(found)[before:] == TEN  # it starts again, by the reset policy

    at_a_moment(scenario, partitions=2)


@pytest.mark.spec("S2-52", "S2-24")
@pytest.mark.parametrize("how", ["revoked", "moved"])
def test_an_error_of_a_partition_that_is_not_what_it_was_is_not_acted_on(how: str) -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        cluster.deny("User:ANONYMOUS", "READ", "Topic:t")
        async with consumer_of(cluster) as consumer:
            await consumer.assign([T0])
            await consumer.poll(0)
            async with asyncio.timeout(10):
                while "TOPIC_AUTHORIZATION_FAILED" not in (await consumer.explain())[T0]:  # noqa: ASYNC110
                    await asyncio.sleep(0.002)
            cluster.allow("User:ANONYMOUS", "READ", "Topic:t")
            if how == "revoked":
                await consumer.assign([T1])
            else:
                consumer.seek(T0, 0)
            assert len(await read(consumer, 10)) == 10

    at_a_moment(scenario, partitions=2)


class Seeing(RebalanceListener):
    """Writes down which partitions are this member's."""

    def __init__(self) -> None:
        self.mine: set[TopicPartition] = set()
        self.revocations = 0

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.mine.update(partitions)

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.revocations += 1
        self.mine.difference_update(partitions)


@pytest.mark.spec("S2-37", "S2-39", "S2-52", "D-60")
def test_a_rebalance_during_a_delivery_returns_no_records_of_others() -> None:
    async def scenario(cluster: EmbeddedCluster) -> None:
        seeing = Seeing()
        keys: dict[str, Any] = {"group_id": "g", "heartbeat_interval_ms": 20, "enable_auto_commit": False}
        async with consumer_of(cluster, **keys) as first, consumer_of(cluster, **keys) as second:
            await first.subscribe(["t"], listener=seeing)
            found: list[Record[Any, Any]] = []
            while len(found) < 4:
                found += await first.poll(1, max_records=2)
            await second.subscribe(["t"])
            other: list[Record[Any, Any]] = []
            async with asyncio.timeout(20):
                while len(seeing.mine) != 1 or not second.assignment():
                    got = list(await first.poll(0.01, max_records=1))
                    assert {TopicPartition(one.topic, one.partition) for one in got} <= seeing.mine
                    found += got
                    other += await second.poll(0.01, max_records=1)
                for _ in range(60):
                    got = list(await first.poll(0.01, max_records=1))
                    assert {TopicPartition(one.topic, one.partition) for one in got} <= seeing.mine
                    other += await second.poll(0.01, max_records=1)
            (mine,) = first.assignment()
            assert {one.partition for one in other} == {1 - mine.partition}
            assert offsets(other, TopicPartition("t", 1 - mine.partition)) == TEN  # nothing was committed

    at_a_moment(scenario, partitions=2)


# --- interrupts, other threads, forks


@contextmanager
def threaded(**settings: Any) -> Iterator[tuple[EmbeddedCluster, Consumer]]:
    with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
        cluster.prepare_groups()
        cluster.produce("t", [f"{number}" for number in TEN])
        keys = {**SETTINGS, **settings}
        with Consumer(bootstrap_servers=cluster.bootstrap_servers, **keys) as consumer:
            yield cluster, consumer


def poll_for_ever(consumer: Consumer) -> None:
    while True:
        consumer.poll(20)


@pytest.mark.spec("D-77", "S3-17", "B.3")
@pytest.mark.parametrize("api", WAITS)
def test_ctrl_c_in_each_wait_leaves_a_consumer_that_continues(api: str) -> None:
    with threaded(group_id="g") as (cluster, consumer):
        consumer.subscribe(["t"])
        came = held_back(cluster, api)

        def press() -> None:
            while not came():
                time.sleep(0.002)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        presser = threading.Thread(target=press)
        presser.start()
        with pytest.raises(KeyboardInterrupt):
            poll_for_ever(consumer)
        presser.join()
        found: list[Record[Any, Any]] = []
        deadline = time.monotonic() + 10
        while len(found) < 10 and time.monotonic() < deadline:
            found += consumer.poll(0.5)
        assert offsets(found) == TEN


@pytest.mark.spec("S3-06", "S3-17", "S4-19")
def test_a_second_thread_is_refused_at_once_and_may_wake() -> None:
    with threaded() as (_, consumer):
        consumer.assign([T0])
        assert len(consumer.poll(5)) == 10
        refused: list[tuple[type[BaseException], float]] = []

        def meddle() -> None:
            time.sleep(0.1)
            for call in (
                lambda: consumer.poll(0),
                consumer.assignment,
                lambda: consumer.seek(T0, 0),
                consumer.close,
            ):
                began = time.perf_counter()
                try:
                    call()
                except ConcurrentUseError as exc:
                    refused.append((type(exc), time.perf_counter() - began))
            consumer.wakeup()

        meddler = threading.Thread(target=meddle)
        meddler.start()
        with pytest.raises(WakeupError):
            consumer.poll(10)
        meddler.join()
        assert [kind for kind, _ in refused] == [ConcurrentUseError] * 4
        assert max(took for _, took in refused) < 5  # the poll waits for ten
        assert consumer.position(T0) == 10


@pytest.mark.spec("S3-06", "B.2", "B.18")
def test_after_close_every_call_raises_closed() -> None:
    with threaded(group_id="g") as (_, consumer):
        consumer.close()
        calls: dict[str, Callable[[], object]] = {
            "subscribe": lambda: consumer.subscribe(["t"]),
            "assign": lambda: consumer.assign([T0]),
            "poll": lambda: consumer.poll(0),
            "__iter__": lambda: iter(consumer),
            "seek": lambda: consumer.seek(T0, 0),
            "pause": lambda: consumer.pause([T0]),
            "resume": lambda: consumer.resume([T0]),
            "committed": lambda: consumer.committed([T0]),
            "position": lambda: consumer.position(T0),
            "offsets_for_times": lambda: consumer.offsets_for_times({T0: 0}),
            "beginning_offsets": lambda: consumer.beginning_offsets([T0]),
            "end_offsets": lambda: consumer.end_offsets([T0]),
            "partitions_for": lambda: consumer.partitions_for("t"),
            "current_lag": lambda: consumer.current_lag(T0),
        }
        others = [name for name in vars(Consumer) if not name.startswith("_") and name not in calls]
        for name in (name for name in others if name != "close"):
            calls[name] = getattr(consumer, name)
        assert [name for name, call in calls.items() if not says_closed(call)] == []
        consumer.close()


def says_closed(call: Callable[[], object]) -> bool:
    try:
        call()
    except ClosedError:
        return True
    return False


@pytest.mark.spec("S3-08", "B.2", "B.6.1")
def test_calls_that_make_no_sense_are_refused() -> None:
    with threaded(group_id="g") as (_, consumer):
        with pytest.raises(UsageError, match="subscribe\\(\\) or assign\\(\\)"):
            consumer.poll(0)
        with pytest.raises(ArgumentError):
            consumer.subscribe([" "])
        with pytest.raises(ArgumentError):
            consumer.poll(-1)
        consumer.assign([T0])
        with pytest.raises(UsageError):
            consumer.subscribe(["t"])
        with pytest.raises(ArgumentError):
            consumer.seek(T0, -1)
        with pytest.raises(NotAssignedError):
            consumer.seek(T1, 0)
        assert offsets(list(consumer.poll(5))) == TEN


@pytest.mark.spec("D-76", "U-11")
def test_a_fork_is_reported_and_its_parent_continues() -> None:
    with threaded() as (_, consumer):
        consumer.assign([T0])
        assert len(consumer.poll(5, max_records=4)) == 4
        child = os.fork()
        if child == 0:  # pragma: no cover – another process
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(5)  # a child that gets no error would wait for a thread that it does not have
            try:
                consumer.poll(1)
            except UsedAfterForkError as exc:
                os._exit(0 if "fork" in str(exc) and str(exc.created_pid) in str(exc) else 2)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert offsets(list(consumer.poll(5))) == TEN[4:]


@pytest.mark.spec("D-75")
def test_a_deserializer_that_is_busy_for_longer_than_the_session_evicts_no_member() -> None:
    """Heartbeats live on a thread of their own; a pure Python loop gives it the interpreter now and then."""

    def busy(topic: str, headers: object, data: bytes) -> bytes:
        end = time.perf_counter() + 0.2
        while time.perf_counter() < end:
            pass
        return data

    config = {"group.min.session.timeout.ms": 100}
    with EmbeddedCluster(brokers=1, topics={"t": 1}, config=config) as cluster:
        cluster.produce("t", [f"{number}" for number in TEN])
        keys = {**SETTINGS, "group_id": "g", "session_timeout_ms": 1_000, "heartbeat_interval_ms": 100}
        with Consumer(
            "t", bootstrap_servers=cluster.bootstrap_servers, value_deserializer=busy, **keys
        ) as consumer:
            found: list[Record[Any, Any]] = []
            while not found:
                found += consumer.poll(5)  # ten records of 0.2 s each: twice the session
            assert offsets(found) == TEN
            consumer.commit()
            assert consumer.group_metadata().generation_id == 1
        assert len(asked(cluster, "SyncGroup")) == 1


@pytest.mark.spec("D-60", "S2-37", "S2-39", "D-31")
@pytest.mark.parametrize("action", ["seek", "pause", "revoke"])
@pytest.mark.parametrize("step", range(0, 20, 3))
def test_a_move_in_the_middle_of_a_collecting_poll_loses_nothing_and_repeats_nothing(
    action: str, step: int
) -> None:
    """The deserializer of the record number `step` makes the call: between two records of one poll."""
    calls = 0

    def moving(topic: str, headers: object, data: bytes) -> bytes:
        nonlocal calls
        calls += 1
        if calls == step + 1:
            moves[action]()
        return data

    with EmbeddedCluster(brokers=1, topics={"t": 2}) as cluster:
        for tp in (T0, T1):
            cluster.produce("t", [f"{number}" for number in TEN], partition=tp.partition)
        with Consumer(
            bootstrap_servers=cluster.bootstrap_servers, value_deserializer=moving, **SETTINGS
        ) as consumer:
            moves: dict[str, Callable[[], object]] = {
                "seek": lambda: consumer.seek(T0, 5),
                "pause": lambda: consumer.pause([T0]),
                "revoke": lambda: consumer.assign([T1]),
            }
            consumer.assign([T0, T1])
            found: list[Record[Any, Any]] = []
            before: list[int] = []
            deadline = time.monotonic() + 10
            while len(offsets(found, T1)) < 10 or calls <= step:
                assert time.monotonic() < deadline
                moved = calls > step
                got = list(consumer.poll(0.3))
                found += got
                if not moved:
                    before = offsets(found) if calls <= step else offsets(found[: len(found) - len(got)])
            if action != "seek":
                assert offsets(found) == before  # not even of the poll that was collecting
            if action == "revoke":
                assert consumer.assignment() == (T1,)
                consumer.assign([T0, T1])
            consumer.resume([T0])
            expected = before + {"seek": TEN[5:], "pause": TEN[len(before) :], "revoke": TEN}[action]
            while len(offsets(found)) < len(expected) and time.monotonic() < deadline:
                found += consumer.poll(0.3)
            assert offsets(found) == expected
            assert offsets(found, T1) == TEN
