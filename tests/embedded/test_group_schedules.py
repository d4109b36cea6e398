"""A classic group under random schedules: waiting requests are answered, nothing goes from one state to a wrong one.

No network: members call the coordinator's flows, and time is the test's.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import attrs
import pytest

from kclient.embedded import EmbeddedCluster
from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.classic.group import ClassicGroup, heartbeat, leave
from kclient.embedded.groups.classic.join import JoiningMember, join
from kclient.embedded.groups.classic.metadata import ClassicGroupState
from kclient.embedded.groups.classic.sync import sync
from kclient.embedded.groups.loading import groups_of
from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.generated.leave_group_request import MemberIdentity
from kclient.generated.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kclient.protocol.errors import MEMBER_ID_REQUIRED, NONE
from kclient.runtime import Runtime
from tests.embedded.grouping import GROUP, PROTOCOLS, blob, plan

STEPS = 150
MEMBERS = 4
LONG = 3_600.0  # longer than any timeout of these members
NO_CLEANING = {"offsets.retention.check.interval.ms": 10**9}  # else an empty group soon is none

Answer = asyncio.Task[Any]


@attrs.define
class Actor:
    """A client that does one thing at a time, or nothing until it is answered."""

    group: ClassicGroup
    instance_id: str | None
    protocols: list[tuple[str, bytes]] = attrs.field(factory=lambda: list(PROTOCOLS))
    member_id: str = ""
    generation: int = -1
    roll: list[str] = attrs.field(factory=list)
    waiting: Answer | None = None
    syncing: bool = False
    abandoned: list[Answer] = attrs.field(factory=list)

    def joins(self) -> None:
        joiner = JoiningMember(
            self.member_id, self.instance_id, "actor", "/here", 6_000, 20_000, "consumer", self.protocols, 9
        )
        self._ask(join(self.group, joiner))

    def syncs(self) -> None:
        rows = [
            SyncGroupRequestAssignment(member_id=member_id, assignment=plan(number))
            for number, member_id in enumerate(self.roll)
        ]
        request = SyncGroupRequest(GROUP, self.generation, self.member_id, self.instance_id, assignments=rows)
        self.syncing = True
        self._ask(sync(self.group, request))

    def _ask(self, question: Coroutine[Any, Any, Any]) -> None:
        self.waiting = asyncio.get_running_loop().create_task(question)

    def beats(self) -> None:
        if self.generation >= 0:
            try:
                heartbeat(
                    self.group, HeartbeatRequest(GROUP, self.generation, self.member_id, self.instance_id)
                )
            except ApiError:
                self.forgets()

    def leaves(self) -> None:
        leave(self.group, MemberIdentity(self.member_id, self.instance_id))
        self.forgets()

    def restarts(self) -> None:
        """Another process takes over; what this one asked is still to be answered."""
        if self.waiting is not None:
            self.abandoned.append(self.waiting)
        self.waiting, self.syncing = None, False
        self.forgets()

    def forgets(self) -> None:
        self.member_id, self.generation = "", -1

    def hears(self) -> None:
        """Take the response, if there is one."""
        if self.waiting is None or not self.waiting.done():
            return
        task, self.waiting = self.waiting, None
        syncing, self.syncing = self.syncing, False
        try:
            response = task.result()
        except ApiError:
            self.forgets()
            return
        if syncing:
            self._synced(response)
        elif response is None or response.error_code not in (NONE, MEMBER_ID_REQUIRED):
            self.forgets()
        else:
            self._joined(response)

    def _joined(self, response: Any) -> None:
        self.member_id = response.member_id
        if response.error_code == NONE:
            assert response.generation_id >= self.generation
            self.generation = response.generation_id
            self.roll = [row.member_id for row in response.members]
            assert not self.roll or self.member_id in self.roll

    def _synced(self, response: Any) -> None:
        if response is None or response.error_code != NONE:
            self.forgets()
            return
        if self.group.generation == self.generation and self.group.state is ClassicGroupState.STABLE:
            assert self.group.members[self.member_id].assignment == response.assignment


def check(group: ClassicGroup) -> None:
    """What holds at every moment."""
    assert (group.leader in group.members) if group.members else group.leader is None
    assert group.state is not ClassicGroupState.EMPTY or not group.members
    named = {member.instance_id: name for name, member in group.members.items() if member.instance_id}
    assert group.static == named
    assert set(group.pending_sync_members) <= set(group.members)
    if group.state is ClassicGroupState.STABLE:
        parts = [member.assignment for member in group.members.values() if member.assignment]
        assert len(set(parts)) == len(parts)  # no two members have the same partition
    assert (group.join_timer is not None) == (group.state is ClassicGroupState.PREPARING)


@pytest.mark.spec("S4-01", "S4-42", "S4-36", "S4-56", "B.21")
@pytest.mark.parametrize("seed", range(25))
def test_a_waiting_request_is_answered_and_a_silent_group_ends_empty(seed: int) -> None:
    async def main() -> None:
        chance = random.Random(seed)
        runtime = Runtime(rng=random.Random(seed))
        async with EmbeddedCluster(1, runtime=runtime, config=NO_CLEANING) as cluster:
            cluster.coordinator_of(GROUP)
            coordinator = groups_of(cluster.state.brokers[1])
            group = coordinator.groups[GROUP] = ClassicGroup(coordinator, GROUP)
            refused: set[Any] = set()
            actors = [Actor(group, f"till-{n}" if n % 2 else None) for n in range(MEMBERS)]
            for _ in range(STEPS):
                step(chance, cluster, chance.choice(actors))
                for _ in range(3):
                    await asyncio.sleep(0)
                for actor in actors:
                    actor.hears()
                check(group)
            for _ in range(3):
                cluster.clock.advance(LONG)
                await asyncio.sleep(0)
            for actor in actors:
                actor.hears()
                assert actor.waiting is None
                done, missing = (
                    await asyncio.wait(actor.abandoned, timeout=0) if actor.abandoned else ((), ())
                )
                assert not missing
                refused.update(type(task.exception()) for task in done)
            assert refused <= {type(None), ApiError}
            assert (group.state, group.members, group.pending) == (ClassicGroupState.EMPTY, {}, {})

    asyncio.run(main())


def step(chance: random.Random, cluster: EmbeddedCluster, actor: Actor) -> None:
    """Something that a client may do next, or some time."""
    if chance.random() < 0.3:
        cluster.clock.advance(chance.choice([0.1, 1.0, 5.0]))
    elif chance.random() < 0.05:
        actor.restarts()
    elif chance.random() < 0.1:
        actor.leaves()
    elif actor.waiting is not None:
        actor.beats()
    elif chance.random() < 0.05:
        actor.protocols = [("range", blob("orders", user_data=chance.randbytes(2)))]
    elif actor.generation >= 0 and chance.random() < 0.6:
        actor.syncs()
    elif actor.generation >= 0 and chance.random() < 0.6:
        actor.beats()
    else:
        actor.joins()
