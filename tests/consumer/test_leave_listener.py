"""Calls that a rebalance listener makes while its consumer leaves the group."""

from __future__ import annotations

import asyncio

import pytest

from kclient import RebalanceListener, TopicPartition
from kclient.errors import ClosedError
from tests.consumer.mini_broker import MiniBroker
from tests.consumer.support import A0, consumer, with_broker
from tests.waiting import until


@pytest.mark.spec("S3-34", "B.13.8", "B.18", "I-12")
@pytest.mark.parametrize("way", ["close", "unsubscribe"])
def test_a_commit_while_leaving_is_that_of_a_member(way: str) -> None:
    """Generation and member id go with it: a coordinator refuses commits from outside of a group with members."""

    async def scenario(broker: MiniBroker) -> None:
        class Committing(RebalanceListener):
            async def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
                await c.commit()

        async with consumer(broker, "a", listener=Committing(), enable_auto_commit=False) as c:
            assert len(await c.poll(5)) == 5
            member = c.group_metadata()
            await getattr(c, way)()
            (sent,) = broker.of("OffsetCommitRequest")
            assert (sent.generation_id_or_member_epoch, sent.member_id) == (
                member.generation_id,
                member.member_id,
            )
            assert broker.committed[A0].offset == 5
            names = [seen.name for seen in broker.requests]
            assert names.index("OffsetCommitRequest") < names.index("LeaveGroupRequest")

    with_broker(scenario)


@pytest.mark.spec("B.13.8", "D-15")
def test_a_listener_that_unsubscribes_while_leaving_is_notified_once() -> None:
    async def scenario(broker: MiniBroker) -> None:
        calls: list[tuple[TopicPartition, ...]] = []

        class Leaving(RebalanceListener):
            async def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
                calls.append(partitions)
                await c.unsubscribe()

        async with consumer(broker, "a", listener=Leaving()) as c:
            await c.poll(5)
        assert calls == [(A0,)]
        assert len(broker.of("LeaveGroupRequest")) == 1

    with_broker(scenario)


@pytest.mark.spec("S1-17", "S3-34", "B.18")
@pytest.mark.parametrize("way", ["close", "unsubscribe"])
def test_an_asynchronous_commit_while_leaving_is_answered_before_the_member_goes(way: str) -> None:
    async def scenario(broker: MiniBroker) -> None:
        answered: list[Exception | None] = []

        class Committing(RebalanceListener):
            def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
                c.commit_async(callback=lambda offsets, error: answered.append(error))

        async with consumer(broker, "a", listener=Committing(), enable_auto_commit=False) as c:
            assert len(await c.poll(5)) == 5
            await getattr(c, way)()
            assert answered == [None]
            assert broker.committed[A0].offset == 5

    with_broker(scenario)


@pytest.mark.spec("B.14.2", "B.18", "B.13.8")
def test_a_callback_that_raises_does_not_keep_the_member_in_the_group() -> None:
    """The member leaves, its error comes out at the end, and another subscription starts again."""

    async def scenario(broker: MiniBroker) -> None:
        def callback(offsets: object, error: object) -> None:
            raise RuntimeError("mine")

        async with consumer(broker, "a", enable_auto_commit=False) as c:
            assert len(await c.poll(5)) == 5
            c.commit_async(callback=callback)
            await until(lambda: broker.committed)
            await asyncio.sleep(0.05)
            with pytest.raises(RuntimeError, match="mine"):
                await c.unsubscribe()
            assert len(broker.of("LeaveGroupRequest")) == 1
            assert c.assignment() == ()
            await c.subscribe(["a"])
            async with asyncio.timeout(10):
                while c.assignment() != (A0,):
                    await c.poll(0.1)

    with_broker(scenario)


@pytest.mark.spec("I-30", "B.18")
def test_an_unsubscribe_cancelled_in_a_callback_has_not_happened() -> None:
    async def scenario(broker: MiniBroker) -> None:
        entered = asyncio.Event()

        async def callback(offsets: object, error: object) -> None:
            entered.set()
            await asyncio.sleep(60)

        async with consumer(broker, "a", enable_auto_commit=False) as c:
            assert len(await c.poll(5)) == 5
            c.commit_async(callback=callback)
            await until(lambda: broker.committed)
            await asyncio.sleep(0.05)
            leaving = asyncio.create_task(c.unsubscribe())
            await entered.wait()
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
            assert (c.subscription(), c.assignment()) == (("a",), (A0,))
            assert broker.of("LeaveGroupRequest") == []
            broker.fill("a", 0, b"one more")
            assert [record.offset for record in await c.poll(5)] == [5]

    with_broker(scenario)


@pytest.mark.spec("I-30", "I-12", "B.13.8")
def test_a_listener_that_an_unsubscribe_cut_short_did_not_reach_is_notified_by_the_next_call() -> None:
    """The partitions are gone by then: they are lost."""

    async def scenario(broker: MiniBroker) -> None:
        calls: list[str] = []

        class Journal(RebalanceListener):
            def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
                calls.append("assigned")

            def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
                calls.append("revoked")

            def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
                assert partitions == (A0,)
                calls.append("lost")

        journal = Journal()
        async with consumer(broker, "a", listener=journal, enable_auto_commit=False) as c:
            assert len(await c.poll(5)) == 5
            leaving = asyncio.create_task(c.unsubscribe())
            await asyncio.sleep(0)
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
            assert leaving.cancelled()
            assert calls == ["assigned"]
            await c.subscribe(["a"], listener=journal)
            async with asyncio.timeout(10):
                while calls.count("assigned") < 2:
                    await c.poll(0.1)
            assert calls == ["assigned", "lost", "assigned"]

    with_broker(scenario)


@pytest.mark.spec("B.18", "I-12")
@pytest.mark.parametrize("who", ["the listener", "another task"])
def test_what_is_subscribed_to_while_an_unsubscribe_waits_stays(who: str) -> None:
    """The call ends what was there before it."""

    async def scenario(broker: MiniBroker) -> None:
        entered, subscribed = asyncio.Event(), asyncio.Event()

        class Following(RebalanceListener):
            async def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
                entered.set()
                if who == "the listener":
                    await c.subscribe(["b"])
                else:
                    await subscribed.wait()

        async with consumer(broker, "a", listener=Following(), enable_auto_commit=False) as c:
            assert len(await c.poll(5)) == 5
            leaving = asyncio.create_task(c.unsubscribe())
            await entered.wait()
            if who == "another task":
                await c.subscribe(["b"])
                subscribed.set()
            await leaving
            assert (c.subscription(), c.assignment()) == (("b",), ())
            assert len(broker.of("LeaveGroupRequest")) == 1
            async with asyncio.timeout(10):
                while c.assignment() != (TopicPartition("b", 0),):
                    await c.poll(0.1)

    with_broker(scenario, {"a": 1, "b": 1})


@pytest.mark.spec("B.18", "I-24")
def test_a_call_that_subscribes_while_the_consumer_is_closed_joins_nothing() -> None:
    """At every turn of the loop; a membership that began after the end would never end."""

    async def subscribed_after(turns: int, broker: MiniBroker) -> bool:
        c = consumer(broker, "a", enable_auto_commit=False)
        await c.poll(5)
        closing = asyncio.create_task(c.close(5))
        for _ in range(turns):
            await asyncio.sleep(0)
        try:
            await c.subscribe(["b"])
        except ClosedError:
            await closing
            return False
        await closing
        assert [task.get_name() for task in asyncio.all_tasks() if "membership" in task.get_name()] == []
        return True

    async def scenario(broker: MiniBroker) -> None:
        turns = 1
        while await subscribed_after(turns, broker):
            turns += 1
        assert turns > 10

    with_broker(scenario, {"a": 1, "b": 1})
