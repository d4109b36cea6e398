"""Mistakes about groups that other clients made, each played as in docs/specification/pitfalls.md."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterable
from typing import Any

import pytest

from kclient import Consumer, OffsetAndMetadata, RebalanceListener, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import CommitFailedError
from kclient.group.subscription_codec import decode_subscription
from tests.scenarios.members import ALL, GROUP, GroupMember, numbers, publishing, shared_out, team
from tests.scenarios.simulated import Place, simulate
from tests.scenarios.support import T0
from tests.waiting import until

COOPERATIVE = {"partition_assignment_strategy": ["cooperative-sticky"]}
QUICK = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 1_000}


@pytest.mark.spec("D-01", "B.13.5", "I-28")
def test_d01_a_member_that_works_for_too_long_leaves_once_is_reported_why_and_comes_back() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, max_poll_interval_ms=10_000, **QUICK) as join, publishing(place):
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            await asyncio.sleep(1)
            a.take_calls()
            await a.stop()
            await asyncio.sleep(25)
            with pytest.raises(CommitFailedError) as caught:
                await a.host.start(a.consumer.commit())
            assert "max_poll_interval_ms" in str(caught.value)
            assert "max_poll_records" in str(caught.value)
            assert len(a.asked("LeaveGroup")) == 1
            assert a.asked("OffsetCommit") == []
            a.poll()
            await until(lambda: len(a.listener_calls) == 2)
            assert a.calls == [("lost", ALL), ("assigned", ALL)]
            await asyncio.sleep(5)
            assert len(a.asked("LeaveGroup")) == 1
            assert a.errors == []

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("D-02", "B.13.5")
def test_d02_a_member_without_records_sends_one_heartbeat_each_interval_and_stays() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **QUICK) as join:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            await a.stop()
            began = place.now
            assert not await a.host.start(a.consumer.poll(3 * QUICK["session_timeout_ms"] / 1000))
            assert 17 <= len(a.asked("Heartbeat", began)) <= 18
            assert a.asked("JoinGroup", began) == []
            assert a.calls == [("assigned", ALL)]

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("D-03", "B.3.1", "B.13.5")
@pytest.mark.parametrize("method", ["assigned", "revoked"])
def test_d03_a_listener_that_takes_twice_the_session_keeps_its_membership_and_may_commit(method: str) -> None:
    class Slow(GroupMember):
        async def on_partitions_revoked(self, partitions: Iterable[TopicPartition]) -> None:
            await self.consumer.commit()
            await self.work("revoked", partitions)

        async def on_partitions_assigned(self, partitions: Iterable[TopicPartition]) -> None:  # type: ignore[override]
            await self.work("assigned", partitions)

        async def work(self, name: str, partitions: Iterable[TopicPartition]) -> None:
            if name == method:
                await asyncio.sleep(2 * QUICK["session_timeout_ms"] / 1000)
            self._note(name, partitions)

    async def scenario(place: Place) -> None:
        async with team(place, **QUICK) as join, publishing(place):
            a = await join("a", kind=Slow)
            await until(lambda: a.calls == [("assigned", ALL)])
            b = await join("b")
            await until(lambda: shared_out(a, b))
            await asyncio.sleep(15)
            assert a.calls == [("assigned", ALL), ("revoked", ALL), ("assigned", (0, 1))]
            assert b.calls == [("assigned", (2, 3))]
            assert {one.request.member_id for one in a.asked("Heartbeat")} == {
                a.consumer.group_metadata().member_id
            }
            assert a.errors == b.errors == []

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("D-03", "D-75", "B.3.1")
def test_d03_a_listener_that_blocks_its_thread_keeps_its_membership() -> None:
    """With `Consumer` the listener runs on the user's thread, and heartbeats do not."""

    class Blocking(RebalanceListener):
        def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
            time.sleep(1.5)

        def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
            consumer.commit()

    with EmbeddedCluster(topics={"t": 1}, config={"group.min.session.timeout.ms": 100}) as cluster:
        cluster.produce("t", ["0"])
        settings: dict[str, Any] = {"session_timeout_ms": 700, "heartbeat_interval_ms": 100}
        with Consumer(
            bootstrap_servers=cluster.bootstrap_servers,
            group_id=GROUP,
            auto_offset_reset="earliest",
            **settings,
        ) as consumer:
            consumer.subscribe(["t"], listener=Blocking())
            while not consumer.poll(timeout=1.0):
                pass
            assert consumer.assignment() == (T0,)
            consumer.commit()
        assert [one.request.member_id == "" for one in cluster.requests if one.api == "JoinGroup"] == [
            True,
            False,
        ]
        assert cluster.committed(GROUP) == {T0: 1}


@pytest.mark.spec("D-05", "B.15.4", "B.13.9", "S3-32")
def test_d05_a_sync_that_another_rebalance_overtakes_keeps_member_id_and_partitions() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **COOPERATIVE, **QUICK) as join:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            member_id, began = a.consumer.group_metadata().member_id, place.now
            place.cluster.fail("SyncGroup", "REBALANCE_IN_PROGRESS", times=1)
            a.consumer.enforce_rebalance()
            await until(lambda: len(a.asked("SyncGroup", began)) == 2)
            await asyncio.sleep(5)
            joins = [one.request for one in a.asked("JoinGroup", began)]
            assert [one.member_id for one in joins] == [member_id, member_id]
            owned = [decode_subscription(one.protocols[0].metadata).owned_partitions for one in joins]
            assert [numbers(partitions) for partitions in owned] == [ALL, ALL]
            assert a.calls == [("assigned", ALL), ("assigned", ())]

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("D-08", "S0-13", "B.13.11")
def test_d08_what_stays_through_a_cooperative_rebalance_keeps_its_position_and_its_pause() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **COOPERATIVE, **QUICK) as join, publishing(place, every=0.02):
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            await asyncio.sleep(1)
            a.consumer.pause([T0])
            await asyncio.sleep(0.5)
            position = await a.host.start(a.consumer.position(T0))
            began = place.now
            b = await join("b")
            await until(lambda: shared_out(a, b))
            await asyncio.sleep(3)
            assert 0 in a.partitions
            assert a.consumer.paused() == (T0,)
            assert await a.host.start(a.consumer.position(T0)) == position
            assert a.asked("OffsetFetch", began) == a.asked("ListOffsets", began) == []
            (other,) = set(a.partitions) - {0}
            seen = [one for one in a.seen if one.partition == other]
            assert [one.offset for one in seen] == list(range(len(seen)))
            assert seen[-1].at > place.now - 0.5
            a.consumer.resume([T0])
            await until(lambda: [one for one in a.seen if one.partition == 0 and one.at > began])
            assert [one.offset for one in a.seen if one.partition == 0][position] == position

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("D-12", "B.3.1")
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_d12_a_listener_is_called_inside_the_calls_of_its_own_task_and_nowhere_else(strategy: str) -> None:
    class Locked(GroupMember):
        """Its application holds a lock around every call, and takes note of who runs its listener."""

        inside: asyncio.Task[Any] | None = None
        strangers = 0

        def _note(self, method: str, partitions: Iterable[TopicPartition]) -> None:
            self.strangers += self.inside is not asyncio.current_task()
            super()._note(method, partitions)

        async def _poll(self) -> None:
            while True:
                self.inside = asyncio.current_task()
                await self.consumer.poll(0.2)
                self.inside = None
                await asyncio.sleep(0.3)

        async def leave(self) -> None:
            self.inside = asyncio.current_task()
            await super().leave()

    async def scenario(place: Place) -> None:
        async with team(place, partition_assignment_strategy=[strategy], **QUICK) as join, publishing(place):
            a = await join("a", kind=Locked)
            await until(lambda: a.partitions == ALL)
            for name in ("b", "c"):
                other = await join(name)
                await until(lambda other=other: shared_out(a, other))
                await other.close()
                await until(lambda: a.partitions == ALL)
            await a.close()
            assert isinstance(a, Locked)
            assert len(a.listener_calls) >= 5
            assert a.listener_calls[-1].method == "revoked"
            assert a.strangers == 0

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("D-14", "B.13.2", "S3-28", "S3-29")
@pytest.mark.parametrize("kind", ["partitions", "topic"])
def test_d14_what_comes_later_is_picked_up_within_the_age_of_metadata(kind: str) -> None:
    async def scenario(place: Place) -> None:
        async with team(place, metadata_max_age_ms=20_000, **QUICK) as join:
            a = await join("a")
            if kind == "topic":
                await a.stop()
                await a.host.start(a.consumer.unsubscribe())
                await a.host.start(a.consumer.subscribe(pattern="t.*", listener=a))
                a.poll()
            await until(lambda: a.partitions == ALL)
            await asyncio.sleep(5)
            wanted = {TopicPartition("t", 4)} if kind == "partitions" else {TopicPartition("tail", 0)}
            if kind == "partitions":
                place.cluster.add_partitions("t", 5)
            else:
                place.cluster.create_topic("tail")
            created = place.now
            await until(lambda: wanted <= set(a.consumer.assignment()), 120)
            assert place.now - created < 20 + 3

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("D-15", "B.18", "B.13.8")
def test_d15_closing_reports_the_listener_before_it_leaves() -> None:
    class Careful(GroupMember):
        def _note(self, method: str, partitions: Iterable[TopicPartition]) -> None:
            assert self.asked("LeaveGroup") == []
            super()._note(method, partitions)

    async def scenario(place: Place) -> None:
        async with team(place) as join:
            a = await join("a", kind=Careful)
            await until(lambda: a.partitions == ALL)
            await a.close()
            assert a.calls == [("assigned", ALL), ("revoked", ALL)]
            assert len(a.asked("LeaveGroup")) == 1

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("D-16", "B.13.6", "S3-31", "S3-53")
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_d16_a_generation_that_ends_while_the_last_commit_is_out_leads_to_the_right_assignment(
    strategy: str,
) -> None:
    async def scenario(place: Place) -> None:
        settings: dict[str, Any] = {"enable_auto_commit": True, "auto_commit_interval_ms": 3_600_000, **QUICK}
        async with (
            team(place, partition_assignment_strategy=[strategy], **settings) as join,
            publishing(place),
        ):
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            await asyncio.sleep(2)
            member_id = a.consumer.group_metadata().member_id
            place.cluster.drop("OffsetCommit", client_id="a", times=None)
            b = await join("b")
            await until(lambda: a.asked("OffsetCommit"))
            place.cluster.expire_member(GROUP, member_id)
            await until(lambda: shared_out(a, b))
            await asyncio.sleep(10)
            assert shared_out(a, b)
            assert [call.partitions for call in a.listener_calls if call.method == "lost"] == [ALL]
            assert a.errors == b.errors == []

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("D-16", "B.16.5")
def test_d16_a_group_that_has_nothing_to_share_out_comes_to_rest() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, allow_auto_create_topics=False, **COOPERATIVE, **QUICK) as join:
            a, b = await join("a"), await join("b")
            for member in (a, b):
                await member.stop()
                await member.subscribe("missing")
                member.poll()
            await asyncio.sleep(20)
            began = place.now
            await asyncio.sleep(60)
            assert a.asked("JoinGroup", began) == b.asked("JoinGroup", began) == []
            assert a.partitions == b.partitions == ()

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("D-17", "S3-31", "B.15.5")
def test_d17_without_a_listener_too_what_was_lost_is_not_committed() -> None:
    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["0", "1"], partition=0)
        consumer = place.consumer("t", group_id=GROUP, **QUICK)
        await place.read(consumer, 2)
        place.cluster.expire_member(GROUP, consumer.group_metadata().member_id)
        place.cluster.delay("JoinGroup", ms=5_000, times=1)
        await place.poll_until(consumer, lambda: consumer.assignment() == ())
        with pytest.raises(CommitFailedError):
            await place.on_member(consumer.commit({T0: OffsetAndMetadata(2)}))
        await place.on_member(consumer.commit())
        assert place.asked("OffsetCommit") == []
        await place.poll_until(consumer, consumer.assignment)

    simulate(scenario, topics={"t": 4})


BEAT = "ConsumerGroupHeartbeat"


@pytest.mark.spec("D-18", "B.17.3")
def test_d18_a_negative_epoch_in_a_response_is_ignored_and_a_new_one_is_used_at_once() -> None:
    def negative(request: Any, response: Any) -> Any:
        response.member_epoch = -1
        return response

    async def scenario(place: Place) -> None:
        async with team(place, group_protocol="consumer") as join:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            epoch = a.consumer.group_metadata().generation_id
            place.cluster.on(BEAT, negative, times=1)
            await until(lambda: a.asked(BEAT)[-1].response and a.asked(BEAT)[-1].response.member_epoch == -1)
            sent = len(a.asked(BEAT))
            await until(lambda: len(a.asked(BEAT)) > sent + 1)
            assert {one.request.member_epoch for one in a.asked(BEAT)[sent:]} == {epoch}
            assert [call for call in a.calls if call[1]] == [("assigned", ALL)]
            b = await join("b")
            await until(lambda: shared_out(a, b))
            await asyncio.sleep(3)
            beats = a.asked(BEAT)[sent:]
            for before, after in itertools.pairwise(beats):
                assert after.request.member_epoch == before.response.member_epoch
            assert beats[-1].request.member_epoch > epoch
            assert a.errors == []

    simulate(scenario, topics={"t": 4}, config={"group.consumer.heartbeat.interval.ms": 500})


@pytest.mark.spec("D-18", "B.17.3")
def test_d18_a_response_that_comes_after_the_leave_changes_nothing() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, group_protocol="consumer") as join:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            place.cluster.delay(BEAT, ms=2_000, times=1)
            beats = len(a.asked(BEAT))
            await until(lambda: len(a.asked(BEAT)) > beats)
            await a.stop()
            await a.host.start(a.consumer.unsubscribe())
            assert a.consumer.group_metadata().generation_id == -1
            await asyncio.sleep(5)
            assert a.consumer.group_metadata().generation_id == -1
            assert a.partitions == ()
            left = [one.request.member_epoch for one in a.asked(BEAT)[beats + 1 :]]
            assert left == [-1]
            await a.subscribe()
            a.poll()
            await until(lambda: a.partitions == ALL)
            assert [call for call in a.calls if call[1]] == [
                ("assigned", ALL),
                ("revoked", ALL),
                ("assigned", ALL),
            ]

    simulate(scenario, topics={"t": 4}, config={"group.consumer.heartbeat.interval.ms": 500})
