"""The small parts by themselves: user work, waits, flows, subscriptions."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable

import pytest

from kclient import AsyncConsumer
from kclient.change_signal import ChangeSignal
from kclient.consumer.arguments import checked_partitions, checked_topics
from kclient.consumer.callbacks import CallbackQueue
from kclient.consumer.subscription import (
    SubscriptionKind,
    SubscriptionState,
)
from kclient.consumer.tasks import BackgroundTasks, CallTimeouts
from kclient.errors import ArgumentError, ClosedError, DeadlineError, InternalError, UsageError, WakeupError
from kclient.network.metadata import TopicMetadata
from kclient.timeouts import checked_timeout
from kclient.types import TopicPartition


def on_a_loop(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 10))


# --- user work


def test_work_waits_for_a_call_and_its_result_goes_back_to_the_flow() -> None:
    async def scenario() -> None:
        posted = ChangeSignal()
        work = CallbackQueue(posted)

        async def answer() -> int:
            return 7

        flow = asyncio.create_task(work.call(answer))
        await posted.wait(0)
        assert not flow.done()
        await work.run()
        assert await flow == 7

    on_a_loop(scenario)


def test_what_work_raises_goes_to_the_user_and_the_flow_goes_on() -> None:
    async def scenario() -> None:
        work = CallbackQueue(ChangeSignal())

        async def broken() -> int:
            raise LookupError

        flow = asyncio.create_task(work.call(broken))
        await asyncio.sleep(0)
        with pytest.raises(LookupError):
            await work.run()
        assert await flow is None
        await work.run()

    on_a_loop(scenario)


def test_a_flow_that_is_cancelled_takes_its_work_with_it() -> None:
    async def scenario() -> None:
        work, ran = CallbackQueue(ChangeSignal()), []

        async def never() -> None:
            ran.append(1)

        flow = asyncio.create_task(work.call(never))
        await asyncio.sleep(0)
        flow.cancel()
        await asyncio.wait({flow})
        await work.run()
        assert (ran, len(work)) == ([], 0)

    on_a_loop(scenario)


def test_work_does_not_run_inside_of_work() -> None:
    async def scenario() -> None:
        work, ran = CallbackQueue(ChangeSignal()), []

        async def outer() -> None:
            work.enqueue(inner)
            await work.run()
            ran.append("outer")

        async def inner() -> None:
            ran.append("inner")

        work.enqueue(outer)
        await work.run()
        assert ran == ["outer", "inner"]

    on_a_loop(scenario)


# --- waits


def test_a_wait_ends_with_its_timeout_a_wakeup_or_close() -> None:
    async def scenario() -> None:
        waits = CallTimeouts(ChangeSignal())

        async def wait(seconds: float) -> None:
            async with waits.limit(seconds, "something"):
                await asyncio.sleep(60)

        with pytest.raises(DeadlineError, match="something") as caught:
            await wait(0.01)
        assert (caught.value.waiting_for, caught.value.timeout) == ("something", 0.01)
        waiting = asyncio.create_task(wait(60))
        await asyncio.sleep(0)
        waits.wakeup()
        with pytest.raises(WakeupError):
            await waiting
        waiting = asyncio.create_task(wait(60))
        await asyncio.sleep(0)
        waits.close()
        with pytest.raises(ClosedError):
            await waiting

    on_a_loop(scenario)


def test_a_wakeup_before_the_wait_is_not_lost_and_counts_once() -> None:
    """M-93."""

    async def scenario() -> None:
        waits = CallTimeouts(ChangeSignal())
        waits.wakeup()
        with pytest.raises(WakeupError):
            async with waits.limit(1, "something"):
                pass
        async with waits.limit(1, "something"):
            pass

    on_a_loop(scenario)


def test_a_deadline_of_something_inside_passes_unchanged() -> None:
    async def scenario() -> None:
        with pytest.raises(DeadlineError, match="inner"):
            async with CallTimeouts(ChangeSignal()).limit(1, "outer"):
                raise DeadlineError("inner")

    on_a_loop(scenario)


@pytest.mark.parametrize("wrong", [-1, float("nan"), "1", None, True])
def test_what_is_no_timeout(wrong: float) -> None:
    with pytest.raises(ArgumentError, match="seconds"):
        checked_timeout(wrong)


@pytest.mark.parametrize("endless", [10**400, math.inf], ids=["10**400", "inf"])
def test_a_timeout_beyond_all_numbers_is_for_ever(endless: float) -> None:
    assert checked_timeout(endless) == math.inf


# --- flows


def test_a_flow_that_fails_ends_no_other_and_starts_anew_when_its_error_is_taken() -> None:
    """M-108."""

    async def scenario() -> None:
        failed = ChangeSignal()
        flows = BackgroundTasks(failed)
        starts: list[str] = []

        async def fragile() -> None:
            starts.append("fragile")
            if len(starts) == 2:
                raise ZeroDivisionError("planned")
            await asyncio.sleep(60)

        async def sturdy() -> None:
            starts.append("sturdy")
            await asyncio.sleep(60)

        flows.start("sturdy", sturdy)
        flows.start("fragile", fragile)
        await failed.wait(0)
        error = flows.take_error()
        assert isinstance(error, InternalError)
        assert isinstance(error.__cause__, ZeroDivisionError)
        assert flows.take_error() is None
        await asyncio.sleep(0)
        assert starts == ["sturdy", "fragile", "fragile"]
        await flows.stop()
        assert [task for task in asyncio.all_tasks() if task.get_name().startswith("kclient")] == []

    on_a_loop(scenario)


# --- subscriptions


def test_a_pattern_matches_whole_names_and_leaves_internal_topics_out() -> None:
    names = ("ab", "a", "xab", "ac", "a_internal")
    topics = {name: TopicMetadata(name, None, name == "a_internal", 0, {}) for name in names}
    subscription = SubscriptionState()
    subscription.subscribe_pattern(re.compile("a.+"), None)
    assert subscription.match(topics, exclude_internal=True)
    assert subscription.topics == ("ab", "ac")
    assert not subscription.match(topics, exclude_internal=True)
    assert subscription.match(topics, exclude_internal=False)
    assert subscription.topics == ("a_internal", "ab", "ac")
    assert subscription.covers("anything")
    assert not subscription.covers("xab")


@pytest.mark.spec("B.2")
def test_a_pattern_of_bytes_is_refused_before_anything_is_subscribed() -> None:
    subscription = SubscriptionState()
    with pytest.raises(ArgumentError, match="Write the pattern as str"):
        subscription.subscribe_pattern(re.compile(b"t.*"), None)  # type: ignore[arg-type]
    assert subscription.kind is SubscriptionKind.NONE


def test_one_kind_of_subscription_at_a_time() -> None:
    subscription = SubscriptionState()
    subscription.subscribe(["b", "a", "b"], None)
    assert (subscription.kind, subscription.topics) == (SubscriptionKind.TOPICS, ("a", "b"))
    with pytest.raises(UsageError):
        subscription.assign([TopicPartition("a", 0)])
    with pytest.raises(UsageError):
        subscription.subscribe_pattern(re.compile("a"), None)
    subscription.clear()
    subscription.assign([TopicPartition("a", 0)])
    assert not subscription.automatic


class Name(str):
    """A topic's name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)


def test_to_find_a_topic_among_a_thousand_is_no_search() -> None:
    """Every partition of an assignment is looked up on the loop."""
    subscription = SubscriptionState()
    subscription.subscribe([Name(f"t{number}") for number in range(1_000)], None)
    Name.compared = 0
    assert all(
        subscription.covers(f"t{number}") and subscription.has(f"t{number}") for number in range(1_000)
    )
    assert not subscription.covers("t1000")
    assert Name.compared < 10_000


def test_the_topics_of_a_pattern_that_the_leader_saw_first_are_known_until_the_pattern_goes() -> None:
    subscription = SubscriptionState()
    subscription.subscribe_pattern(re.compile("t.*"), None)
    subscription.add(["t1"])
    assert subscription.has("t1")
    subscription.subscribe_pattern(re.compile("u.*"), None)
    assert not subscription.has("t1")
    subscription.add(["u1"])
    subscription.clear()
    assert not subscription.has("u1")


@pytest.mark.parametrize("wrong", ["a", b"a", [""], [" "], [None], [3], None, 5])
def test_what_are_no_topics(wrong: list[str]) -> None:
    with pytest.raises(ArgumentError):
        checked_topics(wrong)


@pytest.mark.parametrize(
    "wrong", ["a", [3], [("a",)], [("a", -1)], [("", 0)], [("a", "0")], [(0, 0)], [("a", True)], None, 5]
)
def test_what_are_no_partitions(wrong: list[TopicPartition]) -> None:
    with pytest.raises(ArgumentError):
        checked_partitions(wrong)


def test_partitions_may_be_plain_pairs_or_a_single_one() -> None:
    single = TopicPartition("a", 0)
    assert checked_partitions([("a", 1), ("a", 0), ("a", 1)]) == (("a", 1), ("a", 0))  # type: ignore[list-item]
    assert checked_partitions(single) == (single,)  # type: ignore[arg-type]


@pytest.mark.parametrize("call", ["subscribe", "assign", "committed", "end_offsets", "pause"])
def test_what_is_no_list_is_told_what_to_write(call: str) -> None:
    async def scenario() -> None:
        async with AsyncConsumer(bootstrap_servers="localhost:1", group_id="g") as consumer:
            with pytest.raises(ArgumentError, match="must be a list of"):
                await getattr(consumer, call)(None)

    on_a_loop(scenario)


def test_settings_given_as_a_topic_are_told_their_place_and_not_shown() -> None:
    with pytest.raises(ArgumentError, match="config=") as told:
        AsyncConsumer({"bootstrap.servers": "a:1", "sasl.password": "hush"})  # type: ignore[arg-type]
    assert "hush" not in str(told.value)
