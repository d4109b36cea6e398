"""Single rules of the coordinator of classic groups that a conversation which goes well never meets."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from kclient.generated.describe_groups_request import DescribeGroupsRequest
from kclient.generated.init_producer_id_request import InitProducerIdRequest
from kclient.generated.list_groups_request import ListGroupsRequest
from kclient.group.offsets_topic import offsets_topic_partition
from kclient.protocol.errors import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    MEMBER_ID_REQUIRED,
    NONE,
    NOT_COORDINATOR,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from tests.embedded.grouping import GROUP, Member, World, blob, gathered, known, plan, play, stable
from tests.waiting import until


async def answered(task: asyncio.Task[Any]) -> bool:
    """Whether a response has come, or comes now."""
    await asyncio.wait([task], timeout=0.05)
    return task.done()


def roll(response: Any) -> dict[str, bytes]:
    """Member id → metadata, as in the leader's JoinGroup response."""
    return {row.member_id: row.metadata for row in response.members}


# --- the coordinator


@pytest.mark.spec("S1-05", "S1-10")
def test_the_settings_say_how_many_partitions_hold_the_groups() -> None:
    async def scenario(world: World) -> None:
        await known(world)
        partitions = world.state.topics["__consumer_offsets"].partitions
        assert (len(partitions), {len(one.replicas) for one in partitions}) == (7, {2})
        for name in ("a", "my-group", "群组", "polygenelubricants"):
            response = await world.find(key=name)
            assert response.node_id == partitions[offsets_topic_partition(name, 7)].leader

    play(scenario, offsets_topic_num_partitions=7, offsets_topic_replication_factor=2)


@pytest.mark.spec("S1-37")
def test_a_transactional_id_has_one_coordinator_that_takes_its_requests() -> None:
    async def scenario(world: World) -> None:
        for name in ("payments", "refunds", "群组", "till-7"):
            await until_found(world, name)
            node = (await world.find(key=name, key_type=1)).node_id
            number = offsets_topic_partition(name, 50)
            assert node == world.state.topics["__transaction_state"].partitions[number].leader
            ask = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1_000)
            codes = {one: (await world.raw_client.ask(ask, 4, one)).error_code for one in (1, 2, 3)}
            assert codes == dict.fromkeys((1, 2, 3), NOT_COORDINATOR) | {node: NONE}
        assert "__consumer_offsets" not in world.state.topics

    play(scenario)


@pytest.mark.spec("S1-05")
@pytest.mark.parametrize(
    ("partitions", "replicas", "settings"),
    [
        (50, 3, {}),
        (6, 2, {"transaction_state_log_num_partitions": 6, "transaction_state_log_replication_factor": 2}),
    ],
)
def test_the_topic_of_transactions_has_settings_of_its_own(
    partitions: int, replicas: int, settings: dict[str, Any]
) -> None:
    async def scenario(world: World) -> None:
        await until_found(world, "payments")
        made = world.state.topics["__transaction_state"].partitions
        assert (len(made), {len(one.replicas) for one in made}) == (partitions, {replicas})

    play(scenario, **settings)


async def until_found(world: World, transactional_id: str) -> None:
    for _ in range(5_000):
        if (await world.find(key=transactional_id, key_type=1)).error_code == NONE:
            return
        await asyncio.sleep(0.001)
    raise TimeoutError("no coordinator was found")


@pytest.mark.spec("S1-35", "S4-13", "S4-15")
@pytest.mark.parametrize("version", [0, 3, 6])
def test_a_group_whose_partition_has_no_leader_has_no_coordinator(version: int) -> None:
    async def scenario(world: World) -> None:
        await known(world)
        names = {world.cluster.coordinator_of(name): name for name in "abcdefghij"}
        for node in (3, 2):
            name = names[node]
            world.cluster.kill(node)
            keys: dict[str, Any] = {"key": "", "coordinator_keys": [name]} if version >= 4 else {"key": name}
            response = await world.find(version, 1, **keys)
            row = response.coordinators[0] if version >= 4 else response
            found = row.error_code, row.node_id, row.host, row.port
            assert found == (COORDINATOR_NOT_AVAILABLE, -1, "", -1)

    play(scenario, release="4.3" if version else "2.8", offsets_topic_replication_factor=1)


# --- JoinGroup


@pytest.mark.spec("S4-29")
def test_an_unassigned_id_makes_no_group() -> None:
    async def scenario(world: World) -> None:
        await known(world)
        stranger = world.member()
        stranger.member_id = "made-up"
        assert (await stranger.ask_to_join()).error_code == UNKNOWN_MEMBER_ID
        assert (await world.ask(ListGroupsRequest(), 4)).groups == []

    play(scenario)


@pytest.mark.spec("S4-54")
def test_a_member_that_may_not_read_the_group_learns_nothing_of_it() -> None:
    async def scenario(world: World) -> None:
        member = world.member()
        await stable(world, member)
        world.cluster.deny("User:ANONYMOUS", "READ", f"Group:{GROUP}")
        response = await member.ask_to_join()
        reported = (response.generation_id, response.protocol_name or "", response.member_id, response.leader)
        assert (response.error_code, *reported, response.members) == (
            GROUP_AUTHORIZATION_FAILED,
            *(-1, "", "", ""),
            [],
        )

    play(scenario)


@pytest.mark.spec("S4-35")
def test_a_stable_group_begins_again_for_a_member_without_an_id() -> None:
    async def scenario(world: World) -> None:
        member, newcomer = world.member(), world.member(join_version=3)
        await stable(world, member)
        joining = await newcomer.parked()
        described = await world.ask(DescribeGroupsRequest(groups=[GROUP]), 5)
        assert described.groups[0].group_state == "PreparingRebalance"
        assert await member.heartbeat() == REBALANCE_IN_PROGRESS
        assert (await member.join()).generation_id == 2
        assert (await joining).generation_id == 2

    play(scenario)


@pytest.mark.spec("S4-33", "B.13.4")
def test_a_member_that_comes_with_its_new_id_continues_with_the_rebalance() -> None:
    async def scenario(world: World) -> None:
        member, newcomer = world.member(), world.member()
        await stable(world, member)
        assert (await newcomer.ask_to_join()).error_code == MEMBER_ID_REQUIRED
        joining = await member.parked()  # the leader wants a rebalance; the newcomer's id is waited for
        assert (await newcomer.ask_to_join()).generation_id == 2
        assert roll(await joining).keys() == {member.member_id, newcomer.member_id}

    play(scenario)


@pytest.mark.spec("S4-33")
def test_a_newcomer_does_not_end_the_join_phase_for_a_member_that_has_not_rejoined() -> None:
    async def scenario(world: World) -> None:
        leader, follower, newcomer = world.member(), world.member(), world.member(join_version=3)
        await stable(world, leader, follower)
        joining = [await leader.parked(), await newcomer.parked()]
        assert not any([await answered(one) for one in joining])
        assert (await follower.join()).generation_id == 2
        ids = {leader.member_id, follower.member_id, (await joining[1]).member_id}
        assert roll(await joining[0]).keys() == ids

    play(scenario)


@pytest.mark.spec("S4-34")
def test_the_last_metadata_that_a_member_sends_while_all_gather_counts() -> None:
    async def scenario(world: World) -> None:
        leader, follower = world.member(), world.member()
        await stable(world, leader, follower)
        for topic in ("changed", "changed again"):
            follower.protocols = (("range", blob(topic)),)
            follower.lane = topic  # a connection of its own, as the one before waits
            asked = asyncio.create_task(follower.ask_to_join())
            await until(partial(_says, world, follower, topic))
        response = await leader.join()
        assert roll(response)[follower.member_id] == blob("changed again")
        assert (await asked).generation_id == response.generation_id

    play(scenario)


def _says(world: World, member: Member, topic: str) -> bool:
    kept = world.group.members[member.member_id]
    return kept.joining is not None and kept.metadata("range") == blob(topic)


@pytest.mark.spec("S4-52")
def test_without_a_rebalance_timeout_the_session_timeout_is_taken() -> None:
    async def scenario(world: World) -> None:
        first = world.member(session_ms=10_000, rebalance_ms=-1, join_version=0)
        second = world.member(session_ms=30_000, join_version=0, rebalance_ms=-1)
        await stable(world, first)
        joining = await second.parked()
        world.pass_time(8.0)
        assert not await answered(joining)
        assert await first.heartbeat(version=0) == REBALANCE_IN_PROGRESS
        world.pass_time(25.0)
        assert (await joining).generation_id == 2

    play(scenario, release="2.8")


# --- SyncGroup


@pytest.mark.spec("S4-40")
def test_an_assignment_that_cannot_be_stored_fails_all_members_and_rebalances_again() -> None:
    async def scenario(world: World) -> None:
        leader, follower = world.member(), world.member()
        await gathered(world, leader, follower)
        waiting = asyncio.create_task(follower.ask_to_sync({}))
        await until(lambda: world.group.members[follower.member_id].syncing is not None)
        world.state.settings.min_insync_replicas = 4  # there are three
        parts = {leader.member_id: plan(0), follower.member_id: plan(1)}
        assert (await leader.ask_to_sync(parts)).error_code == COORDINATOR_NOT_AVAILABLE
        assert (await waiting).error_code == COORDINATOR_NOT_AVAILABLE
        assert [one.assignment for one in world.group.members.values()] == [b"", b""]
        assert await follower.heartbeat() == REBALANCE_IN_PROGRESS

    play(scenario)


@pytest.mark.spec("S4-41")
def test_a_late_sync_begins_the_session_again() -> None:
    async def scenario(world: World) -> None:
        leader, late = world.member(session_ms=60_000), world.member(session_ms=10_000)
        await stable(world, leader, late)
        for _ in range(3):
            world.pass_time(6.0)
            response = await late.ask_to_sync({})
            assert (response.error_code, response.assignment) == (NONE, plan(1))

    play(scenario)
