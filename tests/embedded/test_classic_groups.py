"""The coordinator of classic groups, with its time in the test's hand: who is waited for, how long, and what then.

What each API answers in each state is in tests/conformance, where real brokers are asked the same.
"""

from __future__ import annotations

import asyncio
import random
import re
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.embedded.groups.classic.metadata import MAY_BE_ENTERED_FROM, ClassicGroupState
from kclient.embedded.groups.loading import groups_of
from kclient.embedded.observer import Observer
from kclient.protocol.errors import (
    FENCED_INSTANCE_ID,
    GROUP_MAX_SIZE_REACHED,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from kclient.runtime import Runtime
from kclient.types import TopicPartition
from tests.embedded.grouping import (
    GROUP,
    INITIAL_DELAY,
    Member,
    World,
    blob,
    gathered,
    known,
    plan,
    play,
    stable,
)
from tests.embedded.raw_client import RawClient
from tests.waiting import until


async def answered(task: asyncio.Task[Any]) -> bool:
    """Whether a response has come, or comes now."""
    await asyncio.wait([task], timeout=0.05)
    return task.done()


# --- the initial delay


@pytest.mark.spec("S4-53", "S4-37", "S4-32", "S4-30", "E13")
def test_new_members_lengthen_the_initial_delay_and_all_are_answered_together() -> None:
    async def scenario(world: World) -> None:
        first, second = world.member(), world.member()
        await known(world)
        joining = await first.parked()
        world.pass_time(1.0)
        also = await second.parked()
        world.pass_time(INITIAL_DELAY - 1.0)
        assert not await answered(joining)
        world.pass_time(INITIAL_DELAY)
        leader, follower = await joining, await also
        assert (leader.generation_id, follower.generation_id) == (1, 1)
        assert leader.leader == follower.leader == first.member_id
        assert [row.member_id for row in leader.members] == [first.member_id, second.member_id]
        assert [row.metadata for row in leader.members] == [blob("orders")] * 2
        assert follower.members == []

    play(scenario)


@pytest.mark.spec("S4-53", "E13")
def test_the_initial_delay_never_is_longer_than_the_rebalance_timeout() -> None:
    async def scenario(world: World) -> None:
        members = [world.member(rebalance_ms=4_000) for _ in range(2)]
        await known(world)
        joining = await members[0].parked()
        await members[1].parked()
        world.pass_time(INITIAL_DELAY)
        assert not await answered(joining)
        world.pass_time(1.0)
        assert (await joining).error_code == NONE

    play(scenario)


@pytest.mark.spec("S4-53")
def test_in_a_later_generation_too_the_last_to_join_has_all_answered() -> None:
    async def scenario(world: World) -> None:
        leader, follower, third = (world.member() for _ in range(3))
        await stable(world, leader, follower)
        before = follower.generation
        joining = [await third.parked(), await follower.parked()]
        assert not any([await answered(one) for one in joining])
        async with asyncio.timeout(5):
            responses = await asyncio.gather(leader.join(), *joining)
        assert [(one.error_code, one.generation_id) for one in responses] == [(NONE, before + 1)] * 3

    play(scenario)


# --- member ids


@pytest.mark.spec("S4-31", "E11", "B.13.10")
def test_member_ids_begin_with_the_client_or_the_instance() -> None:
    async def scenario(world: World) -> None:
        dynamic, static = world.member(), world.member(instance_id="till-7")
        await gathered(world, dynamic, static)
        uuid = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
        assert re.fullmatch("asker-" + uuid, dynamic.member_id)
        assert re.fullmatch("till-7-" + uuid, static.member_id)

    play(scenario)


@pytest.mark.spec("S4-31")
def test_the_same_seed_gives_the_same_member_ids() -> None:
    async def first_id() -> str:
        runtime = Runtime(rng=random.Random(7))
        async with EmbeddedCluster(runtime=runtime) as cluster, RawClient(cluster) as raw_client:
            member = World(cluster, raw_client).member()
            await known(member.world)
            return str((await member.ask_to_join()).member_id)

    assert asyncio.run(first_id()) == asyncio.run(first_id())


@pytest.mark.spec("B.21", "B.13.4")
def test_an_id_that_was_given_out_is_waited_for_no_longer_than_its_session() -> None:
    async def scenario(world: World) -> None:
        leader, late = world.member(session_ms=30_000), world.member(session_ms=6_000)
        await stable(world, leader)
        assert (await late.ask_to_join()).error_code == MEMBER_ID_REQUIRED
        joining = await leader.parked()
        world.pass_time(5.9)
        assert not await answered(joining)
        world.pass_time(0.2)
        assert (await joining).generation_id == 2
        assert (await late.ask_to_join()).error_code == UNKNOWN_MEMBER_ID

    play(scenario)


# --- who is waited for


@pytest.mark.spec("S4-55", "S4-34", "S4-36")
def test_a_member_whose_response_is_held_back_does_not_expire() -> None:
    async def scenario(world: World) -> None:
        parked, slow = world.member(session_ms=6_000), world.member(session_ms=6_000)
        await stable(world, parked, slow)
        joining = await parked.parked()
        for _ in range(5):
            world.pass_time(2.0)
            assert await slow.heartbeat() == REBALANCE_IN_PROGRESS
        assert (await slow.join()).error_code == NONE
        assert len((await joining).members) == 2

    play(scenario)


@pytest.mark.spec("S4-55")
def test_the_session_begins_again_with_a_response_to_a_join_that_was_held_back() -> None:
    async def scenario(world: World) -> None:
        parked, slow = world.member(session_ms=6_000), world.member(session_ms=6_000)
        await stable(world, parked, slow)
        joining = await parked.parked()
        for _ in range(3):
            world.pass_time(4.0)
            assert await slow.heartbeat() == REBALANCE_IN_PROGRESS
        assert (await slow.join()).generation_id == (await joining).generation_id
        await check_that_the_session_has_just_begun(world, parked, slow)

    play(scenario)


@pytest.mark.spec("S4-55")
def test_the_session_begins_again_with_a_response_to_a_sync_that_was_held_back() -> None:
    async def scenario(world: World) -> None:
        leader, parked = world.member(session_ms=6_000), world.member(session_ms=6_000)
        await gathered(world, leader, parked)
        syncing = asyncio.create_task(parked.ask_to_sync({}))
        await until(lambda: world.group.members[parked.member_id].syncing is not None)
        for _ in range(3):
            world.pass_time(4.0)
            assert await leader.heartbeat() == NONE
        assert (await leader.ask_to_sync({parked.member_id: plan(0)})).error_code == NONE
        assert (await syncing).assignment == plan(0)
        await check_that_the_session_has_just_begun(world, parked, leader)

    play(scenario)


async def check_that_the_session_has_just_begun(world: World, silent: Member, alive: Member) -> None:
    """It ends 6 s from now, without a heartbeat."""
    world.pass_time(4.0)
    assert await alive.heartbeat() == NONE
    assert silent.member_id in world.group.members
    world.pass_time(2.5)
    assert world.group.members.keys() == {alive.member_id}


@pytest.mark.spec("S4-36", "B.21", "E13")
def test_a_member_that_does_not_rejoin_within_the_longest_rebalance_timeout_is_dropped() -> None:
    async def scenario(world: World) -> None:
        quick = world.member(rebalance_ms=5_000, session_ms=60_000)
        slow = world.member(rebalance_ms=20_000, session_ms=60_000)
        await stable(world, quick, slow)
        joining = await quick.parked()
        world.pass_time(19.9)
        assert not await answered(joining)
        world.pass_time(0.2)
        response = await joining
        assert [row.member_id for row in response.members] == [quick.member_id]
        assert response.generation_id == 2
        assert await slow.heartbeat() == UNKNOWN_MEMBER_ID

    play(scenario)


@pytest.mark.spec("S4-42", "B.21")
def test_a_silent_member_is_removed_after_its_session_and_the_others_rejoin() -> None:
    async def scenario(world: World) -> None:
        alive, silent = world.member(), world.member(session_ms=6_000)
        await stable(world, alive, silent)
        world.pass_time(5.0)
        assert await alive.heartbeat() == NONE
        world.pass_time(1.5)
        assert await alive.heartbeat() == REBALANCE_IN_PROGRESS
        assert len((await alive.join()).members) == 1
        assert await silent.heartbeat() == UNKNOWN_MEMBER_ID

    play(scenario)


@pytest.mark.spec("B.21")
def test_a_new_member_waits_five_minutes_for_the_others_not_longer() -> None:
    async def scenario(world: World) -> None:
        stubborn = world.member(rebalance_ms=900_000, session_ms=60_000)
        await stable(world, stubborn)
        joining = await world.member().parked()
        for _ in range(9):
            world.pass_time(30.0)
            assert await stubborn.heartbeat() == REBALANCE_IN_PROGRESS
        world.pass_time(29.0)
        assert not await answered(joining)
        world.pass_time(2.0)
        assert (await joining).error_code == UNKNOWN_MEMBER_ID

    play(scenario)


@pytest.mark.spec("B.21")
def test_static_members_that_stay_away_are_kept_until_their_sessions_end() -> None:
    async def scenario(world: World) -> None:
        here = world.member(session_ms=60_000, rebalance_ms=5_000)
        away = world.member(instance_id="away", session_ms=30_000, rebalance_ms=5_000)
        await stable(world, here, away)
        joining = await here.parked()
        world.pass_time(5.1)
        assert [row.group_instance_id for row in (await joining).members] == [None, "away"]

    play(scenario)


@pytest.mark.spec("B.21")
def test_a_group_of_absent_static_members_gathers_until_it_is_empty() -> None:
    async def scenario(world: World) -> None:
        one = world.member(instance_id="one", session_ms=30_000, rebalance_ms=5_000)
        two = world.member(session_ms=6_000)
        await stable(world, one, two)
        assert (await two.leave()).error_code == NONE
        world.pass_time(20.0)
        assert (world.group.state_name, world.group.generation) == ("PreparingRebalance", 1)
        world.pass_time(11.0)
        assert (world.group.state_name, world.group.generation) == ("Empty", 2)

    play(scenario)


# --- the plan


@pytest.mark.spec("S4-56", "S4-42")
def test_a_third_member_before_the_plan_sends_all_back_to_join() -> None:
    async def scenario(world: World) -> None:
        leader, follower, third = (world.member() for _ in range(3))
        await gathered(world, leader, follower)
        syncing = asyncio.create_task(follower.ask_to_sync({}))
        await until(lambda: any(member.syncing for member in world.group.members.values()))
        joining = await third.parked()
        assert (await syncing).error_code == REBALANCE_IN_PROGRESS
        assert (await leader.ask_to_sync({})).error_code == REBALANCE_IN_PROGRESS
        await asyncio.gather(leader.join(), follower.join(), joining)
        assert (leader.generation, follower.generation, third.generation) == (2, 2, 2)

    play(scenario)


@pytest.mark.spec("S4-40", "S4-56")
def test_a_plan_that_is_overtaken_while_it_is_stored_changes_nothing() -> None:
    async def scenario(world: World) -> None:
        leader, third = world.member(), world.member()
        await gathered(world, leader)
        hold_back(world)
        syncing = asyncio.create_task(leader.ask_to_sync({leader.member_id: plan(0)}))
        await until(lambda: any(member.syncing for member in world.group.members.values()))
        joining = await third.parked()
        assert (await syncing).error_code == REBALANCE_IN_PROGRESS
        world.cluster.catch_up("__consumer_offsets", partition_of(world))
        await asyncio.sleep(0.01)
        assert world.group.state_name == "PreparingRebalance"
        assert [member.assignment for member in world.group.members.values()] == [b"", b""]
        await asyncio.gather(leader.join(), joining)

    play(scenario)


def partition_of(world: World) -> int:
    """Where the group is written."""
    return int(groups_of(world.state.brokers[world.cluster.coordinator_of(GROUP)]).partition_of(GROUP))


def hold_back(world: World) -> None:
    """From now on nothing that the coordinator writes is replicated."""
    topic = world.state.topics["__consumer_offsets"].partitions[partition_of(world)]
    for node in topic.replicas:
        if node != topic.leader:
            world.cluster.lag("__consumer_offsets", topic.number, node)


@pytest.mark.spec("S4-40", "S4-41")
def test_a_forgotten_member_gets_nothing_and_a_late_one_what_was_stored() -> None:
    async def scenario(world: World) -> None:
        leader, late, forgotten = (world.member() for _ in range(3))
        await gathered(world, leader, late, forgotten)
        await leader.ask_to_sync({leader.member_id: plan(0), late.member_id: plan(1, 2)})
        assert (await late.ask_to_sync({})).assignment == plan(1, 2)
        assert (await forgotten.ask_to_sync({})).assignment == b""

    play(scenario)


@pytest.mark.spec("B.21")
def test_a_member_that_does_not_ask_for_its_part_within_the_rebalance_timeout_is_removed() -> None:
    async def scenario(world: World) -> None:
        prompt, never = (world.member(rebalance_ms=5_000, session_ms=60_000) for _ in range(2))
        await gathered(world, prompt, never)
        await prompt.ask_to_sync({prompt.member_id: plan(0)})
        world.pass_time(5.1)
        assert await prompt.heartbeat() == REBALANCE_IN_PROGRESS
        assert await never.heartbeat() == UNKNOWN_MEMBER_ID

    play(scenario)


@pytest.mark.spec("B.21", "B.15.5")
@pytest.mark.parametrize(("release", "code"), [("4.3", NONE), ("2.8", NONE), ("2.3", REBALANCE_IN_PROGRESS)])
def test_a_heartbeat_between_join_and_sync_as_each_release_takes_it(release: str, code: int) -> None:
    async def scenario(world: World) -> None:
        version = 9 if release == "4.3" else 5
        leader = world.member(join_version=version)
        await gathered(world, leader)
        assert await leader.heartbeat(version=3) == code

    play(scenario, release)


@pytest.mark.spec("B.21")
def test_a_group_that_has_all_its_parts_is_left_alone_by_the_rebalance_timeout() -> None:
    async def scenario(world: World) -> None:
        members = [world.member(rebalance_ms=5_000, session_ms=60_000) for _ in range(2)]
        await stable(world, *members)
        world.pass_time(20.0)
        assert [await member.heartbeat() for member in members] == [NONE, NONE]

    play(scenario)


# --- protocols, sizes, states


@pytest.mark.spec("B.21")
def test_the_protocol_with_most_votes_among_the_common_ones_wins() -> None:
    async def scenario(world: World) -> None:
        ways = [("a", "b", "c"), ("b", "a"), ("b", "a", "d")]
        members = [world.member(protocols=tuple((name, blob("orders")) for name in names)) for names in ways]
        responses = await gathered(world, *members)
        assert {response.protocol_name for response in responses} == {"b"}

    play(scenario)


@pytest.mark.spec("B.21")
def test_a_group_that_is_read_back_too_large_keeps_those_that_come_first() -> None:
    async def scenario(world: World) -> None:
        one, two = world.member(), world.member()
        await stable(world, one, two)
        world.state.settings.group_max_size = 1
        world.cluster.move_coordinator(GROUP)
        assert await two.heartbeat() == REBALANCE_IN_PROGRESS
        joining = await two.parked()
        assert (await one.ask_to_join()).error_code == GROUP_MAX_SIZE_REACHED
        assert len((await joining).members) == 1

    play(scenario)


@pytest.mark.spec("S4-42", "B.21")
def test_the_last_member_leaves_an_empty_group_of_the_next_generation() -> None:
    seen: list[tuple[str, int, dict[str, list[TopicPartition]]]] = []

    class Watcher(Observer):
        def rebalanced(self, group_id: str, generation: int, owned: dict[str, list[TopicPartition]]) -> None:
            seen.append((group_id, generation, owned))

    async def scenario(world: World) -> None:
        world.state.observers.append(Watcher())
        member = world.member()
        await stable(world, member)
        await member.leave()
        assert (world.group.state_name, world.group.generation) == ("Empty", 2)
        owned = {member.member_id: [TopicPartition("orders", 0)]}
        assert seen == [(GROUP, 1, owned), (GROUP, 2, {})]

    play(scenario)


@pytest.mark.spec("B.13.10", "B.21")
@pytest.mark.parametrize(("release", "skips", "leads"), [("4.3", True, True), ("2.8", False, False)])
def test_a_static_leader_that_comes_back_takes_its_place_without_a_rebalance(
    release: str, skips: bool, leads: bool
) -> None:
    seen: list[tuple[int, dict[str, list[TopicPartition]]]] = []

    class Watcher(Observer):
        def rebalanced(self, group_id: str, generation: int, owned: dict[str, list[TopicPartition]]) -> None:
            seen.append((generation, owned))

    async def scenario(world: World) -> None:
        before, other, after = (world.member(instance_id=name) for name in ("a", "b", "a"))
        await stable(world, before, other)
        world.state.observers.append(Watcher())
        response = await after.join()
        assert (response.error_code, response.generation_id) == (NONE, 1)
        assert (response.skip_assignment, response.leader == after.member_id) == (skips, leads)
        assert len(response.members) == (2 if leads else 0)
        assert (await after.ask_to_sync({})).assignment == plan(0)
        assert await other.heartbeat() == NONE
        assert await before.heartbeat() == FENCED_INSTANCE_ID
        assert await before.commit(1) == FENCED_INSTANCE_ID
        owned = {
            after.member_id: [TopicPartition("orders", 0)],
            other.member_id: [TopicPartition("orders", 1)],
        }
        assert seen == [(1, owned)]

    play(scenario, release)


@pytest.mark.spec("S4-42", "B.21")
def test_the_table_of_states_is_that_of_the_coordinator_model() -> None:
    wanted = {
        "Empty": "PreparingRebalance",
        "PreparingRebalance": "Stable CompletingRebalance Empty",
        "CompletingRebalance": "PreparingRebalance",
        "Stable": "CompletingRebalance",
        "Dead": "Empty PreparingRebalance CompletingRebalance Stable Dead",
    }
    table = {
        state.value: {before.value for before in befores} for state, befores in MAY_BE_ENTERED_FROM.items()
    }
    assert table == {state: set(befores.split()) for state, befores in wanted.items()}
    assert set(table) == {state.value for state in ClassicGroupState}
