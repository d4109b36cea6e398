"""Cooperative rebalances (KIP-429) in a group: kept partitions, listener calls, and fetching meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest

from kclient.errors import ListenerError
from kclient.group.assignors import COOPERATIVE, EAGER, Assignment
from kclient.group.subscription_codec import decode_subscription
from kclient.types import GroupMetadata, TopicPartition
from tests.group.cooperative_assignor import KeepAndShare
from tests.scenarios.members import ALL, GroupMember, publishing, shared_out, team
from tests.scenarios.simulated import Place, simulate
from tests.waiting import until

FAST = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 200}
HOUR = 3_600_000


def cooperative(**more: Any) -> dict[str, Any]:
    return {"partition_assignment_strategy": [KeepAndShare()], **FAST, **more}


def joins(member: GroupMember) -> list[Any]:
    """What its JoinGroups said: owned partitions, generation, reason."""
    said = []
    for one in member.asked("JoinGroup"):
        subscription = decode_subscription(one.request.protocols[0].metadata)
        owned = tuple(tp.partition for tp in subscription.owned_partitions)
        said.append((owned, subscription.generation_id, one.request.reason))
    return said


def partitions_seen(member: GroupMember, since: float) -> set[int]:
    return {one.partition for one in member.seen if one.at > since}


def offsets_seen(member: GroupMember, partition: int) -> list[int]:
    return [one.offset for one in member.seen if one.partition == partition]


# --- kept partitions and listener calls


@pytest.mark.spec("S3-43", "S3-44", "S3-49", "S3-52", "B.13.4", "B.13.7", "B.13.11")
def test_a_member_gives_up_only_what_goes_to_another_and_the_group_joins_again() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **cooperative()) as join:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            assert a.take_calls() == [("assigned", ALL)]
            b = await join("b")
            await until(lambda: shared_out(a, b))
            await asyncio.sleep(5)
            assert a.calls == [("revoked", (2, 3)), ("assigned", ()), ("assigned", ())]
            assert [call.assignment for call in a.listener_calls] == [ALL, (0, 1), (0, 1)]
            assert b.calls == [("assigned", ()), ("assigned", (2, 3))]
            assert joins(a)[-2][:2] == (ALL, 1)
            assert joins(a)[-1] == ((0, 1), 2, "need to revoke partitions and re-join")
            assert joins(b)[-1][:2] == ((), 2)

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("S3-33", "S3-34", "B.13.6")
def test_before_a_join_only_the_partitions_of_topics_not_wanted_any_more_are_given_up() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **cooperative()) as join:
            a = await join("a")
            await until(lambda: a.partitions)
            await a.subscribe("t", "u")
            await until(lambda: len(a.consumer.assignment()) == 6)
            assert a.take_calls() == [("assigned", ALL), ("assigned", (0, 1))]  # nothing was revoked
            await a.subscribe("t")
            await until(lambda: len(joins(a)) == 4)
            assert [(call.method, call.assignment) for call in a.listener_calls[:1]] == [
                ("revoked", (0, 0, 1, 1, 2, 3))  # called before the assignment changes
            ]
            assert joins(a)[-1][0] == ALL
            await until(lambda: len(a.listener_calls) == 2)
            assert a.calls == [("revoked", (0, 1)), ("assigned", ())]

    simulate(scenario, topics={"t": 4, "u": 2})


@pytest.mark.spec("S3-31", "S3-53", "B.13.9")
def test_a_cooperative_member_that_the_coordinator_forgot_loses_everything_before_it_joins_again() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **cooperative()) as join:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            place.cluster.fail("Heartbeat", error=25, times=1)
            await until(lambda: len(a.listener_calls) == 3)
            assert a.calls == [("assigned", ALL), ("lost", ALL), ("assigned", ALL)]
            assert joins(a)[-1][:2] == ((), None)

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("S3-54")
def test_the_log_reports_all_four_sets_why_partitions_are_lost_and_what_a_listener_raised(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "kclient.group")

    async def scenario(place: Place) -> None:
        async with team(place, **cooperative()) as join:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            b = await join("b")
            await until(lambda: shared_out(a, b))
            a.fails = ("lost", LookupError("no such thing"))
            place.cluster.fail("Heartbeat", error=25, times=1, client_id="a")
            await until(lambda: a.errors)

    simulate(scenario, topics={"t": 4})
    lines: dict[str, list[str]] = {}
    for record in caplog.records:
        lines.setdefault(record.levelname, []).append(record.getMessage())
    four_sets = "t-0, t-1; owned t-0, t-1, t-2, t-3, added no partitions, revoked t-2, t-3"
    assert f"partitions assigned by keep-and-share: {four_sets}" in lines["INFO"]
    why = "because this consumer is not a member any more (heartbeat answered UNKNOWN_MEMBER_ID)"
    assert f"partitions lost, {why}: t-0, t-1" in lines["INFO"]
    assert "the listener's on_partitions_lost raised LookupError for t-0, t-1" in lines["ERROR"]
    debug = [line for line in lines["DEBUG"] if "member" in line]
    assert any(line.startswith("group g: preparing to join, generation 1, member 'a-") for line in debug)
    assert any(
        line.startswith("group g: taking over the assignment, generation 2, member 'a-") for line in debug
    )


@pytest.mark.spec("S0-13", "S2-19", "B.2", "B.13.11", "D-28")
def test_what_is_kept_keeps_its_position_and_its_pause() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **cooperative()) as join, publishing(place):
            a = await join("a")
            await until(lambda: partitions_seen(a, 0) == set(ALL))
            a.consumer.pause([TopicPartition("t", 0), TopicPartition("t", 3)])
            b = await join("b")
            await until(lambda: shared_out(a, b) and len(a.seen) > 40)
            assert a.consumer.paused() == (TopicPartition("t", 0),)
            assert offsets_seen(a, 1) == list(range(len(offsets_seen(a, 1))))
            a.consumer.resume([TopicPartition("t", 0)])
            behind = len(offsets_seen(a, 0))
            await until(lambda: len(offsets_seen(a, 0)) > behind + 5)
            assert offsets_seen(a, 0) == list(range(len(offsets_seen(a, 0))))

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("S3-46", "S3-48", "B.13.7")
def test_the_assignor_learns_its_part_after_the_revocation_and_before_the_assignment_changes() -> None:
    async def scenario(place: Place) -> None:
        class Noting(KeepAndShare):
            def on_assignment(self, assignment: Assignment, metadata: GroupMetadata) -> None:
                a._note("assignor", assignment.partitions)

        async with team(place, **FAST) as join:
            a = await join("a", partition_assignment_strategy=[Noting()])
            await until(lambda: a.partitions == ALL)
            a.listener_calls.clear()
            b = await join("b", partition_assignment_strategy=[KeepAndShare()])
            await until(lambda: shared_out(a, b))
            assert [(call.method, call.partitions, call.assignment) for call in a.listener_calls[:3]] == [
                ("revoked", (2, 3), ALL),
                ("assignor", (0, 1), (0, 1)),
                ("assigned", (), (0, 1)),
            ]

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("B.13.5", "B.13.8", "D-01", "I-28")
def test_a_member_that_polls_too_late_has_lost_what_it_kept_and_joins_again() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **cooperative(max_poll_interval_ms=8_000)) as join:
            a = await join("a")
            b = await join("b")
            await until(lambda: shared_out(a, b))
            had = b.partitions
            b.listener_calls.clear()
            await b.stop()
            await until(lambda: a.partitions == ALL)
            assert b.calls == []
            b.poll()
            await until(lambda: shared_out(a, b))
            assert b.calls[0] == ("lost", had)
            assert [call.method for call in b.listener_calls[1:]] == ["assigned", "assigned"]
            assert b.errors == []

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("B.13.11", "S4-01", "B.16.8")
def test_a_group_goes_from_eager_to_cooperative_member_by_member() -> None:
    class Either(KeepAndShare):
        supported_protocols = (COOPERATIVE, EAGER)

    async def restarted(join: Any, member: GroupMember, other: GroupMember, how: list[Any]) -> GroupMember:
        await member.close()
        again: GroupMember = await join(member.name, partition_assignment_strategy=how)
        await until(lambda: shared_out(again, other))
        return again

    async def scenario(place: Place) -> None:
        async with team(place, **FAST) as join:
            a = await join("a", partition_assignment_strategy=["range"])
            b = await join("b", partition_assignment_strategy=["range"])
            await until(lambda: shared_out(a, b))
            for how in (["range", Either()], [Either()]):
                a = await restarted(join, a, b, how)
                a.listener_calls.clear()
                b = await restarted(join, b, a, how)
            (revoked,) = [call for call in a.listener_calls if call.method == "revoked"]
            assert (revoked.assignment, revoked.partitions) == (ALL, b.partitions)

    simulate(scenario, topics={"t": 4})


# --- what goes on meanwhile


@pytest.mark.spec("S2-19", "B.13.11", "B.3.5", "S3-33", "U-06")
def test_what_is_kept_is_read_while_the_join_waits_for_a_busy_member() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **cooperative()) as join, publishing(place, every=0.2):
            a = await join("a")
            b = await join("b")
            await until(lambda: shared_out(a, b))
            await b.stop()
            await join("c")
            await until(lambda: any(one.response is None for one in a.asked("JoinGroup")))
            waiting = place.now
            await asyncio.sleep(8)
            assert all(one.response is not None for one in a.asked("JoinGroup")[:-1])
            assert a.asked("JoinGroup")[-1].response is None
            assert partitions_seen(a, waiting + 5) == set(a.partitions)
            fetched = a.asked("Fetch", since=waiting)
            assert len(fetched) > 40
            said = (await a.host.start(a.consumer.explain())).consumer
            assert said.startswith("2 partitions are kept meanwhile: group g joining")
            b.poll()
            await until(lambda: a.asked("JoinGroup")[-1].response is not None)

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("S3-30", "B.13.7", "I-01", "I-06")
def test_what_goes_is_committed_first_so_the_next_owner_continues_where_the_last_stopped() -> None:
    async def scenario(place: Place) -> None:
        settings = cooperative(enable_auto_commit=True, auto_commit_interval_ms=HOUR)
        async with team(place, **settings) as join, publishing(place, every=0.01):
            a = await join("a")
            await until(lambda: a.partitions == ALL and len(a.seen) > 40)
            b = await join("b")
            await until(lambda: shared_out(a, b) and set(b.partitions) <= partitions_seen(b, 0))
            for number in b.partitions:
                read = [*offsets_seen(a, number), *offsets_seen(b, number)]
                assert read == list(range(len(read)))
            assert all(call.at < place.now for call in a.listener_calls)

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("S3-10", "S3-11")
def test_what_a_member_keeps_is_read_on_while_its_commits_before_the_rebalance_take_long() -> None:
    async def scenario(place: Place) -> None:
        keys = cooperative(enable_auto_commit=True, auto_commit_interval_ms=HOUR)
        async with team(place, **keys) as join, publishing(place):
            a = await join("a")
            await until(lambda: a.partitions == ALL and len(a.seen) > 20)
            place.cluster.delay("OffsetCommit", ms=2_000)
            b = await join("b")
            await until(lambda: shared_out(a, b))
            assert len(a.asked("OffsetCommit")) >= 2
            kept = [one.at for one in a.seen if one.partition == 0]
            assert max(later - earlier for earlier, later in pairwise(kept)) < 1
            place.cluster.lift()

    simulate(scenario, topics={"t": 4})


# --- listeners that do more than listen


@pytest.mark.spec("S3-34", "S3-44", "B.14.3", "I-12")
def test_a_commit_inside_of_the_revocation_is_accepted() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **cooperative()) as join, publishing(place):
            a = await join("a")
            a.commits_when_revoked = True
            await until(lambda: a.partitions == ALL and len(a.seen) > 20)
            b = await join("b")
            await until(lambda: shared_out(a, b))
            (revoked,) = [call for call in a.listener_calls if call.method == "revoked"]
            (commit,) = a.asked("OffsetCommit")
            assert commit.request.generation_id_or_member_epoch == 2
            assert {p.error_code for topic in commit.response.topics for p in topic.partitions} == {0}
            assert revoked.assignment == ALL
            assert a.errors == []

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("S3-36", "S3-50", "B.13.3")
@pytest.mark.parametrize("method", ["revoked", "assigned"])
def test_what_a_listener_raises_is_raised_once_and_nothing_waits_for_it(method: str) -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **cooperative()) as join:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            a.listener_calls.clear()
            a.fails = (method, LookupError("no such thing"))
            b = await join("b")
            await until(lambda: shared_out(a, b))
            await asyncio.sleep(2)
            (error,) = a.errors
            assert isinstance(error, ListenerError)
            assert isinstance(error.__cause__, LookupError)
            assert error.callback == f"on_partitions_{method}"
            assert a.calls == [("revoked", (2, 3)), ("assigned", ()), ("assigned", ())]
            assert a.listener_calls[0].at == a.listener_calls[1].at

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("S3-50")
def test_of_two_errors_of_the_listener_in_one_rebalance_the_first_is_raised() -> None:
    class Failing(GroupMember):
        left = 0

        def _note(self, method: str, partitions: Iterable[TopicPartition]) -> None:
            super()._note(method, partitions)
            if self.left:
                self.left -= 1
                raise LookupError(method)

    async def scenario(place: Place) -> None:
        async with team(place, **cooperative()) as join:
            a = await join("a", kind=Failing)
            assert isinstance(a, Failing)
            await until(lambda: a.partitions == ALL)
            a.listener_calls.clear()
            a.left = 2
            b = await join("b")
            await until(lambda: shared_out(a, b))
            await asyncio.sleep(2)
            (error,) = a.errors
            assert isinstance(error, ListenerError)
            assert error.callback == "on_partitions_revoked"
            assert a.calls == [("revoked", (2, 3)), ("assigned", ()), ("assigned", ())]
            assert a.left == 0

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("B.3.7", "I-30")
def test_a_poll_that_is_cancelled_in_the_revocation_leaves_the_rest_to_the_next() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **cooperative()) as join:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            a.listener_calls.clear()
            entered = asyncio.Event()

            async def for_ever(partitions: Any) -> None:
                a._note("revoked", partitions)
                entered.set()
                await asyncio.Event().wait()

            a.on_partitions_revoked = for_ever  # type: ignore[method-assign]
            b = await join("b")
            await entered.wait()
            await a.stop()
            assert a.partitions == (0, 1)
            del a.on_partitions_revoked
            a.poll()
            await until(lambda: shared_out(a, b))
            assert a.calls == [("revoked", (2, 3)), ("assigned", ()), ("assigned", ())]

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("B.18", "B.13.8", "I-12")
@pytest.mark.parametrize("how", ["unsubscribe", "close"])
def test_a_member_that_leaves_inside_of_the_revocation_gives_up_the_rest_and_takes_nothing_over(
    how: str,
) -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **cooperative()) as join:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            a.listener_calls.clear()

            async def leave(partitions: Any) -> None:
                a._note("revoked", partitions)
                if len(a.listener_calls) == 1:
                    await getattr(a.consumer, how)()

            a.on_partitions_revoked = leave  # type: ignore[method-assign]
            b = await join("b")
            await until(lambda: b.partitions == ALL)
            assert a.calls == [("revoked", (2, 3)), ("revoked", (0, 1))]
            if how == "unsubscribe":
                assert a.partitions == ()

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("B.13.2", "B.2", "D-09")
def test_a_subscription_that_comes_back_before_anybody_looked_stops_nothing() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **cooperative()) as join, publishing(place):
            a = await join("a")
            await until(lambda: len(a.seen) > 20)

            async def there_and_back() -> None:
                await a.consumer.subscribe(["u"], listener=a)
                await a.consumer.subscribe(["t"], listener=a)

            await a.host.start(there_and_back())
            back = place.now
            await asyncio.sleep(5)
            assert partitions_seen(a, back + 2) == set(ALL)
            assert a.calls == [("assigned", ALL)]

    simulate(scenario, topics={"t": 4, "u": 2})
