"""SubscriptionState alone, and the check of the topics and partitions that a call names."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable

import pytest

from kclient import AsyncConsumer
from kclient.consumer.arguments import checked_partitions, checked_topics
from kclient.consumer.subscription import (
    SubscriptionKind,
    SubscriptionState,
)
from kclient.errors import ArgumentError, UsageError
from kclient.network.metadata import TopicMetadata
from kclient.types import TopicPartition


def on_a_loop(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 10))


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
def test_what_is_no_list_gets_advice(call: str) -> None:
    async def scenario() -> None:
        async with AsyncConsumer(bootstrap_servers="localhost:1", group_id="g") as consumer:
            with pytest.raises(ArgumentError, match="must be a list of"):
                await getattr(consumer, call)(None)

    on_a_loop(scenario)


def test_settings_given_as_a_topic_are_reported_with_their_place_and_not_shown() -> None:
    with pytest.raises(ArgumentError, match="config=") as caught:
        AsyncConsumer({"bootstrap.servers": "a:1", "sasl.password": "hush"})  # type: ignore[arg-type]
    assert "hush" not in str(caught.value)
