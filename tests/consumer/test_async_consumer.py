"""What an application sees of AsyncConsumer: records, positions, commits, and what ends them."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import re
from threading import get_ident
from typing import Any

import pytest

from kclient import AsyncConsumer, OffsetAndMetadata, TopicPartition
from kclient.errors import (
    BrokerError,
    ClosedError,
    CommitFailedError,
    ConcurrentUseError,
    ConfigError,
    DeadlineError,
    DecodeError,
    NotAssignedError,
    PortClosedError,
    TopicAuthorizationError,
    UnknownTopicError,
    UsageError,
    WakeupError,
)
from tests.consumer.mini_broker import MiniBroker
from tests.consumer.support import A0, A1, consumer, with_broker
from tests.scripted_broker import On
from tests.waiting import until


@pytest.mark.spec("S0-03", "S0-09", "S3-49")
def test_iteration_joins_finds_the_position_and_yields_every_record() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            values = []
            async for record in c:
                values.append(record.value)
                if len(values) == 5:
                    break
            assert values == [b"0", b"1", b"2", b"3", b"4"]
        order = [seen.name for seen in broker.requests]
        firsts = sorted(dict.fromkeys(order), key=order.index)
        wanted = ["FindCoordinatorRequest", "JoinGroupRequest", "SyncGroupRequest", "OffsetFetchRequest"]
        wanted += ["ListOffsetsRequest", "FetchRequest", "OffsetCommitRequest", "LeaveGroupRequest"]
        assert [name for name in firsts if name in wanted] == wanted
        assert broker.committed == {A0: OffsetAndMetadata(5, 0)}

    with_broker(scenario)


@pytest.mark.spec("S3-18", "D-78")
@pytest.mark.parametrize("k", range(5))
@pytest.mark.parametrize("interval_ms", [0, 1, 5_000])
def test_a_handler_that_fails_on_a_record_gets_it_again(k: int, interval_ms: int) -> None:
    """U-02: whatever the interval of automatic commits."""

    async def scenario(broker: MiniBroker) -> None:
        async def dying() -> None:
            async with consumer(broker, "a", auto_commit_interval_ms=interval_ms) as c:
                async for record in c:
                    if record.offset == k:
                        raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await dying()
        assert broker.committed[A0].offset == k
        async with consumer(broker, "a") as c:
            assert (await anext(c)).offset == k

    with_broker(scenario)


@pytest.mark.spec("D-78")
def test_leaving_a_loop_commits_the_current_record_and_a_second_loop_continues() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            async for record in c:
                if record.offset == 1:
                    break
            assert await c.position(A0) == 2
            async for record in c:
                assert record.offset == 2
                break
        assert broker.committed[A0].offset == 3

    with_broker(scenario)


@pytest.mark.spec("S3-18", "S4-44")
def test_an_automatic_commit_holds_what_earlier_polls_returned_and_nothing_more() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a", auto_commit_interval_ms=0) as c:
            first = await c.poll(5, max_records=2)
            assert [record.offset for record in first] == [0, 1]
            assert all(offsets.get(A0, 0) == 0 for offsets in broker.commits)
            await asyncio.sleep(0.05)  # one automatic commit is in flight at a time
            await c.poll(5, max_records=1)
            await until(lambda: {A0: 2} in broker.commits)
            assert max(offsets[A0] for offsets in broker.commits) == 2

    with_broker(scenario)


@pytest.mark.spec("S4-58")
def test_no_commit_is_sent_while_nothing_was_consumed() -> None:
    async def scenario(broker: MiniBroker) -> None:
        broker.default_responses["ListOffsetsRequest"] = None
        async with consumer(broker, "a", auto_commit_interval_ms=0) as c:
            for _ in range(5):
                await c.poll(0.05)
        assert broker.of("OffsetCommitRequest") == []

    with_broker(scenario)


@pytest.mark.spec("S3-08")
def test_polling_without_a_subscription_is_an_error() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker) as c:
            with pytest.raises(UsageError, match="subscribe"):
                await c.poll(0)

    with_broker(scenario)


@pytest.mark.spec("S0-02")
def test_without_a_group_only_metadata_offsets_and_records_are_asked_for() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, group_id=None) as c:
            await c.assign([A0])
            assert len(await c.poll(5)) == 5
            with pytest.raises(BrokerError, match="group_id") as caught:
                await c.commit()
            assert (caught.value.code, caught.value.name) == (24, "INVALID_GROUP_ID")
            with pytest.raises(BrokerError, match="group_id"):
                await c.subscribe(["a"])
        names = {seen.name for seen in broker.requests}
        assert names == {"MetadataRequest", "ListOffsetsRequest", "FetchRequest"}

    with_broker(scenario)


def test_a_manual_assignment_with_a_group_commits_as_a_simple_consumer() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker) as c:
            await c.assign([A0])
            await c.poll(5, max_records=3)
            await c.commit()
            assert await c.committed([A0, A1]) == {A0: OffsetAndMetadata(3, 0), A1: None}
        (sent, *_) = broker.of("OffsetCommitRequest")
        assert (sent.generation_id_or_member_epoch, sent.member_id) == (-1, "")
        assert broker.of("JoinGroupRequest") == []

    with_broker(scenario)


def test_the_kinds_of_subscription_exclude_each_other_until_unsubscribe() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            with pytest.raises(UsageError, match="unsubscribe"):
                await c.assign([A0])
            with pytest.raises(UsageError, match="unsubscribe"):
                await c.subscribe(pattern="a.*")
            await c.unsubscribe()
            await c.assign([A0])
            assert (c.assignment(), c.subscription()) == ((A0,), ())

    with_broker(scenario)


@pytest.mark.spec("S3-06")
def test_one_task_polls_at_a_time() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            await c.poll(5)
            waiting = asyncio.create_task(c.poll(0.3), name="first")
            await asyncio.sleep(0.05)
            with pytest.raises(ConcurrentUseError) as caught:
                await c.poll(0)
            this = asyncio.current_task()
            assert this is not None
            assert (caught.value.inside, caught.value.caller) == ("first", this.get_name())
            assert c.assignment() == (A0,)
            await c.commit()
            assert len(await waiting) == 0

    with_broker(scenario)


@pytest.mark.spec("S1-12", "S3-09")
def test_wakeup_ends_the_poll_that_waits_or_the_next_one_and_nothing_is_lost() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            c.wakeup()
            with pytest.raises(WakeupError):
                await c.poll(5)
            assert len(await c.poll(5)) == 5
            waiting = asyncio.create_task(c.poll(20))
            await asyncio.sleep(0.05)
            c.wakeup()
            with pytest.raises(WakeupError):
                await waiting
            broker.fill("a", 0, b"5")
            assert [record.offset for record in await c.poll(5)] == [5]

    with_broker(scenario)


def test_wakeup_ends_other_calls_that_wait() -> None:
    async def scenario(broker: MiniBroker) -> None:
        broker.default_responses["OffsetFetchRequest"] = None
        async with consumer(broker) as c:
            waiting = asyncio.create_task(c.committed([A0]))
            await asyncio.sleep(0.1)
            c.wakeup()
            with pytest.raises(WakeupError):
                await waiting
            with pytest.raises(DeadlineError, match="committed offsets"):
                await c.committed([A0], timeout=0.05)

    with_broker(scenario)


@pytest.mark.spec("S1-15")
def test_polls_without_a_timeout_come_to_the_records_all_the_same() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            records = await c.poll(0)
            async with asyncio.timeout(10):
                while not records:
                    records = await c.poll(0)
            assert len(records) == 5

    with_broker(scenario)


def test_after_close_every_call_is_refused_and_a_second_close_does_nothing() -> None:
    async def scenario(broker: MiniBroker) -> None:
        c = consumer(broker, "a")
        await c.poll(5)
        await c.close()
        await c.close()
        with pytest.raises(ClosedError):
            await c.poll()
        with pytest.raises(ClosedError):
            c.assignment()
        with pytest.raises(ClosedError):
            await c.__aenter__()

    with_broker(scenario)


def test_close_ends_calls_that_wait_in_other_tasks() -> None:
    async def scenario(broker: MiniBroker) -> None:
        broker.default_responses["OffsetFetchRequest"] = None
        c = consumer(broker, "a")
        polling = asyncio.create_task(c.poll(20))
        asking = asyncio.create_task(c.committed([A0]))
        await asyncio.sleep(0.1)
        await c.close()
        for waiting in (polling, asking):
            with pytest.raises(ClosedError):
                await waiting

    with_broker(scenario)


@pytest.mark.parametrize("timeout", [0.0, 0.5])
def test_close_is_bounded_when_the_broker_has_gone(timeout: float) -> None:
    """I-24."""

    async def scenario(broker: MiniBroker) -> None:
        c = consumer(broker, "a")
        assert len(await c.poll(5)) == 5
        broker._server.close()
        broker.drop_connections()
        started = asyncio.get_running_loop().time()
        await c.close(timeout)
        assert asyncio.get_running_loop().time() - started < timeout + 2

    with_broker(scenario)


def test_a_consumer_that_never_reached_a_broker_closes_at_once() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a"):
            pass
        broker.script.append(On("ApiVersionsRequest"))
        c = consumer(broker, "a")
        assert len(await c.poll(0.05)) == 0
        await c.close()

    with_broker(scenario)


@pytest.mark.parametrize("used", [True, False])
def test_a_consumer_that_is_forgotten_says_so_and_ends_what_runs_for_it(used: bool) -> None:
    """One for which nothing runs says nothing."""

    async def scenario(broker: MiniBroker) -> None:
        consumers = [consumer(broker, "a")]
        before = asyncio.all_tasks()
        if used:
            async for record in consumers[0]:
                if record.offset == 2:
                    break
            with pytest.warns(ResourceWarning, match="AsyncConsumer was not closed"):
                consumers.clear()
        else:
            assert consumers.pop().subscription() == ("a",)
        await until(lambda: asyncio.all_tasks() == before)
        assert broker.committed == {}

    with_broker(scenario)


def test_a_consumer_whose_loop_has_ended_says_that_it_was_not_closed() -> None:
    consumers: list[AsyncConsumer] = []

    async def scenario(broker: MiniBroker) -> None:
        consumers.append(consumer(broker, "a"))
        assert len(await consumers[0].poll(5)) == 5

    with pytest.raises(AssertionError):  # the tasks that are left
        with_broker(scenario)
    with pytest.warns(ResourceWarning, match="AsyncConsumer was not closed"):
        consumers.clear()


def test_nothing_listens_is_reported_at_once_and_the_consumer_works_when_one_does() -> None:
    async def scenario(broker: MiniBroker) -> None:
        broker._server.close()
        async with consumer(broker, "a") as c:
            async with asyncio.timeout(1):
                with pytest.raises(PortClosedError) as caught:
                    await c.poll(5)
            assert (caught.value.stage, caught.value.port) == ("tcp", broker.port)
            broker._server = await asyncio.start_server(broker._serve, broker.host, broker.port)
            assert len(await c.poll(5)) == 5

    with_broker(scenario)


def test_polls_that_do_not_wait_are_reported_as_well() -> None:
    async def scenario(broker: MiniBroker) -> None:
        broker._server.close()
        async with consumer(broker, "a") as c:
            with pytest.raises(PortClosedError):
                await asyncio.wait_for(poll_on(c), 20)

    async def poll_on(c: AsyncConsumer) -> None:
        while True:
            assert len(await c.poll(0)) == 0

    with_broker(scenario)


def test_a_missing_topic_is_reported_with_the_nearest_name() -> None:
    """U-07."""

    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "order", missing_topic_timeout_ms=100) as c:
            with pytest.raises(UnknownTopicError, match="Did you mean 'orders'") as caught:
                await c.poll(10)
            assert (caught.value.topic, caught.value.nearest) == ("order", "orders")

    with_broker(scenario, {"orders": 1})


def test_the_nearest_of_thousands_of_names_is_not_searched_for_on_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes a second where there are ten thousands, and heartbeats would have to wait."""
    searched: list[int] = []
    search = difflib.get_close_matches
    monkeypatch.setattr(
        difflib,
        "get_close_matches",
        lambda *args, **keys: searched.append(get_ident()) or search(*args, **keys),
    )

    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "order", missing_topic_timeout_ms=100) as c:
            with pytest.raises(UnknownTopicError, match="Did you mean 'orders'"):
                await c.poll(10)

    with_broker(scenario, {"orders": 1})
    assert searched
    assert get_ident() not in searched


def test_a_topic_that_is_no_longer_subscribed_is_not_reported_missing() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "order", missing_topic_timeout_ms=100) as c:
            session = c._core
            described, release = session.cluster.describe_topics, asyncio.Event()

            async def describe_topics(*args: Any, **keys: Any) -> Any:
                await release.wait()
                return await described(*args, **keys)

            session.cluster.describe_topics = describe_topics  # type: ignore[method-assign]
            while not session.missing_topics._searching:
                await c.poll(0.05)
            await c.subscribe(["a"])
            release.set()
            assert len(await c.poll(10)) == 5

    with_broker(scenario, {"orders": 1, "a": 1})


@pytest.mark.spec("U-07")
def test_a_missing_partition_is_reported_and_the_others_are_read() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, group_id=None, missing_topic_timeout_ms=100) as c:
            await c.assign([A0, TopicPartition("a", 7)])
            assert len(await c.poll(10)) == 5
            with pytest.raises(UnknownTopicError, match=r"Partition a-7 does not exist .* from 0 to 0\."):
                await c.poll(10)

    with_broker(scenario)


@pytest.mark.spec("S0-04")
def test_a_missing_permission_is_reported_by_every_poll_until_it_is_granted() -> None:
    async def scenario(broker: MiniBroker) -> None:
        broker.fetch_errors[A0] = 29
        async with consumer(broker, "a") as c:
            for _ in range(2):
                with pytest.raises(TopicAuthorizationError) as caught:
                    await c.poll(10)
                assert caught.value.topics == ("a",)
            broker.fetch_errors.clear()
            async with asyncio.timeout(5):
                while not (records := await _poll_through(c)):
                    pass
            assert len(records) == 5

    async def _poll_through(c: AsyncConsumer) -> Any:
        try:
            return await c.poll(0.2)
        except TopicAuthorizationError:
            return ()

    with_broker(scenario)


def test_an_undecodable_record_keeps_the_position_and_what_came_before_it() -> None:
    """U-03, B.10.11."""

    def decode(topic: str, headers: Any, data: bytes) -> int:
        if data == b"3":
            raise ValueError("three")
        return int(data)

    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a", value_deserializer=decode) as c:
            assert [record.value for record in await c.poll(5)] == [0, 1, 2]
            for _ in range(2):
                with pytest.raises(DecodeError) as caught:
                    await c.poll(5)
                assert (caught.value.offset, caught.value.raw_value) == (3, b"3")
                assert await c.position(A0) == 3
            c.seek(A0, 4)
            assert [record.value for record in await c.poll(5)] == [4]

    with_broker(scenario)


def test_seek_and_pause_inside_of_a_loop_take_effect_with_the_next_record() -> None:
    """D-22, M-13, M-16."""

    async def scenario(broker: MiniBroker) -> None:
        broker.fill("a", 1, b"x", b"y", b"z")
        async with consumer(broker) as c:
            await c.assign([A0, A1])
            seen: dict[TopicPartition, list[int]] = {A0: [], A1: []}
            sought = False
            async for record in c:
                tp = TopicPartition(record.topic, record.partition)
                seen[tp].append(record.offset)
                if tp == A0 and record.offset == 1 and not sought:
                    sought = True
                    c.seek(A0, 0)
                    assert await c.position(A0) == 0
                if tp == A1 and record.offset == 0:
                    c.pause([A1])
                    assert c.paused() == (A1,)
                if seen[A0][-1:] == [4] and len(seen[A1]) == 1:
                    break
            assert seen == {A0: [0, 1, 0, 1, 2, 3, 4], A1: [0]}
            c.resume([A1])
            assert [record.offset for record in await c.poll(5)] == [1, 2]

    with_broker(scenario, {"a": 2})


@pytest.mark.spec("D-78")
def test_a_poll_inside_of_a_loop_continues_where_the_loop_stopped() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            async for record in c:
                if record.offset == 1:
                    break
            assert [record.offset for record in await c.poll(5)] == [2, 3, 4]

    with_broker(scenario)


def test_calls_about_partitions_of_others_are_refused() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            for call in (
                lambda: c.seek(A0, 0),
                lambda: c.pause([A0]),
                lambda: c.seek_to_end([A0]),
                lambda: c.current_lag(A0),
            ):
                with pytest.raises(NotAssignedError):
                    call()
            with pytest.raises(NotAssignedError):
                await c.position(A0)

    with_broker(scenario)


def test_the_end_of_a_partition_that_is_not_there_says_which_and_why() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, group_id=None) as c:
            with pytest.raises(DeadlineError, match=r"nowhere-7 .* may not exist"):
                await c.end_offsets([TopicPartition("nowhere", 7), A0], timeout=0.3)

    with_broker(scenario)


def test_questions_to_the_cluster() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, group_id=None) as c:
            assert await c.beginning_offsets([A1, A0]) == {A1: 0, A0: 0}
            assert list(await c.end_offsets([A1, A0])) == [A1, A0]
            assert (await c.end_offsets([A0]))[A0] == 5
            found = await c.offsets_for_times({A0: 3, A1: 3})
            assert (found[A0] and found[A0].offset, found[A1]) == (3, None)
            infos = await c.partitions_for("a")
            assert [(info.partition, info.leader) for info in infos] == [(0, 0), (1, 0)]
            assert await c.partitions_for("b") == []
            assert list(await c.list_topics()) == ["a"]
            await c.assign([A0])
            assert c.current_lag(A0) is None
            await c.poll(5, max_records=2)
            assert c.current_lag(A0) == 3

    with_broker(scenario, {"a": 2})


def test_topics_without_a_group_are_refused_at_construction() -> None:
    with pytest.raises(ConfigError, match="group_id"):
        AsyncConsumer("a", bootstrap_servers="localhost:1")


@pytest.mark.spec("S1-16", "S1-20")
def test_a_pattern_follows_whole_names_and_topics_that_come_later() -> None:
    async def scenario(broker: MiniBroker) -> None:
        broker.fill("ab", 0, b"x")
        settings = {"metadata_max_age_ms": 50}
        async with consumer(broker, **settings) as c:
            await c.subscribe(pattern=re.compile("a."))
            assert [record.topic for record in await c.poll(5)] == ["ab"]
            assert c.subscription() == ("ab",)
            broker.topics["ac"] = 1
            broker.fill("ac", 0, b"y")
            found: list[str] = []
            while found != ["ac"]:
                found += [record.topic for record in await c.poll(1) if record.topic != "ab"]
            assert c.subscription() == ("ab", "ac")
        assert "a" not in {topic for tp in broker.committed for topic in [tp.topic]}

    with_broker(scenario, {"a": 1, "ab": 1, "xab": 1})


def test_a_commit_that_is_refused_names_the_reason_and_what_is_not_stored() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a", enable_auto_commit=False) as c:
            await c.poll(5)
            broker.commit_error = 25
            with pytest.raises(CommitFailedError) as caught:
                await c.commit()
            assert caught.value.reason == "evicted"
            assert caught.value.uncommitted == {A0: OffsetAndMetadata(5, 0)}
            broker.commit_error = 0
            while broker.generation < 2:
                await c.poll(0.1)

    with_broker(scenario)


@pytest.mark.spec("S1-17")
def test_callbacks_of_commits_run_in_their_order_inside_a_later_call() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            await c.poll(5)
            called: list[tuple[int, Exception | None]] = []
            for offset in (1, 2, 3):
                c.commit_async({A0: OffsetAndMetadata(offset)}, lambda o, e: called.append((o[A0].offset, e)))
            await until(lambda: len(broker.commits) == 3)
            await asyncio.sleep(0.05)
            assert called == []
            await c.poll(0)
            assert called == [(1, None), (2, None), (3, None)]
            broker.commit_error = 14
            c.commit_async({A0: OffsetAndMetadata(4)}, lambda o, e: called.append((o[A0].offset, e)))
            await asyncio.sleep(0.1)
            broker.commit_error = 0
            await c.commit()
            failed = called[-1][1]
            assert isinstance(failed, CommitFailedError)
            assert failed.retriable

    with_broker(scenario)


def test_a_long_poll_keeps_the_member_in_the_group() -> None:
    async def scenario(broker: MiniBroker) -> None:
        settings = {"max_poll_interval_ms": 300, "session_timeout_ms": 6_000}
        async with consumer(broker, "a", **settings) as c:
            await c.poll(5)
            assert len(await c.poll(1.0)) == 0
            assert broker.of("LeaveGroupRequest") == []
            assert broker.generation == 1

    with_broker(scenario)


@pytest.mark.parametrize("steps", range(0, 60, 3))
def test_a_poll_cancelled_at_any_point_loses_and_repeats_nothing(steps: int) -> None:
    """I-30, sampled."""

    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            offsets: list[int] = []
            polling = asyncio.create_task(c.poll(5, max_records=2))
            for _ in range(steps):
                await asyncio.sleep(0)
            polling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                offsets += [record.offset for record in await polling]
            while len(offsets) < 5:
                offsets += [record.offset for record in await c.poll(5, max_records=2)]
            assert offsets == [0, 1, 2, 3, 4]
            assert broker.generation == 1

    with_broker(scenario)
