"""Rows about the order and the timing of the group's work in a poll, which show over seconds on the wire."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable
from typing import Any

import pytest

from kclient import OffsetAndMetadata, TopicPartition
from kclient.errors import KclientError
from kclient.group.subscription_codec import decode_subscription
from tests.scenarios.members import ALL, GROUP, GroupMember, publishing, shared_out, team
from tests.scenarios.simulated import Place, simulate
from tests.scenarios.support import T0, T1
from tests.waiting import until

AUTOMATIC: dict[str, Any] = {
    "group_id": GROUP,
    "enable_auto_commit": True,
    "auto_commit_interval_ms": 5_000,
    "heartbeat_interval_ms": 3_000,
}


def positions_in(request: Any) -> dict[int, int]:
    """Partition → offset of an OffsetCommit."""
    (topic,) = request.topics
    return {part.partition_index: part.committed_offset for part in topic.partitions}


@pytest.mark.spec("S4-04", "S4-05", "S4-02", "B.3.2", "B.3.3")
def test_one_poll_goes_from_the_coordinator_over_positions_to_records() -> None:
    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["0", "1"], partition=0)
        consumer = place.consumer("t", group_id=GROUP)
        assert len(await place.on_member(consumer.poll(20.0))) == 2
        apis = [one.api for one in place.cluster.requests if one.api not in ("ApiVersions", "Metadata")]
        first = list(dict.fromkeys(apis))[:6]
        assert first == ["FindCoordinator", "JoinGroup", "SyncGroup", "OffsetFetch", "ListOffsets", "Fetch"]
        assert place.now < 1  # the records were returned as soon as they were there
        place.cluster.produce("t", ["2"], partition=0)
        await asyncio.sleep(1)  # fetched behind the poll's back
        assert [record.value for record in await place.on_member(consumer.poll(0))] == [b"2"]

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("S3-32")
def test_an_eager_member_that_owns_nothing_is_notified_of_every_rebalance_too() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, heartbeat_interval_ms=500) as join:
            members = [await join("a"), await join("b")]
            await until(lambda: sorted(member.partitions for member in members) == [(), (0,)])
            (idle,) = (member for member in members if not member.partitions)
            seen = len(idle.calls)
            idle.consumer.enforce_rebalance("a test")
            await until(lambda: len(idle.calls) >= seen + 2)
            assert idle.calls[seen:] == [("revoked", ()), ("assigned", ())]

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("S4-05", "S4-06", "B.3.5")
def test_a_rebalance_that_waits_comes_before_the_records_that_wait() -> None:
    """What goes to another member is not delivered any more, though it was fetched long ago."""

    async def scenario(place: Place) -> None:
        async with team(place, heartbeat_interval_ms=500) as join, publishing(place):
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            await asyncio.sleep(1)
            await a.stop()
            seen = len(a.seen)
            await asyncio.sleep(1)  # records are at hand now
            b = await join("b")
            await asyncio.sleep(1)
            assert a.calls == [("assigned", ALL)]
            records = await a.host.start(a.consumer.poll(2.0))
            assert a.calls == [("assigned", ALL), ("revoked", ALL), ("assigned", (0, 1))]
            assert {record.partition for record in records} <= {0, 1}
            a.poll()
            await until(lambda: shared_out(a, b))
            await asyncio.sleep(1)
            assert {one.partition for one in a.seen[seen:]} == {0, 1}

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("S4-06", "S4-50", "B.3.5")
def test_callbacks_of_commits_come_first_then_the_rebalance_and_the_automatic_commit_last() -> None:
    async def scenario(place: Place) -> None:
        order: list[str] = []

        class Ordered(GroupMember):
            def _note(self, method: str, partitions: Iterable[TopicPartition]) -> None:
                order.append(method)
                super()._note(method, partitions)

        def answered(offsets: Any, error: KclientError | None) -> None:
            order.append("callback")
            a.consumer.seek(T0, 3)

        place.cluster.produce("t", [str(number) for number in range(10)], partition=0)
        async with team(place, **AUTOMATIC) as join:
            a = await join("a", kind=Ordered)
            await until(lambda: len(a.seen) == 10)
            await a.stop()
            order.clear()
            a.consumer.commit_async({T0: OffsetAndMetadata(1)}, answered)
            await asyncio.sleep(6)  # its response waits, and the automatic commit is due
            await a.host.start(a.consumer.poll(0))
            await asyncio.sleep(1)
            commits = [positions_in(one.request)[0] for one in a.asked("OffsetCommit")]
            assert commits == [1, 3]
            a.consumer.enforce_rebalance()
            while "revoked" not in order:
                await asyncio.sleep(0.5)
                await a.host.start(a.consumer.poll(0))
            await asyncio.sleep(1)  # the new assignment waits for a poll
            a.consumer.commit_async({T0: OffsetAndMetadata(1)}, lambda *_: order.append("second callback"))
            await asyncio.sleep(1)
            await a.host.start(a.consumer.poll(0))
            assert order == ["callback", "revoked", "second callback", "assigned"]

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("S4-07", "B.3.5")
def test_a_pattern_looks_at_fresh_metadata_before_the_first_join() -> None:
    """A topic that was made just before is in the first JoinGroup already, whatever was known until then."""

    async def scenario(place: Place) -> None:
        consumer = place.consumer(group_id=GROUP)
        await place.on_member(consumer.subscribe(pattern="no such.*"))  # all topics are known from here on
        await place.poll_until(consumer, lambda: place.asked("SyncGroup"))
        await place.on_member(consumer.unsubscribe())
        place.cluster.create_topic("tail")
        began = place.now
        await place.on_member(consumer.subscribe(pattern="t.*"))
        await place.poll_until(consumer, consumer.assignment)
        first = place.asked("JoinGroup", began)[0].request
        assert decode_subscription(first.protocols[0].metadata).topics == ("t", "tail")
        assert {tp.topic for tp in consumer.assignment()} == {"t", "tail"}

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("S4-08", "B.3.6", "S4-44")
def test_a_waiting_poll_wakes_for_a_commit_a_heartbeat_or_a_callback() -> None:
    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["0"], partition=0)
        consumer = place.consumer("t", **AUTOMATIC)
        await place.read(consumer, 1)
        began = place.asked("SyncGroup")[0].at
        called: list[float] = []
        waiting = place.network.by_name["member"].start(consumer.poll(18.0))
        await asyncio.sleep(7)
        asked_for = place.now
        consumer.commit_async(callback=lambda offsets, error: called.append(place.now))
        assert not await waiting
        commits = [one.at - began for one in place.asked("OffsetCommit") if one.at != asked_for]
        due = [at for at in commits if abs(at - (asked_for - began)) > 0.3]
        assert due == pytest.approx([5, 10, 15], abs=0.5)
        assert [at - asked_for < 0.3 for at in called] == [True]
        beats = [one.at - began for one in place.asked("Heartbeat")]
        assert beats == pytest.approx([3, 6, 9, 12, 15, 18], abs=0.3)

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("S4-10", "B.4.7", "S1-24")
@pytest.mark.parametrize("idle", [1, 2, 3])
def test_the_coordinator_is_asked_for_at_the_broker_with_the_least_to_do(idle: int) -> None:
    async def scenario(place: Place) -> None:
        place.cluster.prepare_groups()
        busy = [node for node in (1, 2, 3) if node != idle]
        for partition, node in enumerate([*busy, idle]):
            place.cluster.move_leader("t", partition, node)
        consumer = place.consumer(group_id=GROUP, fetch_max_wait_ms=10_000)
        await place.on_member(consumer.assign([T0, T1]))
        for tp in (T0, T1):
            consumer.seek(tp, 0)
        await place.on_member(consumer.beginning_offsets([TopicPartition("t", 2)]))  # it is connected too
        await place.poll_until(consumer, lambda: all(place.asked("Fetch", node=node) for node in busy))
        await place.on_member(consumer.commit())
        (lookup,) = place.asked("FindCoordinator")
        assert lookup.node == idle

    simulate(scenario, brokers=3, topics={"t": 3})


@pytest.mark.spec("S4-57", "B.14.6", "S0-19")
def test_committed_offsets_are_asked_for_every_time_and_positions_ask_for_new_partitions_alone() -> None:
    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["0", "1"], partition=0)
        consumer, other = place.consumer(group_id=GROUP), place.consumer(group_id=GROUP)
        await place.on_member(consumer.assign([T0]))
        await place.read(consumer, 2)
        await place.on_member(consumer.commit())
        await place.on_member(other.commit({T0: OffsetAndMetadata(1)}))
        before = len(place.asked("OffsetFetch"))
        for _ in range(2):
            assert await place.on_member(consumer.committed([T0])) == {T0: OffsetAndMetadata(1)}
        assert len(place.asked("OffsetFetch")) == before + 2
        await place.on_member(consumer.assign([T0, T1]))
        await place.poll_until(consumer, lambda: len(place.asked("OffsetFetch")) > before + 2)
        (topic,) = place.asked("OffsetFetch")[-1].request.groups[0].topics
        assert topic.partition_indexes == [1]
        assert await place.on_member(consumer.position(T0)) == 2

    simulate(scenario, topics={"t": 2})


@pytest.mark.spec("S4-59", "S3-47")
@pytest.mark.parametrize(("again", "polled"), [(False, True), (True, True), (True, False)])
def test_a_join_that_takes_long_puts_the_automatic_commit_off_for_a_whole_interval(
    again: bool, polled: bool
) -> None:
    """The clock is read after the join, the first one or a later one, not before: also if no poll ran meanwhile."""

    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["0"], partition=0)
        resumed = 0.0
        if not again:
            place.cluster.delay("JoinGroup", ms=6_000, times=1)
        # A cooperative member keeps its positions, so a commit that is due shows at once.
        strategy = "range" if polled else "cooperative-sticky"
        consumer = place.consumer("t", **AUTOMATIC, partition_assignment_strategy=strategy)
        await place.read(consumer, 1)
        if again:
            await place.poll_until(consumer, lambda: place.now > 4)
            place.cluster.delay("JoinGroup", ms=6_000, times=1)
            consumer.enforce_rebalance()
            await place.poll_until(consumer, lambda: polled or len(place.asked("JoinGroup")) == 3)
            await asyncio.sleep(0 if polled else 7)
            resumed = place.now
            await place.poll_until(consumer, lambda: len(place.asked("SyncGroup")) == 2)
            await place.poll_until(consumer, consumer.assignment)
        joined = place.asked("SyncGroup")[-1].at
        assert not [one for one in place.asked("OffsetCommit") if one.at > joined]
        await place.poll_until(consumer, lambda: place.asked("OffsetCommit", joined))
        assert place.asked("OffsetCommit", joined)[0].at - max(joined, resumed) == pytest.approx(5, abs=0.3)

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("B.13.5", "S4-17")
def test_a_coordinator_that_was_found_has_a_whole_session_to_respond() -> None:
    """The session timer starts again with the lookup, so a silent coordinator is not sought again and again."""

    async def scenario(place: Place) -> None:
        async with team(place, session_timeout_ms=6_000, heartbeat_interval_ms=1_000) as join:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            await asyncio.sleep(3)
            began = place.now
            place.cluster.drop("Heartbeat", times=None, handled=True)  # it knows that a is alive
            await asyncio.sleep(25)
            lookups = [one.at for one in a.asked("FindCoordinator", began)]
            assert len(lookups) == 4
            assert lookups[0] - began == pytest.approx(6, abs=1.1)
            assert [after - before for before, after in itertools.pairwise(lookups)] == pytest.approx(
                [6, 6, 6], abs=0.2
            )
            assert a.asked("JoinGroup", began) == []
            assert a.calls == [("assigned", ALL)]

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("B.13.2", "B.16.8")
def test_a_rack_aware_group_keeps_its_generation_while_the_racks_stay() -> None:
    """The response to FindCoordinator names no rack: the leader must not take that for a change."""

    async def scenario(place: Place) -> None:
        async with team(place, client_rack="a", metadata_max_age_ms=1_000) as join:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            await asyncio.sleep(5)
            assert a.consumer.group_metadata().generation_id == 1
            assert a.calls == [("assigned", ALL)]

    simulate(scenario, brokers=3, topics={"t": 4}, racks=["a", "b", "c"])
