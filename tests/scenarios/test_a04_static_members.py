"""Scenario A-04: static members that come back, stay away, are doubled, or do not poll in time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kclient.errors import BrokerError
from kclient.protocol.errors import FENCED_INSTANCE_ID
from tests.scenarios.members import ALL, GroupMember, Joining, shared_out, team
from tests.scenarios.simulated import Place, simulate
from tests.waiting import until

STATIC: dict[str, Any] = {"session_timeout_ms": 10_000, "heartbeat_interval_ms": 1_000}


async def pair(join: Joining) -> tuple[GroupMember, GroupMember]:
    """Two static members, a and b, that share the partitions; a leads the group."""
    a = await join("a", group_instance_id="a")
    await until(lambda: a.partitions == ALL)
    b = await join("b", group_instance_id="b")
    await until(lambda: shared_out(a, b))
    await asyncio.sleep(2)
    for member in (a, b):
        member.take_calls()
    return a, b


@pytest.mark.spec("A-04", "B.13.10", "S4-31", "B.21")
@pytest.mark.parametrize("leaves", ["a", "b"])
def test_a04_a_restart_within_the_session_timeout_costs_no_rebalance(leaves: str) -> None:
    """Neither that of the leader nor that of a follower."""

    async def scenario(place: Place) -> None:
        async with team(place, **STATIC) as join:
            a, b = await pair(join)
            goes, stays = (a, b) if leaves == "a" else (b, a)
            before, had = goes.consumer.group_metadata(), goes.partitions
            await goes.close()
            await asyncio.sleep(1)
            began = place.now
            back = await join(leaves, group_instance_id=leaves)
            await until(lambda: shared_out(back, stays))
            await asyncio.sleep(5)
            after = back.consumer.group_metadata()
            assert back.calls == [("assigned", had)]
            assert after.generation_id == before.generation_id
            assert after.member_id != before.member_id
            assert after.member_id.startswith(f"{leaves}-")
            assert stays.calls == []
            assert stays.asked("JoinGroup", began) == []
            assert place.asked("LeaveGroup") == []
            (answered,) = back.asked("JoinGroup", began)
            assert answered.response.skip_assignment is (leaves == "a")
            (synced,) = back.asked("SyncGroup", began)
            assert synced.request.assignments == []

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("A-04", "B.13.10", "B.18", "B.21")
def test_a04_a_member_that_stays_away_for_longer_than_the_session_loses_its_part() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **STATIC) as join:
            a, b = await pair(join)
            await a.close()
            assert a.calls == [("revoked", (0, 1))]
            closed = place.now
            await until(lambda: b.partitions == ALL)
            assert 7 < place.now - closed < 12
            assert b.take_calls() == [("revoked", (2, 3)), ("assigned", ALL)]
            await asyncio.sleep(3)
            assert place.asked("LeaveGroup") == []
            back = await join("a", group_instance_id="a")
            await until(lambda: shared_out(back, b))
            assert back.calls == [("assigned", (0, 1))]
            assert b.take_calls() == [("revoked", ALL), ("assigned", (2, 3))]

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("A-04", "D-11", "B.13.10", "B.15.5", "B.15.8")
@pytest.mark.parametrize(("tells", "heartbeat_ms"), [("poll", 1_000), ("commit", 9_000)])
def test_a04_a_second_consumer_with_the_same_instance_id_fences_the_first(
    tells: str, heartbeat_ms: int
) -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **STATIC | {"heartbeat_interval_ms": heartbeat_ms}) as join:
            a, b = await pair(join)
            had = a.partitions
            if tells == "commit":
                await a.stop()
            began = place.now
            second = await join("second", group_instance_id="a")
            await until(lambda: second.partitions == had)
            if tells == "commit":
                with pytest.raises(BrokerError) as caught:
                    await a.host.start(a.consumer.commit())
                assert caught.value.code == FENCED_INSTANCE_ID
                assert len(a.asked("OffsetCommit", began)) == 1
                a.poll()
            await until(lambda: len(a.errors) > 3)
            assert {getattr(error, "code", None) for error in a.errors} == {FENCED_INSTANCE_ID}
            await asyncio.sleep(30)
            assert a.asked("JoinGroup", began) == []
            assert len(second.asked("JoinGroup")) == 1
            assert second.calls == [("assigned", had)]
            assert second.errors == b.errors == []
            assert b.calls == []

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("A-04", "B.13.5", "B.13.10", "B.13.6")
def test_a04_a_member_that_exceeds_max_poll_interval_leaves_silently_and_loses_its_partitions() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **STATIC, max_poll_interval_ms=15_000) as join:
            a, b = await pair(join)
            await a.stop()
            stopped = place.now
            await until(lambda: b.partitions == ALL, 120)
            assert 15 + 7 < place.now - stopped < 15 + 13  # its heartbeats end first, then the session
            assert place.asked("LeaveGroup") == []
            assert a.calls == []
            a.poll()
            await until(lambda: shared_out(a, b))
            assert a.calls == [("lost", (0, 1)), ("assigned", (0, 1))]
            assert a.errors == []

    simulate(scenario, topics={"t": 4})


class LeavingMember(GroupMember):
    """A member whose application says when it closes that it gives its place up."""

    async def leave(self) -> None:
        await self.consumer.close(leave=True)


@pytest.mark.spec("A-04", "B.18", "B.13.10", "B.15.6")
def test_a04_a_member_that_asks_for_it_leaves_with_its_member_id() -> None:
    async def scenario(place: Place) -> None:
        async with team(place, **STATIC) as join:
            a = await join("a", kind=LeavingMember, group_instance_id="a")
            b = await join("b", group_instance_id="b")
            await until(lambda: shared_out(a, b))
            member_id, closed = a.consumer.group_metadata().member_id, place.now
            await a.close()
            await until(lambda: b.partitions == ALL)
            assert place.now - closed < 4
            (left,) = place.asked("LeaveGroup")
            assert [one.member_id for one in left.request.members] == [member_id]
            assert left.response.members[0].error_code == 0

    simulate(scenario, topics={"t": 4})
