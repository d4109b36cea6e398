"""The requests of the poll loop and of automatic commits, against a scripted broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kclient import GroupMetadata, TopicPartition
from kclient.errors import UsageError, WakeupError
from kclient.group.assignors import Assignment, Assignor, Member, Topics
from tests.call_counter import CallCounter
from tests.consumer.mini_broker import MiniBroker
from tests.consumer.support import A0, consumer, with_broker
from tests.consumer.test_rebalance import Journal, polled_until
from tests.realtime import within
from tests.waiting import until

COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE = 14, 15
INVALID_COMMIT_OFFSET_SIZE, REBALANCE_IN_PROGRESS = 28, 27


@pytest.mark.spec("S0-01")
def test_without_a_coordinator_no_positions_are_requested() -> None:
    async def scenario(broker: MiniBroker) -> None:
        right = broker.default_responses["FindCoordinatorRequest"]

        def nobody(request: Any) -> Any:
            response = right(request)
            response.error_code = COORDINATOR_NOT_AVAILABLE
            return response

        broker.default_responses["FindCoordinatorRequest"] = nobody
        async with consumer(broker, "a") as c:
            for _ in range(5):
                assert len(await c.poll(0.05)) == 0
            asked = {seen.name for seen in broker.requests}
            assert asked == {"MetadataRequest", "FindCoordinatorRequest"}
            broker.default_responses["FindCoordinatorRequest"] = right
            assert len(await c.poll(5)) == 5

    with_broker(scenario)


@pytest.mark.spec("S1-13", "S3-16")
def test_a_poll_returns_in_time_and_empty_while_metadata_is_not_answered() -> None:
    async def scenario(broker: MiniBroker) -> None:
        right, broker.default_responses["MetadataRequest"] = broker.default_responses["MetadataRequest"], None
        async with consumer(broker, "a") as c:
            started = asyncio.get_running_loop().time()
            assert len(await c.poll(0.1)) == 0
            assert asyncio.get_running_loop().time() - started < 5
            broker.default_responses["MetadataRequest"] = right
            broker.drop_connections()
            assert len(await c.poll(10)) == 5

    with_broker(scenario)


@pytest.mark.spec("S1-21")
def test_a_poll_sleeps_while_every_broker_is_down() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, group_id=None, reconnect_backoff_max_ms=100) as c:
            await c.assign([A0])
            assert len(await c.poll(5)) == 5
            broker._server.close()
            broker.drop_connections()
            await c.poll(0.1)
            seen = c._core.changed.count
            with CallCounter() as made:  # a poll that spins makes millions, with or without news
                await c.poll(1.0)
            assert c._core.changed.count - seen < 100
            assert made.count < 100_000

    with_broker(scenario)


@pytest.mark.spec("S4-03")
def test_news_without_records_neither_end_a_poll_early_nor_make_it_longer() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, group_id=None) as c:
            await c.assign([A0])
            assert len(await c.poll(5)) == 5

            async def news() -> None:
                for _ in range(150):
                    c.pause([A0])
                    await asyncio.sleep(0.01)
                    c.resume([A0])
                    await asyncio.sleep(0.01)

            telling = asyncio.create_task(news())
            with within(1.5) as took:
                assert len(await c.poll(0.3)) == 0
            assert took.seconds >= 0.25
            assert not telling.done()
            telling.cancel()
            with within(0.9):
                assert len(await c.poll(0.1)) == 0

    with_broker(scenario)


@pytest.mark.spec("S3-07")
def test_polls_and_the_time_between_them_are_counted() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            await c.poll(5)
            await asyncio.sleep(0.1)
            await c.poll(0)
            numbers = c.metrics()
            assert numbers.value("poll-total") == 2
            assert 100 <= numbers.value("time-between-poll-max") < 5000
            assert (numbers.value("rebalance-total"), numbers.value("assigned-partitions")) == (1, 1)
            await c.commit()
            assert c.metrics().value("commit-total") == 1

    with_broker(scenario)


@pytest.mark.spec("S3-10", "S3-11")
def test_a_poll_that_ends_does_not_end_the_join_in_flight() -> None:
    """M-77."""

    async def scenario(broker: MiniBroker) -> None:
        take = broker._take

        def slowly(seen: Any) -> Any:
            step = take(seen)
            return step._replace(delay=0.5) if seen.name == "JoinGroupRequest" else step

        broker._take = slowly  # type: ignore[method-assign]
        async with consumer(broker, "a") as c:
            polls = 0
            while not (records := await c.poll(0.05)):
                polls += 1
            assert len(records) == 5
            assert polls > 10
            assert len(broker.of("JoinGroupRequest")) == 2  # the first response has only the member id

    with_broker(scenario)


@pytest.mark.spec("S3-12", "S3-13", "S4-04")
def test_the_next_fetch_is_under_way_while_the_application_works() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            assert len(await c.poll(5)) == 5
            broker.fill("a", 0, b"5", b"6")
            await until(lambda: c.metrics().value("buffered-bytes") > 0)
            assert [record.offset for record in await c.poll(0)] == [5, 6]

    with_broker(scenario)


@pytest.mark.spec("S3-14")
def test_a_wakeup_while_records_are_decoded_waits_for_the_next_poll() -> None:
    async def scenario(broker: MiniBroker) -> None:
        def decode(topic: str, headers: Any, data: bytes) -> bytes:
            c._core.timeouts.wakeup()
            return data

        async with consumer(broker, "a", value_deserializer=decode) as c:
            assert len(await c.poll(5)) == 5
            with pytest.raises(WakeupError):
                await c.poll(5)

    with_broker(scenario)


@pytest.mark.spec("S1-32", "S3-19")
def test_a_commit_during_iteration_stores_the_offset_after_the_current_record() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a", enable_auto_commit=False) as c:
            async for record in c:
                await c.commit()
                assert broker.committed[A0].offset == record.offset + 1
                if record.offset == 3:
                    break
        assert [commit[A0] for commit in broker.commits] == [1, 2, 3, 4]

    with_broker(scenario)


@pytest.mark.spec("S3-20", "S4-45")
def test_an_automatic_commit_that_may_succeed_later_is_repeated_soon() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a", auto_commit_interval_ms=2_000) as c:
            await c.poll(5)
            broker.commit_error = 14
            await polled_until(c, lambda: broker.commits)
            broker.commit_error = 0
            tried = len(broker.commits)
            with within(1.5):
                await polled_until(c, lambda: len(broker.commits) > tried)
            assert broker.committed[A0].offset == 5

    with_broker(scenario)


@pytest.mark.spec("S3-21", "S3-22")
def test_any_other_failure_of_an_automatic_commit_is_logged_and_the_interval_continues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a", auto_commit_interval_ms=300) as c:
            await c.poll(5)
            broker.commit_error = INVALID_COMMIT_OFFSET_SIZE
            await polled_until(c, lambda: len(broker.commits) == 1)
            broker.commit_error = 0
            started = asyncio.get_running_loop().time()
            await polled_until(c, lambda: "failed" in caplog.text)
            assert "auto-committed" not in caplog.text
            await polled_until(c, lambda: len(broker.commits) == 2)
            assert asyncio.get_running_loop().time() - started > 0.2
            await polled_until(c, lambda: "auto-committed" in caplog.text)

    with caplog.at_level(logging.DEBUG, "kclient.commit"):
        with_broker(scenario)
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert any("INVALID_COMMIT_OFFSET_SIZE" in record.getMessage() for record in warned)
    stored = {record.levelno for record in caplog.records if "auto-committed" in record.getMessage()}
    assert stored == {logging.DEBUG}


@pytest.mark.spec("S3-20", "U-28")
@pytest.mark.parametrize("automatic", [True, False])
def test_commits_that_keep_failing_are_reported_once_in_a_while(
    automatic: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(broker: MiniBroker) -> None:
        settings = {"enable_auto_commit": automatic, "auto_commit_interval_ms": 50, "retry_backoff_ms": 10}
        async with consumer(broker, "a", **settings) as c:
            await c.poll(5)
            broker.commit_error = COORDINATOR_LOAD_IN_PROGRESS
            while len(broker.commits) < 4:
                if not automatic:
                    c.commit_async()
                await c.poll(0.05)
            broker.commit_error = 0

    with caplog.at_level(logging.WARNING, "kclient.commit"):
        with_broker(scenario)
    (logged,) = caplog.records
    assert logged.getMessage().startswith("an automatic commit" if automatic else "an asynchronous commit")
    assert "COORDINATOR_LOAD_IN_PROGRESS (14) for a-0" in logged.getMessage()
    assert logged.error == "KC-420"  # type: ignore[attr-defined]


@pytest.mark.spec("S3-47")
def test_a_new_assignment_puts_the_automatic_commit_off_for_a_whole_interval() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a", auto_commit_interval_ms=60_000) as c:
            await c.poll(5)
            due = c._core.group.commits.auto_commit_at()
            assert due is not None
            await asyncio.sleep(0.05)
            broker.heartbeat_errors = [REBALANCE_IN_PROGRESS]
            await polled_until(c, lambda: broker.generation == 2 and c.assignment())
            later = c._core.group.commits.auto_commit_at()
            assert later is not None
            assert later - due >= 0.05

    with_broker(scenario)


@pytest.mark.spec("S3-26", "S3-51")
def test_joining_reports_the_settings_of_the_group() -> None:
    async def scenario(broker: MiniBroker) -> None:
        settings = {"session_timeout_ms": 7_000, "max_poll_interval_ms": 90_000, "group_instance_id": "i-1"}
        join = broker.JoinGroup

        def static(request: Any) -> Any:
            request.member_id = request.member_id or "i-1-uuid"
            return join(request)

        broker.default_responses["JoinGroupRequest"] = static
        async with consumer(broker, "a", **settings) as c:
            await c.poll(5)
            assert c.group_metadata().group_instance_id == "i-1"
        sent = broker.of("JoinGroupRequest")[0]
        assert (sent.group_id, sent.group_instance_id) == ("g", "i-1")
        assert (sent.session_timeout_ms, sent.rebalance_timeout_ms) == (7_000, 90_000)
        assert broker.of("LeaveGroupRequest") == []

    with_broker(scenario)


class Everything(Assignor):
    """Gives all partitions to the first member."""

    name = "everything"

    def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
        everything = [
            TopicPartition(topic, number) for topic in topics for number in range(len(topics[topic]))
        ]
        return {members[0].member_id: Assignment(tuple(everything))}


@pytest.mark.spec("S3-39", "S3-46", "S3-48")
def test_an_assignor_of_ones_own_shares_out_and_learns_of_the_assignment_before_the_listener() -> None:
    calls: list[Any] = []
    c: Any = None

    class Noting(Everything):
        def on_assignment(self, assignment: Assignment, metadata: GroupMetadata) -> None:
            calls.append(("assignor", assignment.partitions, metadata, c.assignment()))

    class Listener(Journal):
        async def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
            calls.append(("listener", partitions, c.assignment()))

    async def scenario(broker: MiniBroker) -> None:
        nonlocal c
        settings = {"partition_assignment_strategy": [Noting()], "listener": Listener()}
        async with consumer(broker, "a", group_instance_id="east", **settings) as c:
            await c.poll(5)
            me = c.group_metadata()
        assert (me.group_id, me.generation_id, me.group_instance_id) == ("g", 1, "east")
        assert me.member_id
        assert calls == [("assignor", (A0,), me, ()), ("listener", (A0,), (A0,))]

    with_broker(scenario)


@pytest.mark.spec("S3-46")
@pytest.mark.parametrize("raised", [LookupError, SystemExit, asyncio.CancelledError])
def test_what_an_assignor_raises_about_its_assignment_is_raised_once_and_the_assignment_stands(
    raised: type[BaseException],
) -> None:
    class Failing(Everything):
        def on_assignment(self, assignment: Assignment, metadata: GroupMetadata) -> None:
            raise raised

    async def scenario(broker: MiniBroker) -> None:
        journal = Journal()
        settings = {"partition_assignment_strategy": [Failing()], "listener": journal}
        async with consumer(broker, "a", **settings) as c:
            with pytest.raises(
                UsageError, match=f"'everything' raised {raised.__name__} in on_assign"
            ) as caught:
                await c.poll(5)
            assert isinstance(caught.value.__cause__, raised)
            assert (c.assignment(), journal.calls) == ((A0,), [("assigned", (A0,))])
            assert len(await c.poll(5)) == 5
            assert broker.generation == 1

    with_broker(scenario)


@pytest.mark.spec("S3-54")
def test_a_rebalance_is_logged_with_its_partitions(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            await c.poll(5)
            broker.heartbeat_errors = [25]
            await polled_until(c, lambda: broker.generation == 2 and c.assignment())

    with caplog.at_level(logging.INFO, "kclient.group"):
        with_broker(scenario)
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    for start in ("partitions assigned by range: a-0", "partitions lost, ", "partitions revoked: a-0"):
        assert any(line.startswith(start) for line in lines), start


@pytest.mark.spec("S0-63")
def test_a_healthy_start_is_reported_in_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    """U-28: at most ten lines, however many partitions there are; where they begin is one line for a response."""

    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            await polled_until(c, lambda: len(c.assignment()) == 200)
            await asyncio.gather(*(c.position(tp) for tp in c.assignment()))

    with caplog.at_level(logging.INFO, "kclient"):
        with_broker(scenario, topics={"a": 200})
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.INFO]
    assert len(lines) <= 10
    assert len([line for line in lines if line.startswith("Beginning ")]) == 1


def test_an_application_that_is_too_slow_loses_its_partitions_and_comes_back_with_its_next_poll() -> None:
    """I-28, D-01."""

    async def scenario(broker: MiniBroker) -> None:
        journal = Journal()
        settings = {"max_poll_interval_ms": 200, "listener": journal, "enable_auto_commit": False}
        async with consumer(broker, "a", **settings) as c:
            await c.poll(5, max_records=2)
            await asyncio.sleep(0.5)
            assert len(broker.of("LeaveGroupRequest")) == 1
            assert c.assignment() == (A0,)
            await polled_until(c, lambda: broker.generation == 2 and c.assignment())
            assert journal.calls == [("assigned", (A0,)), ("lost", (A0,)), ("assigned", (A0,))]

    with_broker(scenario)
