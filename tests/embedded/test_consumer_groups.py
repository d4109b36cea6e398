"""Groups of the consumer protocol where time, brokers, topics or the release matter; test_consumer_* of the
conformance suite have what a real broker can be asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster, controller
from kclient.embedded.groups.loading import groups_of
from kclient.embedded.observer import Observer
from kclient.embedded.partition import OFFSETS_TOPIC
from kclient.group.offsets_topic import OffsetsRecord, read_offsets_record
from kclient.protocol import errors
from kclient.records.sections import columns_for, open_batch
from kclient.types import TopicPartition
from tests.embedded.consumer_member import Member, described, partitions
from tests.embedded.raw_client import RawClient

pytestmark = pytest.mark.spec("B.17.6")

GROUP = "readers"  # real time passes too, so no scene depends on single seconds

Scene = Callable[[EmbeddedCluster, RawClient], Awaitable[None]]


def play(scene: Scene, brokers: int = 1, release: str = "4.3", **config: Any) -> None:
    """Run a scene on a fresh cluster with topic "a" of four partitions; settings with underscores for dots."""

    async def run() -> None:
        settings = {name.replace("_", "."): value for name, value in config.items()}
        async with (
            EmbeddedCluster(brokers, release=release, topics={"a": 4}, config=settings) as cluster,
            RawClient(cluster) as raw_client,
        ):
            controller.create_internal_topic(cluster.state, OFFSETS_TOPIC)
            await scene(cluster, raw_client)

    asyncio.run(run())


def of(cluster: EmbeddedCluster, *numbers: int, topic: str = "a") -> set[tuple[bytes, int]]:
    """Partitions as the protocol names them."""
    return {(cluster.state.topics[topic].topic_id, number) for number in numbers}


async def epochs(raw_client: RawClient, node: int | None = None) -> tuple[str, int, int, dict[str, int]]:
    """State, group epoch, assignment epoch, and the epoch of each member."""
    row = await described(raw_client, GROUP, node)
    return (
        row.group_state,
        row.group_epoch,
        row.assignment_epoch,
        {member.member_id: member.member_epoch for member in row.members},
    )


# --- time


@pytest.mark.spec("F-21")
def test_a_silent_member_is_fenced_when_its_session_ends() -> None:
    async def scene(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        one, two = Member(raw_client, GROUP, "m1"), Member(raw_client, GROUP, "m2")
        await one.join("a")
        cluster.state.clock.advance(5)
        await two.join("a")
        cluster.state.clock.advance(3)
        assert await epochs(raw_client) == ("Reconciling", 3, 3, {"m1": 2, "m2": 3})
        cluster.state.clock.advance(2.1)
        assert await epochs(raw_client) == ("Assigning", 4, 3, {"m2": 3})
        assert partitions(await two.beat()) == of(cluster, 0, 1, 2, 3)
        assert (await one.beat()).error_code == errors.UNKNOWN_MEMBER_ID

    play(scene, group_consumer_session_timeout_ms=10_000)


def test_a_member_that_does_not_give_up_in_time_is_fenced() -> None:
    async def scene(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        one, two = Member(raw_client, GROUP, "m1"), Member(raw_client, GROUP, "m2")
        await one.join("a", rebalance_timeout_ms=9_000)
        await two.join("a")
        assert partitions(await one.beat()) == of(cluster, 0, 1)
        cluster.state.clock.advance(7)
        assert (await one.beat(owned=of(cluster, 0, 1, 2, 3))).error_code == errors.NONE
        cluster.state.clock.advance(2.1)
        assert (await one.beat(owned=of(cluster, 0, 1, 2, 3))).error_code == errors.UNKNOWN_MEMBER_ID
        assert partitions(await two.beat()) == of(cluster, 0, 1, 2, 3)

    play(scene)


def test_a_static_member_that_went_for_a_while_keeps_its_place_for_a_session() -> None:
    async def scene(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        one, two = Member(raw_client, GROUP, "m1", "i"), Member(raw_client, GROUP, "m2")
        await one.join("a")
        await one.beat(-2)
        cluster.state.clock.advance(40)
        await two.join("a")
        assert (await epochs(raw_client))[3] == {"m1": -2, "m2": 3}
        cluster.state.clock.advance(5.1)
        assert (await epochs(raw_client))[3] == {"m2": 3}

    play(scene)


def test_the_changes_of_an_interval_are_assigned_together() -> None:
    async def scene(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        members = [Member(raw_client, GROUP, f"m{number}") for number in range(3)]
        for member in members:
            await member.join("a")
        assert await epochs(raw_client) == ("Assigning", 4, 2, {"m0": 2, "m1": 2, "m2": 2})
        cluster.state.clock.advance(30.1)
        assert await epochs(raw_client) == (
            "Assigning",
            4,
            2,
            {"m0": 2, "m1": 2, "m2": 2},
        )  # a heartbeat does it
        assert (await members[1].beat()).member_epoch == 4

    play(scene, group_consumer_assignment_interval_ms=30_000)


def test_the_heartbeat_interval_is_the_setting() -> None:
    async def scene(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        assert (await Member(raw_client, GROUP, "m").join("a")).heartbeat_interval_ms == 1_234

    play(scene, group_consumer_heartbeat_interval_ms=1_234)


def test_a_test_may_expire_a_member_or_want_a_rebalance() -> None:
    async def scene(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        one, two = Member(raw_client, GROUP, "m1"), Member(raw_client, GROUP, "m2")
        await one.join("a")
        await two.join("a")
        cluster.rebalance(GROUP)
        assert await epochs(raw_client) == ("Reconciling", 4, 4, {"m1": 2, "m2": 3})
        cluster.expire_member(GROUP, "m1")
        assert await epochs(raw_client) == ("Assigning", 5, 4, {"m2": 3})

    play(scene)


# --- topics


def test_new_partitions_and_topics_are_another_epoch() -> None:
    async def scene(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        member = Member(raw_client, GROUP, "m")
        await member.join("a", "later")
        controller.add_partitions(cluster.state, cluster.state.topics["a"], 5, 1)
        response = await member.beat()
        assert (response.member_epoch, partitions(response)) == (3, of(cluster, 0, 1, 2, 3, 4))
        controller.create_topic(cluster.state, "later", 1, 1)
        response = await member.beat()
        assert (response.member_epoch, len(partitions(response) or ())) == (4, 6)
        old = of(cluster, 0, topic="later")
        controller.delete_topic(cluster.state, cluster.state.topics["later"])
        controller.create_topic(cluster.state, "later", 1, 1)
        assert partitions(await member.beat()) == of(cluster, 0, 1, 2, 3, 4)
        response = await member.beat(owned=of(cluster, 0, 1, 2, 3, 4))
        assert partitions(response) == of(cluster, 0, 1, 2, 3, 4) | of(cluster, 0, topic="later")
        assert not old & (partitions(response) or set())

    play(scene)


def test_a_pattern_finds_topics_that_come_later() -> None:
    async def scene(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        member = Member(raw_client, GROUP, "m")
        await member.join(subscribed_topic_names=None, subscribed_topic_regex="[ab]|b2")
        cluster.state.clock.advance(0)
        assert partitions(await member.beat()) == of(cluster, 0, 1, 2, 3)
        controller.create_topic(cluster.state, "b2", 1, 1)
        controller.create_topic(cluster.state, "b3", 1, 1)
        cluster.state.clock.advance(10.1)
        await member.beat()
        cluster.state.clock.advance(0)
        assert partitions(await member.beat()) == of(cluster, 0, 1, 2, 3) | of(cluster, 0, topic="b2")

    play(scene)


def test_topics_that_may_not_be_seen() -> None:
    async def scene(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        controller.create_topic(cluster.state, "secret", 1, 1)
        cluster.state.acl.deny("User:ANONYMOUS", "DESCRIBE", "Topic:secret")
        member = Member(raw_client, GROUP, "m")
        assert (await member.join("a", "secret")).error_code == errors.TOPIC_AUTHORIZATION_FAILED
        await member.join(subscribed_topic_names=None, subscribed_topic_regex=".*e.*|a")
        cluster.state.clock.advance(0)
        found = {topic_id for topic_id, _ in partitions(await member.beat()) or ()}
        assert cluster.state.topics["a"].topic_id in found
        assert cluster.state.topics["secret"].topic_id not in found
        cluster.state.acl.deny("User:ANONYMOUS", "DESCRIBE", "Topic:a")
        row = await described(raw_client, GROUP)
        assert (row.error_code, row.members) == (errors.TOPIC_AUTHORIZATION_FAILED, [])
        cluster.state.acl.deny("User:ANONYMOUS", "READ", f"Group:{GROUP}")
        assert (await member.beat()).error_code == errors.GROUP_AUTHORIZATION_FAILED

    play(scene)


# --- brokers


@pytest.mark.spec("A-05", "C.4")
@pytest.mark.parametrize("release", ["4.0", "4.3"])  # which keep what they know of the topics differently
def test_another_coordinator_reads_the_group_back_and_continues(release: str) -> None:
    async def scene(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        partition = coordinates(cluster)
        first = partition.leader
        one, two = Member(raw_client, GROUP, "m1", "i"), Member(raw_client, GROUP, "m2")
        await one.join("a", node=first)
        await two.join(node=first, subscribed_topic_regex="a", server_assignor="range")
        cluster.state.clock.advance(0)
        await two.beat(node=first)
        assert partitions(await one.beat(node=first)) == of(cluster, 0, 1)
        before = await described(raw_client, GROUP, first)
        cluster.kill(first)
        second = partition.leader
        assert second not in (first, -1)
        assert await described(raw_client, GROUP, second) == before
        assert (await two.beat(node=second)).assignment is None
        response = await one.beat(owned=of(cluster, 0, 1), node=second)
        assert (response.member_epoch, response.assignment) == (before.group_epoch, None)
        assert partitions(await two.beat(node=second)) == of(cluster, 2, 3)
        assert (await epochs(raw_client, second))[0] == "Stable"

    play(scene, brokers=3, release=release)


def test_a_new_coordinator_gives_every_member_a_new_session() -> None:
    async def scene(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        partition = coordinates(cluster)
        one = Member(raw_client, GROUP, "m1")
        await one.join("a", node=partition.leader)
        cluster.state.clock.advance(40)
        cluster.kill(partition.leader)
        cluster.state.clock.advance(40)
        assert (await epochs(raw_client, partition.leader))[3] == {"m1": 2}
        cluster.state.clock.advance(5.1)
        assert (await epochs(raw_client, partition.leader))[0] == "Empty"

    play(scene, brokers=3)


def coordinates(cluster: EmbeddedCluster) -> Any:
    """The partition that holds the group."""
    number = groups_of(cluster.state.brokers[1]).partition_of(GROUP)
    return cluster.state.partition(TopicPartition(OFFSETS_TOPIC, number))


def test_what_cannot_be_written_has_not_happened() -> None:
    async def scene(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        one, two = Member(raw_client, GROUP, "m1"), Member(raw_client, GROUP, "m2")
        await one.join("a")
        cluster.state.settings.min_insync_replicas = 2  # there is one
        assert (await two.join("a")).error_code == errors.COORDINATOR_NOT_AVAILABLE
        assert (await one.beat(-1)).error_code == errors.COORDINATOR_NOT_AVAILABLE
        cluster.state.settings.min_insync_replicas = 1
        assert await epochs(raw_client) == ("Stable", 2, 2, {"m1": 2})
        assert (await two.join("a")).member_epoch == 3

    play(scene)


@pytest.mark.spec("F-21")
def test_a_session_that_ends_while_nothing_can_be_written_ends_when_it_can() -> None:
    async def scene(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        await Member(raw_client, GROUP, "m1").join("a")
        cluster.state.settings.min_insync_replicas = 2  # there is one
        cluster.clock.advance("60s")
        assert (await epochs(raw_client))[0] == "Stable"
        cluster.state.settings.min_insync_replicas = 1
        cluster.clock.advance("1s")
        assert await epochs(raw_client) == ("Empty", 3, 2, {})

    play(scene)


def test_a_pattern_that_cannot_be_written_is_resolved_again() -> None:
    async def scene(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        member = Member(raw_client, GROUP, "m1")
        await member.join(subscribed_topic_names=None, subscribed_topic_regex="a|b")
        cluster.clock.advance(0)
        assert partitions(await member.beat()) == of(cluster, 0, 1, 2, 3)
        cluster.create_topic("b")
        cluster.clock.advance(10.1)
        cluster.state.settings.min_insync_replicas = 2  # there is one
        assert partitions(await member.beat()) is None
        cluster.clock.advance(0)
        cluster.state.settings.min_insync_replicas = 1
        assert partitions(await member.beat()) is None
        cluster.clock.advance(0)
        assert partitions(await member.beat()) == of(cluster, 0, 1, 2, 3) | of(cluster, 0, topic="b")

    play(scene)


# --- releases


def test_before_4_3_epochs_begin_at_1_and_must_fit() -> None:
    async def scene(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        one, two = Member(raw_client, GROUP, "m1"), Member(raw_client, GROUP, "m2")
        assert (await one.join("a")).member_epoch == 1
        assert (await two.join()).member_epoch == 2  # also for a member without topics
        await one.beat()
        assert (await one.join("a")).error_code == errors.FENCED_MEMBER_EPOCH

    play(scene, release="4.0", group_consumer_assignment_interval_ms=30_000)


@pytest.mark.parametrize("release", ["3.7", "3.9"])
def test_before_4_0_the_protocol_is_listed_and_not_spoken(release: str) -> None:
    async def scene(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        response = await Member(raw_client, GROUP, "m").join("a", version=0)
        assert response.error_code == errors.UNSUPPORTED_VERSION

    play(scene, release=release)


@pytest.mark.spec("C.4")
@pytest.mark.parametrize(("release", "kinds"), [("4.0", {3, 4, 5, 6, 7, 8}), ("4.3", {3, 5, 6, 7, 8})])
def test_the_records_are_those_of_the_release(release: str, kinds: set[int]) -> None:
    async def scene(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        await Member(raw_client, GROUP, "m1").join("a")
        rows = written(coordinates(cluster))
        assert {kind for kind, _ in rows} == kinds
        [current] = [value for kind, value in rows if kind == 8]
        [assigned] = current.assigned_partitions
        assert assigned.assignment_epochs == ([2, 2, 2, 2] if release == "4.3" else None)

    play(scene, release=release)


def written(partition: Any) -> list[tuple[int, Any]]:
    """The records of a partition of `__consumer_offsets`: kind and value."""
    found = []
    for stored in partition.log.batches:
        section = open_batch(stored.header, check_crcs=True)
        columns = columns_for(section)
        section.read_into(columns, stored.header.count)
        for key, value in zip(columns.raw_keys(), columns.raw_values(), strict=True):
            record = read_offsets_record(key, value)
            assert isinstance(record, OffsetsRecord)
            found.append((record.record_type, record.value))
    return found


# --- the calls that observers get


def test_observers_are_notified_who_holds_what_in_which_epoch() -> None:
    class Watch(Observer):
        def __init__(self) -> None:
            self.seen: list[tuple[int, str, list[int]]] = []

        def rebalanced(self, group_id: str, generation: int, owned: dict[str, list[TopicPartition]]) -> None:
            for member_id, held in owned.items():
                self.seen.append((generation, member_id, sorted(tp.partition for tp in held)))

    async def scene(cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        watch = Watch()
        cluster.state.observers.append(watch)
        one, two = Member(raw_client, GROUP, "m1"), Member(raw_client, GROUP, "m2")
        await one.join("a")
        await two.join("a")
        await one.beat()
        await one.beat(owned=of(cluster, 0, 1))
        await two.beat()
        await two.beat(-1)
        assert watch.seen == [
            (2, "m1", [0, 1, 2, 3]),
            (3, "m2", []),
            (2, "m1", [0, 1, 2, 3]),  # two of them it still has to give up
            (3, "m1", [0, 1]),
            (3, "m2", [2, 3]),
            (-1, "m2", []),
        ]

    play(scene)
