"""Scenario A-08: fetch sessions, from the first request to the last (KIP-227)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient import AsyncConsumer, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.embedded.apis.fetch import sessions_of
from kclient.embedded.observer import LoggedRequest
from kclient.errors import OffsetOutOfRangeError
from kclient.protocol.primitives import ZERO_UUID
from tests.realtime import within
from tests.scenarios.support import T0, asked, consumer_of, play, read
from tests.waiting import until

pytestmark = pytest.mark.spec("A-08", "B.10.14")

ALL = [TopicPartition("t", n) for n in range(10)]
Scenario = Callable[[EmbeddedCluster, AsyncConsumer], Awaitable[None]]


def fetching(scenario: Scenario, *, release: str = "4.3", topics: Any = None, **settings: Any) -> None:
    """One broker, ten partitions, records in two of them; all of it was read, and the log of requests starts again."""

    async def run() -> None:
        async with EmbeddedCluster(topics=topics or {"t": 10}, release=release) as cluster:
            for partition in (3, 7):
                cluster.produce("t", [b"old"] * 5, partition=partition)
            async with consumer_of(cluster, **{"metadata_max_age_ms": 200, **settings}) as consumer:
                names = topics or {"t": 10}
                await consumer.assign(
                    [TopicPartition(t, n) for t, count in names.items() for n in range(count)]
                )
                await read(consumer, 10)
                await scenario(cluster, consumer)

    play(run)


def says(one: LoggedRequest) -> tuple[int, list[tuple[int, int]], list[int]]:
    """Epoch, (partition, offset) of what is sent, what is forgotten."""
    sent = [(p.partition, p.fetch_offset) for t in one.request.topics for p in t.partitions]
    return (
        one.request.session_epoch,
        sent,
        [n for t in one.request.forgotten_topics_data for n in t.partitions],
    )


def fetches(cluster: EmbeddedCluster) -> list[LoggedRequest]:
    return asked(cluster, "Fetch")


async def more_fetches(cluster: EmbeddedCluster, consumer: AsyncConsumer, count: int = 3) -> list[Any]:
    """Poll until so many new requests were answered; what came meanwhile."""
    before, found = len(fetches(cluster)), list[Any]()
    async with asyncio.timeout(10):
        while len([one for one in fetches(cluster)[before:] if one.response is not None]) < count:
            found += await consumer.poll(0.02)
    return found


@pytest.mark.spec("S2-14", "B.10.3")
def test_a08_fetch_sessions_name_only_what_changed() -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        await more_fetches(cluster, consumer)
        first, *later = fetches(cluster)
        assert (first.request.session_id, *says(first)) == (0, 0, [(n, 0) for n in range(10)], [])
        (session_id,) = {one.request.session_id for one in later}
        assert session_id == first.response.session_id != 0
        assert [one.request.session_epoch for one in later] == list(range(1, len(later) + 1))
        changed = [entry for one in later for entry in says(one)[1]]
        assert {partition for partition, _ in changed} == {3, 7}
        for offset in (0, 1):  # the second time, nothing but the offset has changed
            cluster.forget_requests()
            cluster.produce("t", [b"new"], partition=4)
            assert [(r.partition, r.offset) for r in await read(consumer, 1)] == [(4, offset)]
            await more_fetches(cluster, consumer)
            assert {entry for one in fetches(cluster) for entry in says(one)[1]} == {(4, offset + 1)}

    fetching(scenario)


@pytest.mark.spec("S2-08", "S2-09")
def test_a08_fetch_sessions_forget_what_is_paused_or_given_up() -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        await more_fetches(cluster, consumer)
        consumer.pause(ALL[:2])
        await more_fetches(cluster, consumer)
        await consumer.assign(ALL[:5])
        await more_fetches(cluster, consumer)
        consumer.resume(ALL[:2])
        cluster.produce("t", [b"new"], partition=0)
        assert [(r.partition, r.offset) for r in await read(consumer, 1)] == [(0, 0)]
        forgotten = [entry for one in fetches(cluster) for entry in says(one)[2]]
        assert forgotten == [0, 1, 5, 6, 7, 8, 9]
        assert fetches(cluster)[-1].request.session_epoch > 0
        (session,) = sessions_of(cluster.state.brokers[1]).open.values()
        assert sorted(number for _, number in session.partitions) == [0, 1, 2, 3, 4]

    fetching(scenario)


@pytest.mark.parametrize(
    ("error", "keeps_id"), [("FETCH_SESSION_ID_NOT_FOUND", False), (71, True), (106, True)]
)
def test_a08_fetch_sessions_begin_again_after_an_error(error: str | int, keeps_id: bool) -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        await more_fetches(cluster, consumer)
        session_id = fetches(cluster)[-1].request.session_id
        cluster.forget_requests()
        if keeps_id:
            cluster.fail("Fetch", error)
        else:  # the broker itself forgets, as when it needs the slot
            sessions_of(cluster.state.brokers[1]).open.clear()
        await more_fetches(cluster, consumer)
        refused = next(
            n for n, one in enumerate(fetches(cluster)) if one.response and one.response.error_code
        )
        anew = fetches(cluster)[refused + 1]
        assert anew.request.session_id == (session_id if keeps_id else 0)
        assert says(anew)[0] == 0
        assert sorted(partition for partition, _ in says(anew)[1]) == list(range(10))
        cluster.produce("t", [b"new"], partition=9)
        assert [(r.partition, r.offset) for r in await read(consumer, 1)] == [(9, 0)]
        assert len(sessions_of(cluster.state.brokers[1]).open) == 1

    fetching(scenario)


@pytest.mark.spec("S2-18")
def test_a08_fetch_sessions_end_with_the_request_whose_connection_broke() -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        await more_fetches(cluster, consumer)
        session_id = fetches(cluster)[-1].request.session_id
        cluster.forget_requests()
        cluster.cut("Fetch", after=10)
        await more_fetches(cluster, consumer, 4)
        cluster.produce("t", [b"new"], partition=9)
        assert [(r.partition, r.offset) for r in await read(consumer, 1)] == [(9, 0)]
        full = [one for one in fetches(cluster) if one.request.session_epoch == 0]
        assert [one.request.session_id for one in full] == [session_id]
        assert len(sessions_of(cluster.state.brokers[1]).open) == 1

    fetching(scenario)


@pytest.mark.spec("B.10.6")
@pytest.mark.parametrize("fault", ["missing", "not asked for"])
def test_a08_fetch_sessions_discard_a_response_that_does_not_fit(fault: str) -> None:
    def edit(request: Any, response: Any) -> Any:
        if fault == "missing":
            del response.responses[0].partitions[0]
        else:
            response.responses[0].partitions[0].partition_index = 99
        return response

    async def run() -> None:
        async with EmbeddedCluster(topics={"t": 10}) as cluster:
            cluster.produce("t", [b"old"] * 5, partition=3)
            cluster.on("Fetch", edit, times=1)
            async with consumer_of(cluster) as consumer:
                await consumer.assign(ALL)
                assert [(r.partition, r.offset) for r in await read(consumer, 5)] == [
                    (3, n) for n in range(5)
                ]
            first, second, *_ = fetches(cluster)
            assert (first.request.session_id, first.request.session_epoch) == (0, 0)
            assert (second.request.session_id, second.request.session_epoch) == (0, 0)
            assert says(second)[1] == [(n, 0) for n in range(10)]

    play(run)


@pytest.mark.spec("D-25", "I-14", "B.5.5")
@pytest.mark.parametrize("policy", ["earliest", "latest"])
def test_a08_fetch_sessions_follow_a_topic_that_is_recreated(policy: str) -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        await more_fetches(cluster, consumer)
        old_id = fetches(cluster)[-1].response and cluster.state.topics["t"].topic_id
        cluster.forget_requests()
        cluster.recreate_topic("t")
        cluster.produce("t", [b"anew"] * 50, partition=3)
        new_id = cluster.state.topics["t"].topic_id
        came: list[Any] = []
        while await consumer.position(ALL[3]) == 5:  # an offset of the topic that is gone
            came += await more_fetches(cluster, consumer, 1)
        cluster.produce("t", [b"anew"], partition=3)
        came += await read(consumer, 51 - len(came) if policy == "earliest" else 1)
        seen = [(record.offset, record.value) for record in came]
        assert seen == [(n, b"anew") for n in (range(51) if policy == "earliest" else (50,))]
        asked_for = [topic.topic_id for one in fetches(cluster) for topic in one.request.topics]
        assert asked_for[-1] == new_id
        assert len([one for one in fetches(cluster) if one.at]) < 40
        (session,) = sessions_of(cluster.state.brokers[1]).open.values()
        assert {topic_id for topic_id, _ in session.partitions} == {new_id} != {old_id}

    fetching(
        scenario, auto_offset_reset=None, on_no_committed_offset="earliest", on_offset_out_of_range=policy
    )


@pytest.mark.spec("I-14", "D-25", "B.5.5")
def test_a08_fetch_sessions_without_a_policy_report_the_new_topic_until_the_user_seeks() -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        for partition in (0, 1, 2, 4, 5, 6, 8, 9):
            consumer.seek(ALL[partition], 0)
        cluster.recreate_topic("t")
        cluster.produce("t", [b"anew"] * 50, partition=3)
        for _ in range(3):
            with pytest.raises(OffsetOutOfRangeError, match="created again"):
                await poll_until_error(consumer, TopicPartition("t", 3))
        assert await consumer.position(TopicPartition("t", 3)) == 5
        for tp in ALL:
            consumer.seek(tp, 0)
        assert [(r.offset, r.value) for r in await read(consumer, 50)] == [(n, b"anew") for n in range(50)]

    fetching(
        scenario, auto_offset_reset=None, on_no_committed_offset="earliest", on_offset_out_of_range="error"
    )


async def poll_until_error(consumer: AsyncConsumer, tp: TopicPartition) -> None:
    """Poll until the error about this partition comes; nothing is delivered meanwhile."""
    async with asyncio.timeout(10):
        while True:
            try:
                assert list(await consumer.poll(0.1)) == []
            except OffsetOutOfRangeError as exc:
                if exc.partitions == (tp,):
                    raise


@pytest.mark.spec("B.10.13", "D-47")
def test_a08_fetch_sessions_go_by_name_while_one_topic_has_no_id() -> None:
    def without_id(request: Any, response: Any) -> Any:
        for topic in response.topics:
            if topic.name == "nameless":
                topic.topic_id = ZERO_UUID
        return response

    async def run() -> None:
        async with EmbeddedCluster(topics={"t": 1, "nameless": 1}) as cluster:
            cluster.on("Metadata", without_id)
            cluster.produce("t", [b"old"])
            async with consumer_of(cluster) as consumer:
                await consumer.assign([T0, TopicPartition("nameless", 0)])
                await read(consumer, 1)
                await more_fetches(cluster, consumer)
                assert {one.version for one in fetches(cluster)} == {12}
                await consumer.assign([T0])
                await more_fetches(cluster, consumer)
                by_id = [one for one in fetches(cluster) if one.version > 12]
                assert says(by_id[0])[0] == 0
                assert by_id[0].request.session_id != 0
                assert by_id[-1].request.session_epoch > 0
                assert {topic.topic_id for topic in by_id[0].request.topics} == {
                    cluster.state.topics["t"].topic_id
                }

    play(run)


@pytest.mark.spec("D-70")
def test_a08_fetch_sessions_continue_at_1_after_the_last_epoch() -> None:
    async def scenario(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
        await more_fetches(cluster, consumer)
        (ours,) = (node.session for node in consumer._core.fetcher._nodes.values())
        (theirs,) = sessions_of(cluster.state.brokers[1]).open.values()
        consumer.pause(ALL)
        await until(lambda: all(one.response is not None for one in fetches(cluster)))
        await asyncio.sleep(0.1)
        ours.epoch = theirs.epoch = 2**31 - 1
        cluster.forget_requests()
        consumer.resume(ALL)
        await more_fetches(cluster, consumer)
        assert [one.request.session_epoch for one in fetches(cluster)][:3] == [2**31 - 1, 1, 2]
        assert not any(one.response.error_code for one in fetches(cluster) if one.response)

    fetching(scenario)


@pytest.mark.spec("B.18")
def test_a08_fetch_sessions_are_given_back_by_close_where_a_broker_can_be_reached() -> None:
    async def run() -> None:
        async with EmbeddedCluster(brokers=3) as cluster:
            cluster.create_topic("t", 3)
            for partition in range(3):
                cluster.move_leader("t", partition, partition + 1)
            consumer = consumer_of(cluster, fetch_max_wait_ms=300)
            await consumer.assign([TopicPartition("t", n) for n in range(3)])
            async with asyncio.timeout(10):
                while len([one for one in fetches(cluster) if one.request.session_epoch]) < 6:
                    await consumer.poll(0.05)
            cluster.kill(3)
            held = {node: len(sessions_of(cluster.state.brokers[node]).open) for node in (1, 2)}
            assert held == {1: 1, 2: 1}
            with within(1.0):
                await consumer.close()
            last = [one for one in fetches(cluster) if one.request.session_epoch == -1]
            assert sorted(one.node for one in last) == [1, 2]
            for one in last:
                assert one.request.session_id != 0
                assert (one.request.topics, one.request.forgotten_topics_data) == ([], [])
                assert not sessions_of(cluster.state.brokers[one.node]).open

    play(run)


@pytest.mark.spec("B.18", "I-24")
@pytest.mark.parametrize("how", ["stands still", "holds back long"])
def test_a08_fetch_sessions_never_delay_close_beyond_its_timeout(how: str) -> None:
    async def run() -> None:
        async with EmbeddedCluster(topics={"t": 10}) as cluster:
            wait = 30_000 if how == "holds back long" else 50
            consumer = consumer_of(cluster, fetch_max_wait_ms=wait)
            await consumer.assign(ALL)
            cluster.produce("t", [b"one"], partition=0)
            await read(consumer, 1)
            await until(lambda: fetches(cluster)[-1].request.session_epoch > 0)
            if how == "stands still":
                cluster.pause(1)
            with within(0.9):
                await consumer.close(0.4)
            cluster.resume(1)

    play(run)


@pytest.mark.spec("B.18", "U-10")
def test_a08_a_broker_that_knows_no_sessions_holds_up_no_close() -> None:
    async def run() -> None:
        async with EmbeddedCluster(topics={"t": 10}, release="1.0") as cluster:
            consumer = consumer_of(cluster, fetch_max_wait_ms=5_000)
            await consumer.assign(ALL)
            cluster.produce("t", [b"one"], partition=0)
            await read(consumer, 1)
            await until(lambda: fetches(cluster)[-1].response is None)
            with within(2.0):
                await consumer.close()

    play(run)
