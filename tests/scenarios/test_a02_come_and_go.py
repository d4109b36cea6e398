"""Scenario A-02: members of a group come, go and are killed, eager and cooperative, while records are written."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter

import pytest

from kclient.errors import ListenerError
from tests.scenarios.members import ALL, GroupMember, all_seen, publishing, shared_out, team
from tests.scenarios.simulated import Place, simulate
from tests.waiting import until

SESSION = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 500}
EAGER, COOPERATIVE = "range", "cooperative-sticky"


async def settled(*members: GroupMember) -> None:
    """Everything is shared out, and stays so for a while."""
    await until(lambda: shared_out(*members))
    await asyncio.sleep(2)
    assert shared_out(*members)


@pytest.mark.spec("A-02", "S4-01", "S3-27", "S3-32", "S3-34", "S3-43", "S3-48", "S3-49", "D-28")
def test_a02_eager_members_give_up_all_and_get_their_part_again() -> None:
    async def scenario(place: Place) -> None:
        settings = {"partition_assignment_strategy": [EAGER], "enable_auto_commit": True, **SESSION}
        async with team(place, **settings) as join, publishing(place) as written:
            a = await join("a")
            await settled(a)
            assert a.take_calls() == [("assigned", ALL)]
            b = await join("b")
            await settled(a, b)
            assert [call.assignment for call in a.listener_calls] == [
                ALL,
                (0, 1),
            ]  # it changes behind the callback
            assert a.take_calls() == [("revoked", ALL), ("assigned", (0, 1))]
            assert b.take_calls() == [("assigned", (2, 3))]
            await b.close()
            await settled(a)
            assert a.take_calls() == [("revoked", (0, 1)), ("assigned", ALL)]
            assert b.take_calls() == [("revoked", (2, 3))]
            again = await join("b")
            await settled(a, again)
            assert a.take_calls() == [("revoked", ALL), ("assigned", (0, 1))]
            clean = len(written)
            assert all_seen(a, b, again)[: clean - 10] == list(range(clean - 10))
            again.kill()
            killed = place.now
            await settled(a)
            revoked = a.listener_calls[0]
            assert 5 < revoked.at - killed < 8
            assert a.take_calls() == [("revoked", (0, 1)), ("assigned", ALL)]
            await asyncio.sleep(2)
            total = len(written) - 10
            counted = Counter(all_seen(a, b, again))
            assert set(range(total)) <= set(counted)
            assert {number % 4 for number, times in counted.items() if times > 1} <= {2, 3}
            assert a.errors == b.errors == []

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("A-02", "S3-34", "S3-32", "S0-13", "B.13.6", "D-28")
@pytest.mark.parametrize("strategy", [EAGER, COOPERATIVE])
def test_a02_what_is_committed_while_it_is_revoked_is_where_the_next_owner_starts(strategy: str) -> None:
    async def scenario(place: Place) -> None:
        async with (
            team(place, partition_assignment_strategy=[strategy]) as join,
            publishing(place) as written,
        ):
            a = await join("a")
            a.commits_when_revoked = True
            await settled(a)
            b = await join("b")
            b.commits_when_revoked = True
            await settled(a, b)
            (handed_over,) = [call for call in a.listener_calls if call.method == "revoked"]
            for number in ALL:
                before = [
                    one.offset for one in a.seen if one.partition == number and one.at <= handed_over.at
                ]
                owner = a if number in a.partitions else b
                after = [
                    one.offset for one in owner.seen if one.partition == number and one.at > handed_over.at
                ]
                assert after[0] == before[-1] + 1
            await b.close()
            await settled(a)
            await asyncio.sleep(1)
            total = len(written) - 10
            assert all_seen(a, b)[:total] == list(range(total))
            commit = place.asked("OffsetCommit")[0].request
            assert commit.generation_id_or_member_epoch == (1 if strategy == EAGER else 2)

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("A-02", "S3-36", "S3-50", "B.13.6", "B.13.7")
@pytest.mark.parametrize("strategy", [EAGER, COOPERATIVE])
@pytest.mark.parametrize("method", ["revoked", "assigned"])
def test_a02_a_listener_that_raises_stops_nothing_and_its_error_is_raised_once(
    method: str, strategy: str
) -> None:
    async def scenario(place: Place) -> None:
        settings = {"partition_assignment_strategy": [strategy], "enable_auto_commit": True}
        async with team(place, **settings) as join, publishing(place) as written:
            a = await join("a")
            await settled(a)
            a.fails = (method, RuntimeError("not now"))
            b = await join("b")
            await settled(a, b)
            (error,) = a.errors
            assert isinstance(error, ListenerError)
            assert str(error.__cause__) == "not now"
            await asyncio.sleep(1)
            total = len(written) - 10
            assert all_seen(a, b)[:total] == list(range(total))
            assert b.errors == []

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("A-02", "S3-10", "S3-33", "S3-43", "S3-44", "S3-48", "B.13.11", "D-08", "S0-13")
def test_a02_cooperative_members_give_up_only_what_moves() -> None:
    async def scenario(place: Place) -> None:
        settings = {"partition_assignment_strategy": [COOPERATIVE], "enable_auto_commit": True, **SESSION}
        async with team(place, **settings) as join, publishing(place) as written:
            a = await join("a")
            await settled(a)
            assert a.take_calls() == [("assigned", ALL)]
            began = place.now
            b = await join("b")
            await settled(a, b)
            kept, moved = a.partitions, b.partitions
            assert len(moved) == 2
            assert [call.assignment for call in a.listener_calls] == [ALL, kept, kept]
            assert [call.assignment for call in b.listener_calls] == [(), moved]
            assert a.take_calls() == [("revoked", moved), ("assigned", ()), ("assigned", ())]
            assert b.take_calls() == [("assigned", ()), ("assigned", moved)]
            joins = [one for one in b.asked("JoinGroup", began) if one.request.member_id]
            assert len(joins) == 2
            assert a.asked("OffsetFetch", began) == []
            for number in kept:
                offsets = [one.offset for one in a.seen if one.partition == number]
                assert offsets == list(range(len(offsets)))
                times = [one.at for one in a.seen if one.partition == number and one.at > began]
                assert max(later - before for before, later in itertools.pairwise(times)) < 0.5
            await b.close()
            await settled(a)
            assert a.take_calls() == [("assigned", moved)]
            assert b.take_calls() == [("revoked", moved)]
            again = await join("b")
            await settled(a, again)
            moved = again.partitions
            assert a.take_calls() == [("revoked", moved), ("assigned", ()), ("assigned", ())]
            clean = len(written) - 10
            assert all_seen(a, b, again)[:clean] == list(range(clean))
            again.kill()
            await settled(a)
            assert a.take_calls() == [("assigned", moved)]
            await asyncio.sleep(1)
            total = len(written) - 10
            assert set(range(total)) <= set(all_seen(a, b, again))
            assert a.errors == b.errors == []

    simulate(scenario, topics={"t": 4})
