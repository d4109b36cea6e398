"""Scenario A-05: the coordinator dies, hands the group over or loads it, in every phase of a member's life.

The member a is in the group already; what happens to the coordinator happens while b joins, syncs, reads its offsets,
stays or commits.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any, Final

import attrs
import pytest

from kclient.embedded.observer import LoggedRequest
from kclient.errors import CommitFailedError, KclientError
from tests.scenarios.members import ALL, GROUP, GroupMember, Joining, all_seen, publishing, shared_out, team
from tests.scenarios.simulated import Place, simulate
from tests.waiting import until

SETTINGS: Final[dict[str, Any]] = {
    "enable_auto_commit": True,
    "session_timeout_ms": 30_000,
    "heartbeat_interval_ms": 3_000,
    "retry_backoff_ms": 100,
}
HELD_MS: Final = 1_000
LOADING_SECONDS: Final = 2
APIS: Final = {
    "joins": "JoinGroup",
    "syncs": "SyncGroup",
    "reads its offsets": "OffsetFetch",
    "commits": "OffsetCommit",
    "commits beside": "OffsetCommit",
}
PHASES: Final = (*APIS, "stays")
BEFORE_IT_IS_STABLE: Final = ("joins", "syncs")
WHILE_IT_READS: Final = ("commits", "commits beside", "stays")


@attrs.define
class Blow:
    """What happens to the coordinator, and when it happened."""

    place: Place
    kind: str
    phase: str
    at: float = 0.0

    def prepare(self) -> None:
        """Before the phase begins: its request is held back, so that the blow falls while it is out."""
        cluster, api = self.place.cluster, APIS.get(self.phase)
        if self.kind == "loads" and api is not None:
            cluster.fail(api, "COORDINATOR_LOAD_IN_PROGRESS", times=None)
        elif api is not None:
            cluster.delay(
                api, HELD_MS, times=1, client_id="b", only_if=lambda asked: getattr(asked, "member_id", "b")
            )

    async def fall(self, b: GroupMember) -> None:
        """The coordinator dies, or another one takes over, or it goes on loading and then is ready."""
        cluster, api = self.place.cluster, APIS.get(self.phase)
        if api is not None:
            await until(lambda: self.held(b))
            await asyncio.sleep(HELD_MS / 2000)
        self.at, node = self.place.now, cluster.coordinator_of(GROUP)
        if self.kind == "dies":
            cluster.kill(node)
        elif self.kind == "hands over":
            cluster.move_coordinator(GROUP)
        else:
            if api is None:
                for one in set(APIS.values()):
                    cluster.fail(one, "COORDINATOR_LOAD_IN_PROGRESS", times=None)
            await asyncio.sleep(LOADING_SECONDS)
            cluster.lift()

    def held(self, b: GroupMember) -> list[LoggedRequest]:
        """The requests of this phase that b has sent."""
        asked = b.asked(APIS[self.phase])
        return [one for one in asked if self.kind == "loads" or getattr(one.request, "member_id", "b")]


async def play(place: Place, join: Joining, blow: Blow, a: GroupMember) -> GroupMember:
    """Member b comes to the phase, and the blow falls; gives b when all is well again."""
    if blow.phase not in WHILE_IT_READS:
        blow.prepare()
        b = await join("b")
        await blow.fall(b)
        await until(lambda: shared_out(a, b))
    else:
        b = await join("b")
        await until(lambda: shared_out(a, b))
        await asyncio.sleep(2)
        blow.prepare()
        await commit_or_stay(blow, b)
    return b


async def commit_or_stay(blow: Blow, b: GroupMember) -> None:
    """What b does while the blow falls, if it is in the group."""
    responses: list[tuple[str, KclientError | None]] = []

    def answered(name: str) -> Callable[[Any, KclientError | None], None]:
        return lambda offsets, error: responses.append((name, error))

    committing = None
    if blow.phase == "commits":
        committing = b.host.start(b.consumer.commit(timeout=20.0))
    elif blow.phase == "commits beside":
        for name in ("first", "second", "third"):
            b.consumer.commit_async(callback=answered(name))
    await blow.fall(b)
    if committing is not None:
        await committing
    if blow.phase == "commits beside":
        await until(lambda: len(responses) == 3)
        assert [name for name, _ in responses] == ["first", "second", "third"]
        for _, error in responses:
            assert error is None or (isinstance(error, CommitFailedError) and error.reason == "retriable")


def check_the_search(blow: Blow, b: GroupMember) -> None:
    """The coordinator is sought again, with pauses, if and only if it is not the coordinator any more."""
    lookups = b.asked("FindCoordinator", blow.at)
    assert bool(lookups) is (blow.kind != "loads")
    if blow.kind == "hands over" and blow.phase in APIS:
        assert lookups[0].at - blow.at < HELD_MS / 1000  # with the response, and not with the next heartbeat
    for before, after in itertools.pairwise(lookups):
        assert after.at - before.at >= 0.07


def check_the_membership(blow: Blow, a: GroupMember, b: GroupMember) -> None:
    """Who was a member of a generation that was stored stays one, without a rebalance."""
    metadata = [member.consumer.group_metadata() for member in (a, b)]
    assert metadata[0].generation_id == metadata[1].generation_id
    joins = [len(member.asked("JoinGroup", blow.at)) for member in (a, b)]
    if blow.phase not in BEFORE_IT_IS_STABLE:
        assert joins == [0, 0]
    assert [call.method for call in b.listener_calls] == ["assigned"]
    assert [call.method for call in a.listener_calls][:3] == ["assigned", "revoked", "assigned"]


def check_that_reading_went_on(blow: Blow, *members: GroupMember) -> None:
    """No partition of theirs stood still for longer than a broker's death takes to be noticed."""
    for member in members:
        for number in member.partitions:
            times = [one.at for one in member.seen if one.partition == number and one.at > blow.at - 1]
            assert max(after - before for before, after in itertools.pairwise(times)) < 2


@pytest.mark.spec("A-05", "D-10", "D-20", "B.13.3", "B.15.4", "B.15.7", "B.15.8")
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("kind", ["dies", "hands over", "loads"])
def test_a05_the_coordinator_fails_while_a_member(phase: str, kind: str) -> None:
    async def scenario(place: Place) -> None:
        place.cluster.prepare_groups()
        async with team(place, **SETTINGS) as join, publishing(place) as written:
            a = await join("a")
            await until(lambda: a.partitions == ALL)
            await asyncio.sleep(2)
            blow = Blow(place, kind, phase)
            b = await play(place, join, blow, a)
            await asyncio.sleep(10)
            total = len(written) - 20
            assert shared_out(a, b)
            assert set(range(total)) <= set(all_seen(a, b))
            assert a.errors == b.errors == []
            assert b.asked("ListOffsets") == []
            check_the_search(blow, b)
            check_the_membership(blow, a, b)
            if phase in WHILE_IT_READS:
                check_that_reading_went_on(blow, a, b)
            if phase == "reads its offsets" and kind != "loads":
                sent = [one for one in b.asked("OffsetFetch") if one.at < blow.at]
                assert len(sent) == 1  # and it was waited for over several polls

    simulate(scenario, brokers=3, topics={"t": 4})
