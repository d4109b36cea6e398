"""What a member wants changes, and so do the topics of the cluster: who joins again, how often, and what is read."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kclient.group.assignors import Assignment, Assignor, Member, Topics
from kclient.group.subscription_codec import decode_subscription
from kclient.types import TopicPartition
from tests.group.cooperative_assignor import KeepAndShare
from tests.scenarios.members import ALL, GroupMember, shared_out, team
from tests.scenarios.simulated import Place, simulate
from tests.waiting import until

FAST = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 200}
STRATEGIES: list[Any] = ["range", KeepAndShare()]
EITHER = pytest.mark.parametrize("strategy", STRATEGIES, ids=["eager", "cooperative"])


def produce(place: Place, topic: str, number: int) -> None:
    place.cluster.produce(topic, [str(number)], partition=0)


def joins(member: GroupMember) -> int:
    """How often it joined, without the first requests that ask for a member id."""
    return len([one for one in member.asked("JoinGroup") if one.request.member_id])


@asynccontextmanager
async def following(
    place: Place, pattern: str, *names: str, **settings: Any
) -> AsyncIterator[Sequence[GroupMember]]:
    """Members that follow a pattern, one after the other into the group."""
    members = [GroupMember(place, name, {**FAST, **settings}) for name in names]
    for member in members:
        await member.host.start(member.consumer.subscribe(pattern=re.compile(pattern), listener=member))
        member.poll()
        await until(lambda member=member: member.listener_calls)  # type: ignore[misc]
    await asyncio.sleep(2)
    yield members
    for member in members:
        await member.close()


# --- subscribe, once more


@pytest.mark.spec("B.2", "B.6.3")
@EITHER
def test_a_topic_that_is_not_wanted_any_more_is_not_read_even_if_the_group_cannot_be_reached(
    strategy: Any,
) -> None:
    async def scenario(place: Place) -> None:
        async with team(place, partition_assignment_strategy=[strategy], **FAST) as join:
            a = await join("a")
            produce(place, "t", 0)
            await until(lambda: len(a.seen) == 1)
            place.cluster.fail("FindCoordinator", 15, times=None)
            place.cluster.fail("Heartbeat", 16, times=None)
            await until(lambda: a.asked("FindCoordinator")[-1].at > place.now - 0.1 and len(a.seen) == 1)
            await a.subscribe("u")
            produce(place, "t", 1)
            await asyncio.sleep(3)
            assert (a.partitions, len(a.seen)) == (ALL, 1)
            await a.subscribe("t")
            await until(lambda: len(a.seen) == 2)
            place.cluster.lift()

    simulate(scenario, topics={"t": 4, "u": 1})


@pytest.mark.spec("S3-42", "S3-54", "B.13.7", "B.6.3")
def test_what_was_stopped_for_an_assignment_that_does_not_fit_any_more_continues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(place: Place) -> None:
        async with team(place, partition_assignment_strategy=[KeepAndShare()], **FAST) as join:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            await a.stop()
            b = await join("b")
            await a.subscribe("s", "t")
            place.cluster.delay("SyncGroup", 1_000)
            a.poll()
            await until(lambda: len(a.asked("SyncGroup")) == 2)
            await a.stop()
            await asyncio.sleep(3)  # the assignment has come: three of t, and s, which is new
            await a.subscribe("t")
            slow = place.cluster.delay("JoinGroup", 3_000)
            a.poll()
            await asyncio.sleep(0.5)
            assert a.partitions == ALL
            for number in ALL:
                place.cluster.produce("t", [str(number)], partition=number)
            await until(lambda: {one.partition for one in a.seen} == set(ALL), seconds=2)
            assert a.calls == [("assigned", ALL)]
            place.cluster.lift(slow)
            await until(lambda: shared_out(a, b))

    simulate(scenario, topics={"t": 4, "s": 1})
    mismatch = "the assignment t-0, t-1, t-2, s-0 does not match the subscription t: joining again"
    assert ("kclient.group", logging.WARNING, mismatch) in caplog.record_tuples


@pytest.mark.spec("B.13.2", "S3-28", "S3-36")
@EITHER
def test_a_listener_may_subscribe_to_something_else(strategy: Any) -> None:
    async def scenario(place: Place) -> None:
        async with team(place, partition_assignment_strategy=[strategy], **FAST) as join:
            a = await join("a")
            await until(lambda: a.partitions == ALL)

            async def move_on(partitions: Any) -> None:
                del a.on_partitions_revoked
                a._note("revoked", partitions)
                await a.consumer.subscribe(["u"], listener=a)

            a.on_partitions_revoked = move_on  # type: ignore[method-assign]
            b = await join("b")
            await until(lambda: b.partitions == ALL and a.consumer.assignment() == (TopicPartition("u", 0),))
            assert a.errors == b.errors == []

    simulate(scenario, topics={"t": 4, "u": 1})


# --- topics and partitions that come later


@pytest.mark.spec("S1-16", "S3-28", "S3-29", "D-14")
@EITHER
def test_a_topic_that_is_made_and_partitions_that_are_added_are_shared_out(strategy: Any) -> None:
    async def scenario(place: Place) -> None:
        settings = {"partition_assignment_strategy": [strategy], "metadata_max_age_ms": 1_000, **FAST}
        async with team(place, allow_auto_create_topics=False, **settings) as join:
            a = await join("a")
            await a.subscribe("t", "later")
            b = await join("b")
            await until(lambda: shared_out(a, b))
            place.cluster.create_topic("later", partitions=1)
            await until(lambda: len((*a.consumer.assignment(), *b.consumer.assignment())) == 5)
            place.cluster.add_partitions("later", 3)
            await until(lambda: len((*a.consumer.assignment(), *b.consumer.assignment())) == 7)
            assert all(tp.topic == "t" for tp in b.consumer.assignment())

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("S4-07", "S1-20")
def test_a_pattern_is_matched_against_fresh_metadata_before_the_first_join() -> None:
    async def scenario(place: Place) -> None:
        async with following(place, "t.*", "a") as (a,):
            topics = [tp.topic for tp in a.consumer.assignment()]
            assert topics == ["t", "t2"]
            assert joins(a) == 1
            assert place.asked("Metadata")[0].at < a.asked("JoinGroup")[0].at

    simulate(scenario, topics={"t": 1, "t2": 1, "u": 1})


@pytest.mark.spec("S1-16", "S1-20", "S4-07", "B.2")
def test_another_pattern_takes_the_place_of_the_first_at_once() -> None:
    """Metadata hold all topics already, and will not be asked for again for minutes."""

    async def scenario(place: Place) -> None:
        async with following(place, "t.*", "a", metadata_max_age_ms=300_000) as (a,):
            place.cluster.create_topic("u2", 1)  # known to fresh metadata alone
            before, joined = place.now, joins(a)
            await a.host.start(a.consumer.subscribe(pattern=re.compile("u.*"), listener=a))
            await until(lambda: a.consumer.assignment() == (TopicPartition("u", 0), TopicPartition("u2", 0)))
            assert place.now - before < 10
            assert joins(a) == joined + 1  # not with the topics of older metadata first

    simulate(scenario, topics={"t": 1, "u": 1})


@pytest.mark.spec("S3-45", "B.13.7", "S3-28")
def test_a_topic_of_the_pattern_that_the_leader_sees_first_costs_its_followers_no_join() -> None:
    class Generous(Assignor):
        """Gives every member a part of every topic, whatever it subscribed to."""

        name = "generous"

        def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
            everything = [TopicPartition(topic, n) for topic in topics for n in range(len(topics[topic]))]
            parts = {
                member.member_id: everything[place :: len(members)] for place, member in enumerate(members)
            }
            return {member_id: Assignment(tuple(part)) for member_id, part in parts.items()}

    async def scenario(place: Place) -> None:
        settings = {"partition_assignment_strategy": [Generous()], "metadata_max_age_ms": 1_000}
        async with following(place, "t.*", "a", "b", **settings) as (_, b):
            slow = place.cluster.delay("Metadata", 6_000, client_id="b", times=None)
            await asyncio.sleep(1.5)
            before = joins(b)
            place.cluster.create_topic("t2", partitions=2)
            await until(
                lambda: b.consumer.subscription() == ("t", "t2"), seconds=4
            )  # b's metadata come later
            assert {tp.topic for tp in b.consumer.assignment()} == {"t", "t2"}
            place.cluster.lift(slow)
            await asyncio.sleep(8)
            assert joins(b) - before == 1
            assert b.consumer.subscription() == ("t", "t2")
            b.consumer.enforce_rebalance()
            await until(lambda: joins(b) - before == 2)
            said = decode_subscription(b.asked("JoinGroup")[-1].request.protocols[0].metadata)
            assert sorted(said.topics) == ["t", "t2"]

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("S3-29", "D-14", "B.13.2")
def test_a_topic_of_the_pattern_that_is_deleted_is_given_up() -> None:
    async def scenario(place: Place) -> None:
        async with following(place, "t.*", "a", metadata_max_age_ms=1_000) as (a,):
            assert len(a.consumer.assignment()) == 3
            place.cluster.delete_topic("t2")
            await until(lambda: a.consumer.assignment() == (TopicPartition("t", 0),))
            assert a.consumer.subscription() == ("t",)

    simulate(scenario, topics={"t": 1, "t2": 2})


# --- asked for


@pytest.mark.spec("B.2", "S3-52", "B.13.4")
def test_a_rebalance_that_the_application_asks_for_happens_in_a_poll_and_gives_the_reason() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, partition_assignment_strategy=[KeepAndShare()], **FAST) as join:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            await a.stop()
            before = joins(a)
            a.consumer.enforce_rebalance("x" * 300)
            await asyncio.sleep(1)
            assert joins(a) == before
            a.poll()
            await until(lambda: len(a.listener_calls) == 2)
            assert a.asked("JoinGroup")[-1].request.reason == "x" * 255
            assert a.calls == [("assigned", ALL), ("assigned", ())]

    simulate(scenario, topics={"t": 4})
