"""What those who look after groups may ask, and who may not: real brokers of the conformance suite allow everything."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.embedded.listener import Listener
from kclient.generated.delete_groups_request import DeleteGroupsRequest
from kclient.generated.describe_groups_request import DescribeGroupsRequest
from kclient.generated.find_coordinator_request import FindCoordinatorRequest
from kclient.generated.join_group_request import JoinGroupRequest
from kclient.generated.list_groups_request import ListGroupsRequest
from kclient.generated.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kclient.generated.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kclient.generated.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestTopic
from kclient.protocol.errors import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    GROUP_ID_NOT_FOUND,
    NONE,
    REBALANCE_IN_PROGRESS,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kclient.types import TopicPartition
from tests.conformance.raw_client import RawClient as BlockingAsker
from tests.embedded.grouping import GROUP, World, known, play, stable

ANYBODY = "User:*"


# --- who may not


@pytest.mark.spec("S4-54", "S4-38", "S1-06")
def test_a_member_that_may_not_read_the_group_gets_the_error_and_makes_none() -> None:
    async def scenario(world: World) -> None:
        await known(world)
        world.cluster.deny(ANYBODY, "READ", f"Group:{GROUP}")
        member = world.member()
        response = await member.ask_to_join()
        assert response.error_code == GROUP_AUTHORIZATION_FAILED
        assert (response.generation_id, response.protocol_name, response.leader) == (-1, None, "")
        assert (response.member_id, response.members) == ("", [])
        assert (await member.ask_to_sync({})).error_code == GROUP_AUTHORIZATION_FAILED
        assert await member.heartbeat() == GROUP_AUTHORIZATION_FAILED
        assert (await member.leave()).error_code == GROUP_AUTHORIZATION_FAILED
        assert await world.commit(1) == GROUP_AUTHORIZATION_FAILED
        assert world.group is None

    play(scenario)


@pytest.mark.spec("S4-54")
def test_authorization_is_checked_before_anything_else_of_a_join() -> None:
    async def scenario(world: World) -> None:
        world.cluster.deny(ANYBODY, "READ", "Group:*")
        wrong = JoinGroupRequest(group_id="", session_timeout_ms=1, protocol_type="", protocols=[])
        response = await world.raw_client.ask(wrong, 5)
        assert (response.error_code, response.protocol_name) == (GROUP_AUTHORIZATION_FAILED, "")

    play(scenario)


@pytest.mark.spec("B.15.7", "B.15.8")
def test_topics_that_one_may_not_know_are_errors_where_named_and_left_out_where_not() -> None:
    async def scenario(world: World) -> None:
        world.cluster.create_topic("secret")
        await known(world)
        await world.commit(1)
        await world.commit(2, topic="secret")
        world.cluster.deny(ANYBODY, "READ", "Topic:secret")
        world.cluster.deny(ANYBODY, "DESCRIBE", "Topic:secret")
        assert await world.commit(3, topic="secret") == TOPIC_AUTHORIZATION_FAILED
        assert await world.fetched(topic="secret") == (-1, TOPIC_AUTHORIZATION_FAILED)
        everything = await world.ask(OffsetFetchRequest(group_id=GROUP, topics=None), 7)
        assert [topic.name for topic in everything.topics] == ["orders"]
        assert await delete_offset(world, "secret") == (NONE, TOPIC_AUTHORIZATION_FAILED)

    play(scenario)


@pytest.mark.spec("B.15.7")
@pytest.mark.parametrize("version", [1, 5, 7])
def test_a_member_that_may_not_describe_the_group_reads_no_offsets(version: int) -> None:
    async def scenario(world: World) -> None:
        await known(world)
        await world.commit(1)
        world.cluster.deny(ANYBODY, "DESCRIBE", f"Group:{GROUP}")
        topics = [OffsetFetchRequestTopic(name="orders", partition_indexes=[0])]
        response = await world.ask(OffsetFetchRequest(group_id=GROUP, topics=topics), version)
        if version < 2:
            assert response.topics[0].partitions[0].error_code == GROUP_AUTHORIZATION_FAILED
        else:
            assert (response.error_code, response.topics) == (GROUP_AUTHORIZATION_FAILED, [])

    play(scenario)


@pytest.mark.spec("S1-02", "B.21")
def test_listing_shows_what_one_may_describe() -> None:
    async def scenario(world: World) -> None:
        await known(world)
        await world.commit(1)
        world.cluster.deny(ANYBODY, "DESCRIBE", f"Group:{GROUP}")
        listed = [row.group_id for row in (await world.ask(ListGroupsRequest(), 4)).groups]
        assert listed == [GROUP]  # who may describe the cluster sees all
        world.cluster.deny(ANYBODY, "DESCRIBE", "Cluster:*")
        assert (await world.ask(ListGroupsRequest(), 4)).groups == []
        [row] = (await world.ask(DescribeGroupsRequest(groups=[GROUP]), 4)).groups
        assert row.error_code == GROUP_AUTHORIZATION_FAILED

    play(scenario)


@pytest.mark.spec("C.2.1")
@pytest.mark.parametrize(("release", "everything"), [("2.8", 328), ("4.3", 3400)])
def test_describing_reports_what_one_may_do(release: str, everything: int) -> None:
    async def scenario(world: World) -> None:
        await known(world)
        await world.commit(1)
        request = DescribeGroupsRequest(groups=[GROUP], include_authorized_operations=True)
        [row] = (await world.ask(request, 5)).groups
        assert row.authorized_operations == everything
        world.cluster.deny(ANYBODY, "DELETE", f"Group:{GROUP}")
        [row] = (await world.ask(request, 5)).groups
        assert row.authorized_operations == everything - (1 << 6)

    play(scenario, release)


@pytest.mark.spec("B.21", "S0-35", "S0-34")
def test_a_deleted_group_is_unknown_and_its_tombstones_outlive_the_coordinator() -> None:
    async def scenario(world: World) -> None:
        member = world.member()
        await stable(world, member)
        await member.commit(1)
        await member.leave()
        request = DeleteGroupsRequest(groups_names=[GROUP])
        world.cluster.deny(ANYBODY, "DELETE", f"Group:{GROUP}")
        assert (await world.ask(request, 2)).results[0].error_code == GROUP_AUTHORIZATION_FAILED
        assert await delete_offset(world, "orders") == (GROUP_AUTHORIZATION_FAILED, None)
        world.cluster.allow(ANYBODY, "DELETE", f"Group:{GROUP}")
        assert (await world.ask(request, 2)).results[0].error_code == NONE
        for _ in range(2):
            assert (await world.ask(request, 2)).results[0].error_code == GROUP_ID_NOT_FOUND
            assert await world.fetched() == (-1, NONE)
            world.cluster.move_coordinator(GROUP)

    play(scenario)


@pytest.mark.spec("B.21")
def test_what_cannot_be_written_is_not_deleted() -> None:
    async def scenario(world: World) -> None:
        await known(world)
        await world.commit(1)
        followers = [node for node in (1, 2, 3) if node != world.cluster.coordinator_of(GROUP)]
        for node in followers:
            world.cluster.kill(node)
        request = DeleteGroupsRequest(groups_names=[GROUP])
        assert (await world.ask(request, 2)).results[0].error_code == COORDINATOR_NOT_AVAILABLE
        assert (await delete_offset(world, "orders"))[0] == COORDINATOR_NOT_AVAILABLE
        world.pass_time(8 * 24 * 3600.0)  # nor does it expire
        assert await world.fetched() == (1, NONE)
        await world.cluster.restart(followers[0])
        assert (await world.ask(request, 2)).results[0].error_code == NONE
        assert await world.fetched() == (-1, NONE)

    play(scenario, min_insync_replicas=2)


async def delete_offset(world: World, topic: str) -> tuple[int, int | None]:
    """The codes of the whole and of the one partition."""
    rows = [OffsetDeleteRequestPartition(partition_index=0)]
    request = OffsetDeleteRequest(
        group_id=GROUP, topics=[OffsetDeleteRequestTopic(name=topic, partitions=rows)]
    )
    response = await world.ask(request, 0)
    return response.error_code, response.topics[0].partitions[0].error_code if response.topics else None


# --- those who run the cluster


@pytest.mark.spec("B.21")
def test_a_group_can_be_made_to_rebalance_and_a_member_to_expire() -> None:
    async def scenario(world: World) -> None:
        one, two = world.member(), world.member()
        await stable(world, one, two)
        world.cluster.rebalance(GROUP)
        assert await one.heartbeat() == REBALANCE_IN_PROGRESS
        await asyncio.gather(await one.parked(), two.join())
        world.cluster.expire_member(GROUP, two.member_id)
        assert await two.heartbeat() == UNKNOWN_MEMBER_ID

    play(scenario)


# --- which way to the coordinator


@pytest.mark.spec("S1-36", "S4-14")
def test_each_listener_is_notified_of_its_own_port() -> None:
    inside = Listener("INTERNAL")
    with EmbeddedCluster(3, listeners=[inside]) as cluster:
        cluster.coordinator_of(GROUP)  # makes the topic
        for name in ("PLAINTEXT", "INTERNAL"):
            addresses = cluster.servers(name).split(",")
            host, port = addresses[0].split(":")
            with BlockingAsker(host, int(port)) as raw_client:
                response = raw_client.ask(FindCoordinatorRequest(key=GROUP), 3)
            assert f"{response.host}:{response.port}" == addresses[response.node_id - 1]


@pytest.mark.spec("S1-36")
def test_a_coordinator_without_the_listener_is_not_available() -> None:
    async def scenario(world: World) -> None:
        await known(world)
        coordinator = world.cluster.coordinator_of(GROUP)
        other = next(node for node in (1, 2, 3) if node != coordinator)
        world.state.brokers[coordinator].listeners[0].name = "ANOTHER"
        assert (await world.find(node=other)).error_code == COORDINATOR_NOT_AVAILABLE

    play(scenario)


# --- offsets in ZooKeeper


@pytest.mark.spec("S1-01")
def test_commits_of_version_0_are_kept_apart() -> None:
    async def ask(world: World, node: int, offset: int | None = None) -> Any:
        if offset is None:
            topics = [OffsetFetchRequestTopic(name="orders", partition_indexes=[0])]
            request: Any = OffsetFetchRequest(group_id=GROUP, topics=topics)
        else:
            row = OffsetCommitRequestPartition(
                partition_index=0, committed_offset=offset, committed_metadata=""
            )
            topic = OffsetCommitRequestTopic(name="orders", partitions=[row])
            request = OffsetCommitRequest(group_id=GROUP, topics=[topic])
        return (await world.raw_client.ask(request, 0, node)).topics[0].partitions[0]

    async def scenario(world: World) -> None:
        await known(world)
        assert (await ask(world, 1)).error_code == UNKNOWN_TOPIC_OR_PARTITION
        assert (await ask(world, 1, offset=5)).error_code == NONE
        assert (await ask(world, 2)).committed_offset == 5  # any broker knows
        assert await world.fetched() == (-1, NONE)
        await world.commit(7)
        assert (await ask(world, 2)).committed_offset == 5
        assert world.cluster.committed(GROUP) == {TopicPartition("orders", 0): 7}

    play(scenario, release="2.8")
