"""Scenario A-14: groups of the consumer protocol (KIP-848), whose coordinator shares out."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kclient import SubscriptionPattern, TopicPartition
from kclient.errors import BrokerError, KclientError, ListenerError
from kclient.protocol.errors import INVALID_REGULAR_EXPRESSION, UNRELEASED_INSTANCE_ID
from tests.scenarios.members import ALL, GROUP, GroupMember, all_seen, publishing, shared_out, team
from tests.scenarios.simulated import Place, simulate
from tests.waiting import until

NEW: dict[str, Any] = {"group_protocol": "consumer", "enable_auto_commit": True}
QUICK = {"group.consumer.heartbeat.interval.ms": 500}
BEAT = "ConsumerGroupHeartbeat"


def play(scenario: Any, **options: Any) -> None:
    simulate(scenario, **{"topics": {"t": 4}, "config": QUICK, **options})


def owned_at(member: GroupMember, at: float) -> set[int]:
    """What the listener of a member had been given and not yet taken back, up to and with a moment."""
    owned: set[int] = set()
    for call in member.listener_calls:
        if call.at <= at:
            owned = owned | {*call.partitions} if call.method == "assigned" else owned - {*call.partitions}
    return owned


def never_owned_by_two(a: GroupMember, b: GroupMember) -> bool:
    """Whether no partition was given to one while the other had it."""
    moments = [call.at for member in (a, b) for call in member.listener_calls]
    return not any(owned_at(a, at) & owned_at(b, at) for at in moments)


async def poll_on(member: GroupMember) -> None:
    """Poll until that raises."""
    while True:
        await member.consumer.poll(1.0)


@pytest.mark.spec("A-14", "B.17.2", "B.17.3")
def test_a14_the_first_heartbeat_is_full_and_later_ones_have_changes() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, max_poll_interval_ms=77_000, client_rack="east", **NEW) as join:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            await asyncio.sleep(5)
            first, *others = [one.request for one in a.asked(BEAT)]
            assert (first.member_epoch, first.group_id, first.rack_id) == (0, GROUP, "east")
            assert len(first.member_id) >= 22
            assert (first.rebalance_timeout_ms, first.topic_partitions) == (77_000, [])
            assert first.subscribed_topic_names == ["t"]
            assert {one.member_id for one in others} == {first.member_id}
            reported = [one for one in others if one.topic_partitions is not None]
            assert [len(one.topic_partitions[0].partitions) for one in reported] == [4]
            quiet = [one for one in others if one.topic_partitions is None]
            assert len(quiet) >= 5
            for one in quiet:
                assert one.subscribed_topic_names is None
                assert one.rack_id is None
                assert one.rebalance_timeout_ms == -1
                assert one.member_epoch == a.consumer.group_metadata().generation_id

    play(scenario)


@pytest.mark.spec("A-14", "B.17.3", "S0-13", "B.17.6")
def test_a14_partitions_move_one_after_the_other_and_are_never_owned_by_two() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **NEW) as join, publishing(place) as written:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            await asyncio.sleep(1)
            began = place.now
            b = await join("b")
            await until(lambda: shared_out(a, b))
            await asyncio.sleep(3)
            assert a.calls == [("assigned", ALL), ("revoked", b.partitions), ("assigned", ())]
            assert [call for call in b.calls if call[1]] == [("assigned", b.partitions)]
            assert never_owned_by_two(a, b)
            assert a.asked("OffsetFetch", began) == []
            await b.close()
            await until(lambda: a.partitions == ALL)
            await asyncio.sleep(1)
            assert never_owned_by_two(a, b)
            total = len(written) - 10
            assert all_seen(a, b)[:total] == list(range(total))
            assert place.asked("JoinGroup") == place.asked("SyncGroup") == place.asked("Heartbeat") == []
            assert a.errors == b.errors == []

    play(scenario)


@pytest.mark.spec("A-14", "B.17.3")
def test_a14_what_metadata_knows_is_taken_over_and_the_rest_follows() -> None:
    def without_late(request: Any, response: Any) -> Any:
        response.topics = [topic for topic in response.topics if topic.name != "late"]
        return response

    async def scenario(place: Place) -> None:
        late = TopicPartition("late", 0)
        async with team(place, **NEW, metadata_max_age_ms=300_000) as join:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            place.cluster.on("Metadata", without_late)
            await a.stop()
            await a.host.start(a.consumer.unsubscribe())
            await a.host.start(a.consumer.subscribe(pattern=SubscriptionPattern("t|late"), listener=a))
            a.poll()
            await until(lambda: a.partitions == ALL)
            asked = len(a.asked("Metadata"))
            place.cluster.create_topic("late")
            await until(lambda: len(a.asked("Metadata")) > asked + 1)
            await asyncio.sleep(5)
            assert {tp.topic for tp in a.consumer.assignment()} == {"t"}
            assert a.partitions == ALL
            place.cluster.lift()
            await until(lambda: late in a.consumer.assignment())
            await asyncio.sleep(2)
            owned = [one.request.topic_partitions for one in a.asked(BEAT) if one.request.topic_partitions]
            assert [sum(len(topic.partitions) for topic in topics) for topics in owned][-1] == 5

    play(scenario)


@pytest.mark.spec("A-14", "B.17.4")
@pytest.mark.parametrize("code", [110, 25])
def test_a14_a_fenced_member_loses_all_and_joins_under_the_same_id(code: int) -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **NEW) as join, publishing(place):
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            member_id = a.consumer.group_metadata().member_id
            before = len(a.asked(BEAT))
            place.cluster.fail(BEAT, code, times=1)
            await until(lambda: ("lost", ALL) in a.calls)
            await until(lambda: a.partitions == ALL)
            assert [call for call in a.calls if call[1]] == [
                ("assigned", ALL),
                ("lost", ALL),
                ("assigned", ALL),
            ]
            rejoined = a.asked(BEAT)[before + 1].request
            assert (rejoined.member_epoch, rejoined.member_id) == (0, member_id)
            assert rejoined.subscribed_topic_names == ["t"]
            assert a.errors == []

    play(scenario)


@pytest.mark.spec("A-14", "B.17.5", "B.3.8")
@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("east", -2)])
def test_a14_a_member_that_does_not_poll_in_time_leaves_and_joins_with_its_next_poll(
    instance_id: str | None, epoch: int
) -> None:
    async def scenario(place: Place) -> None:
        settings = {"max_poll_interval_ms": 10_000, "group_instance_id": instance_id}
        async with team(place, **NEW, **settings) as join:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            await a.stop()
            stopped = place.now
            await asyncio.sleep(30)
            (leave,) = [one for one in a.asked(BEAT) if one.request.member_epoch < 0]
            assert leave.request.member_epoch == epoch
            assert leave.at - stopped == pytest.approx(10, abs=0.6)
            assert [one for one in a.asked(BEAT, leave.at) if one is not leave] == []
            a.poll()
            await until(lambda: a.calls[-1] == ("assigned", ALL) and len(a.calls) > 2)
            assert [call for call in a.calls if call[1]] == [
                ("assigned", ALL),
                ("lost", ALL),
                ("assigned", ALL),
            ]
            assert a.errors == []

    play(scenario)


@pytest.mark.spec("A-14", "B.17.3")
@pytest.mark.parametrize("method", ["revoked", "assigned"])
def test_a14_a_listener_that_raises_is_reported_once_and_the_partitions_move_all_the_same(
    method: str,
) -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **NEW) as join, publishing(place):
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            await a.stop()
            a.fails = (method, RuntimeError("not now"))
            b = await join("b")
            with pytest.raises(ListenerError):
                await a.host.start(poll_on(a))
            await asyncio.sleep(3)
            assert b.partitions == ()  # a has not said that it gave anything up
            a.poll()
            await until(lambda: shared_out(a, b))
            await asyncio.sleep(2)
            assert a.errors == b.errors == []
            assert never_owned_by_two(a, b)

    play(scenario)


@pytest.mark.spec("A-14", "B.17.3", "B.14.5")
def test_a14_a_commit_that_fails_does_not_stop_the_revocation() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **NEW, max_poll_interval_ms=20_000) as join, publishing(place):
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            place.cluster.fail("OffsetCommit", "OFFSET_METADATA_TOO_LARGE", times=None, client_id="a")
            b = await join("b")
            await until(lambda: shared_out(a, b))
            assert a.asked("OffsetCommit")
            assert a.errors == b.errors == []

    play(scenario)


@pytest.mark.spec("A-14", "B.17.5", "B.17.4")
def test_a14_a_static_member_comes_back_to_its_partitions_and_is_not_doubled() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **NEW) as join:
            a = await join("a", group_instance_id="a")
            b = await join("b", group_instance_id="b")
            await until(lambda: shared_out(a, b))
            await asyncio.sleep(2)
            double = await join("double", group_instance_id="a")
            await until(lambda: double.errors)
            error = double.errors[0]
            assert isinstance(error, BrokerError)
            assert error.code == UNRELEASED_INSTANCE_ID
            assert double.partitions == ()
            await double.close()
            had = a.partitions
            b.take_calls()
            await a.close()
            assert a.asked(BEAT)[-1].request.member_epoch == -2
            await asyncio.sleep(3)
            back = await join("a", group_instance_id="a")
            await until(lambda: shared_out(back, b))
            assert back.partitions == had
            assert [call for call in b.calls if call[1]] == []

    play(scenario)


@pytest.mark.spec("A-14", "B.17.2", "B.17.4")
def test_a14_a_pattern_goes_out_as_text_and_a_bad_one_is_reported() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **NEW) as join:
            a, b = await join("a"), await join("b")
            for member, pattern in ((a, "t.*"), (b, "t(")):
                await member.stop()
                await member.host.start(member.consumer.unsubscribe())
                began = place.now
                await member.host.start(
                    member.consumer.subscribe(pattern=SubscriptionPattern(pattern), listener=member)
                )
                member.poll()
                await until(lambda member=member, began=began: member.asked(BEAT, began))
                assert member.asked(BEAT, began)[-1].request.subscribed_topic_regex == pattern
            await until(lambda: a.partitions == ALL and b.errors)
            assert getattr(b.errors[0], "code", None) == INVALID_REGULAR_EXPRESSION

    play(scenario)


@pytest.mark.spec("A-14", "B.17.4")
def test_a14_a_broker_that_is_too_old_is_reported_with_the_key_that_asks_for_it() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **NEW) as join:
            a = await join("a")
            await until(lambda: a.errors)
            error = a.errors[0]
            assert isinstance(error, KclientError)
            assert "group_protocol" in str(error)
            assert a.listener_calls == []

    play(scenario, release="3.6", config={})


@pytest.mark.spec("A-14", "B.17.6")
@pytest.mark.parametrize("strategy", ["cooperative-sticky", "range"])
def test_a14_a_classic_member_comes_into_the_group_and_leaves_it_again(strategy: str) -> None:
    async def scenario(place: Place) -> None:
        async with team(place, enable_auto_commit=True) as join, publishing(place) as written:
            a = await join("a", group_protocol="consumer")
            await until(lambda: a.partitions == ALL)
            await asyncio.sleep(1)
            classic = {"partition_assignment_strategy": [strategy], "heartbeat_interval_ms": 500}
            old = await join("old", **classic)
            await until(lambda: shared_out(a, old), 120)
            await asyncio.sleep(3)
            assert shared_out(a, old)
            assert never_owned_by_two(a, old)
            assert old.asked("JoinGroup")
            await old.close()
            await until(lambda: a.partitions == ALL, 120)
            await asyncio.sleep(2)
            total = len(written) - 10
            assert all_seen(a, old)[:total] == list(range(total))
            assert a.errors == old.errors == []

    play(scenario)
