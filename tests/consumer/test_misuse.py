"""Misuse of an AsyncConsumer: no record is lost, no callback runs twice, and no task is left."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from typing import Any

import pytest

from kclient import AsyncConsumer, RebalanceListener, TopicPartition
from kclient.errors import ArgumentError, ClosedError, ConfigError, DeadlineError, WakeupError
from kclient.group import lag_async
from tests.consumer.mini_broker import MiniBroker
from tests.consumer.support import A0, consumer, with_broker
from tests.realtime import within
from tests.scripted_broker import On
from tests.waiting import until

Partitions = tuple[TopicPartition, ...]


# --- moving about while iterating


@pytest.mark.spec("B.2", "D-31")
def test_a_seek_in_the_loop_holds_for_the_poll_after_it() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            async for _ in c:
                c.seek(A0, 3)
                break
            assert [record.offset for record in await c.poll(5)] == [3, 4]

    with_broker(scenario)


@pytest.mark.spec("B.2", "D-22")
def test_pausing_twice_does_not_undo_a_seek() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            async for _ in c:
                c.pause([A0])
                c.seek(A0, 4)
                c.pause([A0])
                c.resume([A0])
                break
            assert await c.position(A0) == 4

    with_broker(scenario)


# --- wakeup


@pytest.mark.spec("S1-12", "S3-09")
def test_a_wakeup_just_before_a_poll_ends_that_poll() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            assert len(await c.poll(5)) == 5
            c.wakeup()
            with pytest.raises(WakeupError):
                await c.poll(0)
            await c.poll(0)

    with_broker(scenario)


@pytest.mark.spec("B.3.7")
def test_a_wakeup_of_two_waiting_calls_is_no_deadline_for_either() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker) as c:
            await c.committed([A0])  # the coordinator is known from here on
            broker.script += [On("OffsetFetchRequest"), On("MetadataRequest")]
            calls = [asyncio.create_task(c.committed([A0], 10)), asyncio.create_task(c.list_topics(10))]
            await until(lambda: not broker.script)
            c.wakeup()
            ended = await asyncio.gather(*calls, return_exceptions=True)
            assert not any(isinstance(end, DeadlineError) for end in ended)
            assert any(isinstance(end, WakeupError) for end in ended)

    with_broker(scenario)


# --- rebalances on demand


@pytest.mark.spec("I-25")
@pytest.mark.parametrize("reason", [5, b"late", ["late"], "\ud800"])
def test_a_reason_that_no_request_can_carry_leaves_the_membership_alone(reason: Any) -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a") as c:
            assert len(await c.poll(5)) == 5
            with pytest.raises(ArgumentError, match="reason"):
                c.enforce_rebalance(reason)
            await c.poll(0.1)
            assert c.assignment() == (A0,)
            assert len(broker.of("JoinGroupRequest")) <= 2  # the second asks with the member id

    with_broker(scenario)


# --- leaving beside a listener


class Slow(RebalanceListener):
    """Its revocation waits for `go`; `calls` holds the partitions of its calls, `ended` counts those that returned."""

    def __init__(self) -> None:
        self.calls: list[Partitions] = []
        self.entered, self.go = asyncio.Event(), asyncio.Event()
        self.ended = 0

    async def on_partitions_revoked(self, partitions: Partitions) -> None:
        self.calls.append(partitions)
        self.entered.set()
        await self.go.wait()
        self.ended += 1


@pytest.mark.spec("B.18", "D-12", "D-15")
@pytest.mark.parametrize("way", ["close", "unsubscribe"])
def test_leaving_waits_for_the_listener_that_runs_inside_a_poll(way: str) -> None:
    async def scenario(broker: MiniBroker) -> None:
        slow = Slow()
        c = consumer(broker, "a", listener=slow)
        assert len(await c.poll(5)) == 5
        c.enforce_rebalance()
        poll = asyncio.create_task(c.poll(5))
        await slow.entered.wait()
        leaving = asyncio.create_task(getattr(c, way)())
        await asyncio.sleep(0.05)
        assert not leaving.done()
        assert broker.of("LeaveGroupRequest") == []
        slow.go.set()
        await leaving
        assert slow.calls == [(A0,)]
        assert slow.ended == 1
        await c.close()
        await asyncio.gather(poll, return_exceptions=True)

    with_broker(scenario)


@pytest.mark.spec("B.18", "I-24")
def test_a_listener_that_closes_its_consumer_is_notified_once() -> None:
    async def scenario(broker: MiniBroker) -> None:
        calls = []

        class Closing(RebalanceListener):
            async def on_partitions_revoked(self, partitions: Partitions) -> None:
                calls.append(partitions)
                await asyncio.create_task(c.close(5))  # another task, and still the same call

        c = consumer(broker, "a", listener=Closing())
        assert len(await c.poll(5)) == 5
        c.enforce_rebalance()
        with within(2), pytest.raises(ClosedError):
            await c.poll(5)
        assert calls == [(A0,)]

    with_broker(scenario)


@pytest.mark.spec("B.18", "I-24", "M-89")
def test_close_keeps_its_timeout_with_a_hanging_listener_and_a_silent_coordinator() -> None:
    async def scenario(broker: MiniBroker) -> None:
        slow = Slow()
        c = consumer(broker, "a", listener=slow, enable_auto_commit=False, heartbeat_interval_ms=10_000)
        assert len(await c.poll(5)) == 5
        broker.script.append(On("LeaveGroupRequest"))
        with within(0.9):
            await c.close(0.5)
        await until(lambda: broker.of("LeaveGroupRequest"))

    with_broker(scenario)


@pytest.mark.spec("I-23", "I-25")
def test_a_listener_that_waits_for_who_unsubscribes_delays_it_no_longer_than_a_request() -> None:
    async def scenario(broker: MiniBroker) -> None:
        class Waiting(RebalanceListener):
            async def on_partitions_revoked(self, partitions: Partitions) -> None:
                entered.set()
                await leaving

        async def unsubscribe() -> None:
            await entered.wait()
            await c.unsubscribe()

        entered = asyncio.Event()
        async with consumer(broker, "a", listener=Waiting(), request_timeout_ms=600) as c:
            leaving = asyncio.create_task(unsubscribe())
            assert len(await c.poll(5)) == 5
            c.enforce_rebalance()
            await asyncio.wait_for(c.poll(1), 5)
            assert leaving.done()

    with_broker(scenario)


@pytest.mark.spec("B.2", "S0-09", "S3-48")
def test_a_seek_in_the_listener_comes_before_commit_and_reset_policy() -> None:
    async def scenario(broker: MiniBroker) -> None:
        class Seeking(RebalanceListener):
            def on_partitions_assigned(self, partitions: Partitions) -> None:
                for partition in partitions:
                    c.seek(partition, 2)

        async with consumer(broker, "a", listener=Seeking(), enable_auto_commit=False) as c:
            for _ in range(5):
                async with asyncio.timeout(5):
                    while not (batch := await c.poll(5)):
                        pass
                assert [record.offset for record in batch] == [2, 3, 4]
                await c.commit()
                c.enforce_rebalance()

    with_broker(scenario)


# --- what is accepted is used


@pytest.mark.spec("B.1")
def test_what_is_no_time_no_timeout_and_no_choice_is_refused_before_anything_is_asked() -> None:
    async def scenario() -> None:
        consumer: Any = AsyncConsumer(bootstrap_servers="127.0.0.1:1", group_id="g")
        with pytest.raises(ArgumentError, match="mapping of TopicPartition to a time, not 5"):
            await consumer.offsets_for_times(5)
        with pytest.raises(ArgumentError, match=r"leave is True, False, or None .*, not 'x'"):
            await consumer.close(leave="x")
        await consumer.close()
        soon: Any = "soon"
        with pytest.raises(ArgumentError, match=r"A timeout is a number of seconds.*'soon'"):
            await lag_async("g", bootstrap_servers="127.0.0.1:1", timeout=soon)

    asyncio.run(scenario())


def test_a_listener_without_topics_is_refused() -> None:
    async def scenario(broker: MiniBroker) -> None:
        with pytest.raises(ConfigError, match="subscribe"):
            consumer(broker, listener=Slow())

    with_broker(scenario)


@pytest.mark.spec("B.2", "B.8")
def test_a_lookup_with_timeout_zero_is_sent_and_not_waited_for() -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker) as c:
            assert await c.offsets_for_times({A0: 3}, timeout=0) == {A0: None}
            await until(lambda: broker.of("ListOffsetsRequest"))
            assert await c.end_offsets([A0], timeout=0) == {}
            await until(lambda: len(broker.of("ListOffsetsRequest")) == 2)

    with_broker(scenario)


@pytest.mark.spec("B.1.1", "B.18")
def test_close_closes_deserializers_of_javas_shape_and_nothing_else() -> None:
    class Registry:
        closed = False

        def decode(self, topic: str, headers: object, data: bytes) -> bytes:
            return data

        def close(self) -> None:
            self.closed = True

    class Shaped(Registry):
        deserialize = Registry.decode

    async def scenario(broker: MiniBroker) -> None:
        mine, shaped = Registry(), Shaped()
        async with consumer(broker, "a", key_deserializer=shaped, value_deserializer=mine.decode) as c:
            assert len(await c.poll(5)) == 5
        assert (mine.closed, shaped.closed) == (False, True)

    with_broker(scenario)


# --- cancelled at any await


async def cancelled_after(steps: int, call: Awaitable[Any]) -> Any:
    """What the call returned, None where it was cancelled after so many turns of the loop."""
    task = asyncio.ensure_future(call)
    for _ in range(steps):
        if task.done():
            break
        await asyncio.sleep(0)
    task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return None


@pytest.mark.spec("I-30", "D-77", "M-95")
def test_polls_cancelled_at_any_await_of_a_rebalance_lose_and_double_nothing() -> None:
    async def scenario(broker: MiniBroker) -> None:
        class Committing(RebalanceListener):
            async def on_partitions_revoked(self, partitions: Partitions) -> None:
                await asyncio.sleep(0.001)

            async def on_partitions_assigned(self, partitions: Partitions) -> None:
                await asyncio.sleep(0.001)

        records = 2_000
        broker.fill("a", 0, *(b"%d" % number for number in range(5, records)))
        chance, seen, cut = random.Random(3), [], 0
        async with consumer(broker, "a", listener=Committing(), enable_auto_commit=False) as c:
            async with asyncio.timeout(25):
                while len(seen) < records:
                    if chance.random() < 0.1:
                        c.enforce_rebalance()
                    batch = await cancelled_after(chance.randrange(60), c.poll(5, max_records=10))
                    cut += batch is None
                    seen += [record.offset for record in batch or ()]
                    if batch:
                        await c.commit()
        assert cut > 50
        assert broker.generation > 5
        assert seen == list(range(records))

    with_broker(scenario)


@pytest.mark.spec("I-30", "I-24", "B.18")
@pytest.mark.parametrize("steps", range(1, 40, 3))
def test_a_close_cancelled_at_any_await_leaves_nothing(steps: int) -> None:
    async def scenario(broker: MiniBroker) -> None:
        class Slow(RebalanceListener):
            async def on_partitions_revoked(self, partitions: Partitions) -> None:
                await c.commit()

        before = asyncio.all_tasks()
        c = consumer(broker, "a", listener=Slow())
        assert len(await c.poll(5)) == 5
        await cancelled_after(steps, c.close())
        with pytest.raises(ClosedError):
            await c.poll(0)
        await until(
            lambda: not [task for task in asyncio.all_tasks() - before if "kclient" in task.get_name()]
        )

    with_broker(scenario)


@pytest.mark.spec("I-30", "B.18")
@pytest.mark.parametrize("steps", range(1, 30, 3))
def test_an_unsubscribe_cancelled_at_any_await_can_be_followed_by_another_subscription(steps: int) -> None:
    async def scenario(broker: MiniBroker) -> None:
        async with consumer(broker, "a", enable_auto_commit=False) as c:
            assert len(await c.poll(5)) == 5
            await cancelled_after(steps, c.unsubscribe())
            await c.subscribe(["a"])
            async with asyncio.timeout(10):
                while not (batch := await c.poll(5)):
                    pass
            assert [record.offset for record in batch] == [0, 1, 2, 3, 4]

    with_broker(scenario)


@pytest.mark.spec("B.18", "I-24", "U-10")
@pytest.mark.parametrize("state", ["new", "starting", "unreachable", "joining", "rebalancing", "broker gone"])
def test_close_ends_in_time_in_every_state(state: str) -> None:
    async def scenario(broker: MiniBroker) -> None:
        settings = {"bootstrap_servers": "127.0.0.1:1"} if state == "unreachable" else {}
        c = consumer(broker, "a", **settings)
        poll = None
        if state in ("starting", "unreachable"):
            poll = asyncio.create_task(c.poll(20))
            await asyncio.sleep(0)
        if state == "joining":
            broker.script.append(On("JoinGroupRequest"))
            poll = asyncio.create_task(c.poll(20))
            await until(lambda: broker.of("JoinGroupRequest"))
        if state in ("rebalancing", "broker gone"):
            assert len(await c.poll(5)) == 5
        if state == "rebalancing":
            broker.script.append(On("JoinGroupRequest"))
            c.enforce_rebalance()
            poll = asyncio.create_task(c.poll(20))
            await until(lambda: not broker.script)
        if state == "broker gone":
            broker._server.close()
            broker.drop_connections()
        with within(1.5):
            await c.close(1)
        if poll is not None:
            await asyncio.gather(poll, return_exceptions=True)

    with_broker(scenario)
