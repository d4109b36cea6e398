"""A coordinator that goes, and one that comes: what it remembers, what it answers until it does, who has to rejoin."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.embedded.groups.loading import groups_of
from kclient.embedded.groups.offsets import CommittedOffset
from kclient.embedded.groups.records import commit_record
from kclient.embedded.observer import Observer
from kclient.embedded.partition import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kclient.embedded.replication import append
from kclient.generated.describe_groups_request import DescribeGroupsRequest
from kclient.generated.find_coordinator_request import FindCoordinatorRequest
from kclient.generated.list_groups_request import ListGroupsRequest
from kclient.protocol.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    NONE,
    NOT_COORDINATOR,
    REBALANCE_IN_PROGRESS,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_MEMBER_ID,
)
from kclient.records.writer import build_marker
from kclient.types import TopicPartition
from tests.embedded.grouping import GROUP, World, gathered, known, plan, play, stable
from tests.waiting import until

CONSUMER_OFFSETS = "__consumer_offsets"


# --- finding it


@pytest.mark.spec("S1-03", "S1-09", "S1-25", "S1-35", "S4-13", "S4-14")
def test_two_first_lookups_make_one_topic_and_both_are_asked_to_retry() -> None:
    async def scenario(world: World) -> None:
        first, second = await asyncio.gather(world.find(node=1), world.find(node=2))
        for response in (first, second):
            assert (response.error_code, response.node_id) == (COORDINATOR_NOT_AVAILABLE, -1)
            assert (response.host, response.port) == ("", -1)
        await until(lambda: CONSUMER_OFFSETS in world.state.topics)
        assert list(world.state.topics) == ["orders", CONSUMER_OFFSETS]
        third, fourth = await asyncio.gather(world.find(node=1), world.find(node=2))
        assert third == fourth
        assert (third.node_id, third.error_message) == (world.cluster.coordinator_of(GROUP), "NONE")
        assert (third.host, third.port) == world.state.brokers[third.node_id].listeners[0].address

    play(scenario)


@pytest.mark.spec("S1-09")
@pytest.mark.parametrize(("kind", "name"), [(0, OFFSETS_TOPIC), (1, TRANSACTIONS_TOPIC)])
def test_a_topic_that_three_lookups_want_is_created_once(kind: int, name: str) -> None:
    created: list[str] = []

    class Creations(Observer):
        def topic_created(self, topic: str, partitions: int) -> None:
            created.append(topic)

    async def scenario(world: World) -> None:
        world.state.observers.append(Creations())
        await asyncio.gather(*(world.find(node=node, key_type=kind) for node in (1, 2, 3)))
        await until(lambda: created)
        for node in (1, 2, 3):
            assert (await world.find(node=node, key_type=kind)).error_code == NONE
        world.pass_time(1.0)
        assert created == [name]

    play(scenario)


@pytest.mark.spec("S4-14", "S1-10")
def test_the_leader_of_a_groups_partition_coordinates_it_whichever_broker_is_asked() -> None:
    async def scenario(world: World) -> None:
        await known(world)
        partitions = world.state.topics[CONSUMER_OFFSETS].partitions
        leaders = {group: partitions[number].leader for group, number in (("a", 47), ("b", 48), ("c", 49))}
        assert set(leaders.values()) == {1, 2, 3}
        for node in (1, 2, 3):
            found = {group: (await world.find(node=node, key=group)).node_id for group in leaders}
            assert found == leaders

    play(scenario)


@pytest.mark.spec("S1-05", "S1-10", "S1-33")
def test_the_offsets_topic_has_fifty_partitions_and_kafkas_settings() -> None:
    async def scenario(world: World) -> None:
        await known(world)
        topic = world.state.topics[CONSUMER_OFFSETS]
        assert len(topic.partitions) == 50
        assert {len(partition.replicas) for partition in topic.partitions} == {3}
        assert dict(topic.config) == {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": "104857600",
        }

    play(scenario)


@pytest.mark.spec("S1-04")
def test_with_too_few_brokers_the_topic_is_not_made_and_an_error_says_which_setting_wants_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: World) -> None:
        world.cluster.kill(3)
        for _ in range(2):
            assert (await world.find()).error_code == COORDINATOR_NOT_AVAILABLE
            world.pass_time(1.0)
        assert CONSUMER_OFFSETS not in world.state.topics
        await world.find(key_type=1, key="a transaction")
        world.pass_time(1.0)
        await world.cluster.restart(3)
        await known(world)

    with caplog.at_level(logging.ERROR, "kclient.embedded"):
        play(scenario)
    few = "Number of alive brokers '2' does not meet the required replication factor '3' for"
    starts = [record.getMessage().partition(". ")[0] for record in caplog.records]
    assert starts[0] == f"{few} the offsets topic (configured via 'offsets.topic.replication.factor')"
    assert (
        f"{few} the transactions state topic (configured via 'transaction.state.log.replication.factor')"
        in starts
    )


@pytest.mark.spec("S1-06", "S1-07", "S1-34")
@pytest.mark.parametrize(
    ("kind", "resource", "code"),
    [
        (0, f"Group:{GROUP}", GROUP_AUTHORIZATION_FAILED),
        (1, f"TransactionalId:{GROUP}", TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_a_member_that_may_not_know_makes_no_topic(kind: int, resource: str, code: int) -> None:
    async def scenario(world: World) -> None:
        world.cluster.deny("User:ANONYMOUS", "DESCRIBE", resource)
        assert (await world.find(key_type=kind)).error_code == code
        world.pass_time(1.0)
        assert list(world.state.topics) == ["orders"]
        await world.find(key_type=1, key="another")
        await until(lambda: len(world.state.topics) > 1)
        assert list(world.state.topics) == ["orders", "__transaction_state"]

    play(scenario)


@pytest.mark.spec("S4-15")
def test_without_a_leader_there_is_no_coordinator() -> None:
    async def scenario(world: World) -> None:
        await known(world)
        world.cluster.kill(world.cluster.coordinator_of(GROUP))
        alive = world.state.alive()[0].node_id
        response = await world.find(node=alive)
        assert (response.error_code, response.node_id) == (COORDINATOR_NOT_AVAILABLE, -1)

    play(scenario, offsets_topic_replication_factor=1)


# --- the new one knows what the old one wrote


@pytest.mark.spec("S4-42", "B.21", "S4-02")
def test_a_stable_group_continues_without_a_rebalance() -> None:
    async def scenario(world: World) -> None:
        leader, follower = world.member(), world.member(instance_id="till")
        await stable(world, leader, follower)
        assert await leader.commit(17) == NONE
        old = world.cluster.coordinator_of(GROUP)
        world.cluster.move_coordinator(GROUP)
        assert world.cluster.coordinator_of(GROUP) != old
        assert [await leader.heartbeat(), await follower.heartbeat()] == [NONE, NONE]
        assert (await follower.ask_to_sync({})).assignment == plan(1)
        assert await follower.commit(18, partition=1) == NONE
        assert await world.fetched() == (17, NONE)
        request = FindCoordinatorRequest(key=GROUP)
        assert (await world.raw_client.ask(request, 1, old)).node_id == world.cluster.coordinator_of(GROUP)
        assert (await world.raw_client.ask(ListGroupsRequest(), 4, old)).groups == []

    play(scenario)


@pytest.mark.spec("B.21")
def test_a_member_that_is_silent_after_the_move_expires_at_the_new_one() -> None:
    async def scenario(world: World) -> None:
        alive, silent = world.member(), world.member(session_ms=6_000)
        await stable(world, alive, silent)
        world.pass_time(5.0)
        world.cluster.move_coordinator(GROUP)
        world.pass_time(5.0)
        assert await alive.heartbeat() == NONE  # the session started again with the new coordinator
        world.pass_time(1.1)
        assert await alive.heartbeat() == REBALANCE_IN_PROGRESS

    play(scenario)


@pytest.mark.spec("S4-42", "B.21")
@pytest.mark.parametrize("phase", ["joining", "syncing"])
def test_a_parked_request_is_sent_to_the_new_one(phase: str) -> None:
    async def scenario(world: World) -> None:
        one, two = world.member(), world.member()
        if phase == "joining":
            await stable(world, one, two)
            waiting = await one.parked()
        else:
            await gathered(world, one, two)
            waiting = asyncio.create_task(two.ask_to_sync({}))
            await until(lambda: any(member.syncing for member in world.group.members.values()))
        world.cluster.move_coordinator(GROUP)
        assert (await waiting).error_code == NOT_COORDINATOR

    play(scenario)


@pytest.mark.spec("S4-29", "B.21")
def test_a_generation_that_was_not_written_is_forgotten() -> None:
    async def scenario(world: World) -> None:
        member = world.member()
        await gathered(world, member)
        world.cluster.move_coordinator(GROUP)
        assert (await member.ask_to_sync({})).error_code == UNKNOWN_MEMBER_ID
        assert (await member.ask_to_join()).error_code == UNKNOWN_MEMBER_ID

    play(scenario)


@pytest.mark.spec("S1-01", "S4-48")
def test_a_single_broker_reads_everything_back_when_it_starts_again() -> None:
    async def scenario(world: World) -> None:
        member = world.member()
        await stable(world, member)
        await member.commit(5)
        world.cluster.kill(1)
        await world.cluster.restart(1)
        assert await member.heartbeat() == NONE
        assert await world.fetched() == (5, NONE)

    play(scenario, brokers=1)


@pytest.mark.spec("S0-37", "C.4")
@pytest.mark.parametrize(("outcome", "offset"), [(True, 9), (False, 1), (None, 1)])
def test_offsets_of_a_transaction_count_after_its_commit_marker_only(
    outcome: bool | None, offset: int
) -> None:
    async def scenario(world: World) -> None:
        await known(world)
        await world.commit(1)
        groups = groups_of(world.state.brokers[world.cluster.coordinator_of(GROUP)])
        record = commit_record(world.state.release, GROUP, TopicPartition("orders", 0), CommittedOffset(9))
        groups.write(GROUP, [record], producer_id=77, producer_epoch=0)
        if outcome is not None:
            marker = build_marker(commit=outcome, offset=0, producer_id=77, producer_epoch=0)
            append(world.state, groups.check(GROUP), marker)
        world.cluster.move_coordinator(GROUP)
        assert await world.fetched() == (offset, NONE)
        assert (await world.fetched(require_stable=True))[0] == (-1 if outcome is None else offset)

    play(scenario)


# --- until it knows


@pytest.mark.spec("B.21", "B.15.4", "B.15.5")
@pytest.mark.parametrize(
    ("release", "syncing"), [("4.3", COORDINATOR_LOAD_IN_PROGRESS), ("2.8", REBALANCE_IN_PROGRESS)]
)
def test_a_coordinator_that_loads_says_so_but_not_to_heartbeats(release: str, syncing: int) -> None:
    async def scenario(world: World) -> None:
        member = world.member()
        await stable(world, member)
        await member.commit(3)
        world.state.coordinator_load_seconds = 2.0
        world.cluster.move_coordinator(GROUP)
        described = await world.ask(DescribeGroupsRequest(groups=[GROUP]), 4)
        codes = {
            "join": (await member.ask_to_join()).error_code,
            "sync": (await member.ask_to_sync({})).error_code,
            "heartbeat": await member.heartbeat(),
            "leave": (await member.leave()).error_code,
            "commit": await member.commit(4),
            "fetch": (await world.fetched())[1],
            "describe": described.groups[0].error_code,
            "list": (await world.ask(ListGroupsRequest(), 3)).error_code,
        }
        loading = dict.fromkeys(codes, COORDINATOR_LOAD_IN_PROGRESS)
        assert codes == {**loading, "sync": syncing, "heartbeat": NONE}
        world.pass_time(2.0)
        assert await member.heartbeat() == NONE
        assert await world.fetched() == (3, NONE)

    play(scenario, release)


@pytest.mark.spec("S1-35")
def test_a_coordinator_whose_topic_is_new_may_not_know_of_it_yet() -> None:
    async def scenario(world: World) -> None:
        world.state.coordinator_start_seconds = 1.0
        await known(world)
        assert await world.commit(1) == NOT_COORDINATOR
        world.pass_time(1.0)
        assert await world.commit(1) == NONE

    play(scenario)


# --- as a consumer sees it


@pytest.mark.spec("S0-20", "S1-23", "S4-18", "B.15.5", "B.15.8")
@pytest.mark.parametrize("fault", ["dies", "moves", "loads"])
def test_a_consumer_keeps_its_generation_through_a_failover(fault: str) -> None:
    async def main() -> None:
        async with EmbeddedCluster(3, topics={"orders": 2}) as cluster:
            settings: dict[str, Any] = {
                "bootstrap_servers": cluster.bootstrap_servers,
                "group_id": GROUP,
                "heartbeat_interval_ms": 100,
                "auto_offset_reset": "earliest",
            }
            async with AsyncConsumer("orders", **settings) as consumer:
                cluster.produce("orders", [b"one"], partition=0)
                assert len(await consumer.poll(timeout=10.0)) == 1
                before = consumer.group_metadata()
                if fault == "dies":
                    cluster.kill(cluster.coordinator_of(GROUP))
                else:
                    cluster.state.coordinator_load_seconds = 0.3 if fault == "loads" else 0.0
                    cluster.move_coordinator(GROUP)
                cluster.produce("orders", [b"two"], partition=0)
                assert len(await consumer.poll(timeout=10.0)) == 1
                await consumer.commit()
                assert consumer.group_metadata() == before
                assert cluster.committed(GROUP)[TopicPartition("orders", 0)] == 2

    asyncio.run(main())


def test_groups_go_with_the_topic_that_held_them() -> None:
    async def scenario(world: World) -> None:
        member = world.member()
        await stable(world, member)
        assert await member.commit(7) == NONE
        waiting = await world.member().parked()
        world.cluster.delete_topic(OFFSETS_TOPIC)
        assert (await waiting).error_code == NOT_COORDINATOR
        await known(world)  # the topic is recreated
        assert await world.fetched() == (-1, NONE)
        assert await member.heartbeat() == UNKNOWN_MEMBER_ID

    play(scenario)
