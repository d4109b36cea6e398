"""Committed offsets: what is written of them, when they are seen, and when they are gone again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kclient import AsyncConsumer, OffsetAndMetadata, protocol
from kclient.embedded.groups.loading import groups_of
from kclient.embedded.groups.records import record
from kclient.embedded.observer import Observer
from kclient.generated.group_metadata_value import GroupMetadataValue
from kclient.generated.offset_commit_value import OffsetCommitValue
from kclient.group.offsets_topic import OffsetsRecord, read_offsets_record
from kclient.protocol.errors import (
    COORDINATOR_NOT_AVAILABLE,
    ILLEGAL_GENERATION,
    INVALID_COMMIT_OFFSET_SIZE,
    NONE,
    NOT_COORDINATOR,
    OFFSET_METADATA_TOO_LARGE,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
    UNSTABLE_OFFSET_COMMIT,
)
from kclient.types import TopicPartition
from tests.embedded.grouping import GROUP, World, blob, known, plan, play, stable
from tests.vectors.cases import Case, vectors
from tests.waiting import until

MINUTE = 60.0
HOUR = 60 * MINUTE
DAY = 24 * HOUR
RETENTION = 7 * DAY
CHECK = 10 * MINUTE  # how often expired offsets are looked for

CONSUMER_OFFSETS = "__consumer_offsets"
OF_JAVA = vectors("offsets_topic")
KEYS = {1: "OffsetCommitKey", 2: "GroupMetadataKey"}
VALUES = {1: "OffsetCommitValue", 2: "GroupMetadataValue"}


def where(world: World) -> TopicPartition:
    """The partition of `__consumer_offsets` that holds the group."""
    coordinator = world.state.brokers[world.cluster.coordinator_of(GROUP)]
    return TopicPartition(CONSUMER_OFFSETS, groups_of(coordinator).partition_of(GROUP))


async def written(world: World) -> list[tuple[Any, int, Any]]:
    """The records of the group as a consumer reads them: key, version of the value, value (None: tombstone)."""
    tp, found = where(world), list[tuple[Any, int, Any]]()
    settings = {"bootstrap_servers": world.cluster.bootstrap_servers, "auto_offset_reset": "earliest"}
    async with AsyncConsumer(**settings) as consumer:
        await consumer.assign([tp])
        end = (await consumer.end_offsets([tp]))[tp]
        while await consumer.position(tp) < end:
            records = await consumer.poll(timeout=1.0)
            found.extend(_decoded(record.key, record.value) for record in records)
    return found


def _decoded(key: bytes, value: bytes | None) -> tuple[Any, int, Any]:
    kind = int.from_bytes(key[:2], "big")
    name = protocol.decode(KEYS[kind], 0, key[2:])
    if value is None:
        return name, -1, None
    version = int.from_bytes(value[:2], "big")
    return name, version, protocol.decode(VALUES[kind], version, value[2:])


# --- what is written


@pytest.mark.spec("C.4", "S1-01", "S4-02")
@pytest.mark.parametrize(
    ("release", "commit_version", "value_version"),
    [("4.3", 10, 4), ("4.3", 9, 4), ("4.0", 8, 3), ("2.8", 8, 3), ("2.1", 6, 3), ("1.1", 3, 1)],
)
def test_a_commit_is_a_record_in_the_layout_of_the_release(
    release: str, commit_version: int, value_version: int
) -> None:
    async def scenario(world: World) -> None:
        await known(world)
        assert await world.commit(42, partition=3, version=commit_version, metadata="why") == NONE
        [(key, version, value)] = await written(world)
        assert (key.group, key.topic, key.partition) == (GROUP, "orders", 3)
        assert version == value_version
        topic_id = world.state.topics["orders"].topic_id if commit_version == 10 else bytes(16)
        expires = value.commit_timestamp + int(RETENTION * 1000) if value_version == 1 else -1
        assert value == OffsetCommitValue(
            offset=42,
            metadata="why",
            commit_timestamp=value.commit_timestamp,
            expire_timestamp=expires,
            topic_id=topic_id,
        )
        assert abs(value.commit_timestamp - world.state.clock.wall_ms()) < 10_000

    play(scenario, release)


@pytest.mark.spec("S1-27", "S1-28", "S3-24", "S4-01", "I-09")
@pytest.mark.parametrize(("release", "version"), [("4.3", 2), ("4.3", 9), ("2.8", 1)])
def test_a_live_group_stores_offsets_of_its_members_in_this_generation_alone(
    release: str, version: int
) -> None:
    """tests/conformance puts the same questions to a real Kafka."""

    async def scenario(world: World) -> None:
        member = world.member()
        await stable(world, member)
        now, who = member.generation, member.member_id
        said = {"generation_id_or_member_epoch": now, "member_id": who}
        assert await world.commit(3, version=version, **said) == NONE
        for generation, member_id, code in (
            (-1, "", UNKNOWN_MEMBER_ID),
            (-1, who, ILLEGAL_GENERATION),
            (now, "", UNKNOWN_MEMBER_ID),
            (now, "somebody", UNKNOWN_MEMBER_ID),
            (now - 1, who, ILLEGAL_GENERATION),
            (now + 1, who, ILLEGAL_GENERATION),
        ):
            said = {"generation_id_or_member_epoch": generation, "member_id": member_id}
            assert await world.commit(9, version=version, **said) == code, said
            assert await world.fetched() == (3, NONE), said

    play(scenario, release)


@pytest.mark.spec("S1-29", "C.4")
def test_a_commit_with_a_retention_of_its_own_says_when_it_expires() -> None:
    async def scenario(world: World) -> None:
        await known(world)
        await world.commit(1, version=3, retention_time_ms=5_000)
        [(_, version, value)] = await written(world)
        assert version == 1
        assert value.expire_timestamp == value.commit_timestamp + 5_000

    play(scenario, release="2.8")


@pytest.mark.spec("C.4", "S4-52", "S4-40")
@pytest.mark.parametrize(("release", "versions"), [("4.3", [3, 3]), ("2.8", [3])])
def test_a_stable_group_is_a_record_with_its_members(release: str, versions: list[int]) -> None:
    async def scenario(world: World) -> None:
        leader, follower = world.member(session_ms=9_000), world.member(instance_id="till")
        await stable(world, leader, follower)
        records = await written(world)
        assert [version for _, version, _ in records] == versions  # 4.x writes new groups as well
        value = records[-1][2]
        assert isinstance(value, GroupMetadataValue)
        assert (value.protocol_type, value.protocol, value.generation) == ("consumer", "range", 1)
        assert value.leader == leader.member_id
        first, second = value.members
        assert (first.member_id, first.group_instance_id) == (leader.member_id, None)
        assert (second.member_id, second.group_instance_id) == (follower.member_id, "till")
        assert (first.client_id, first.client_host) == ("asker", "/127.0.0.1")
        assert (first.session_timeout, first.rebalance_timeout) == (9_000, 60_000)
        assert (first.subscription, first.assignment) == (blob("orders"), plan(0))

    play(scenario, release)


@pytest.mark.spec("C.4", "S4-42")
def test_an_empty_group_is_written_without_protocol_leader_and_members() -> None:
    async def scenario(world: World) -> None:
        member = world.member()
        await stable(world, member)
        await member.leave()
        value = (await written(world))[-1][2]
        assert (value.protocol_type, value.generation) == ("consumer", 2)
        assert (value.protocol, value.leader, value.members) == (None, None, [])

    play(scenario)


def test_observers_are_called_for_every_commit_with_its_member() -> None:
    seen: list[Any] = []

    class Watcher(Observer):
        def committed(
            self,
            group_id: str,
            member_id: str,
            generation: int,
            offsets: dict[TopicPartition, OffsetAndMetadata],
        ) -> None:
            seen.append((group_id, member_id, generation, offsets))

    async def scenario(world: World) -> None:
        world.state.observers.append(Watcher())
        member = world.member()
        await stable(world, member)
        assert await member.commit(7) == NONE
        assert await member.commit(8, metadata="x" * 5_000) == OFFSET_METADATA_TOO_LARGE
        offsets = {TopicPartition("orders", 0): OffsetAndMetadata(7)}
        assert seen == [(GROUP, member.member_id, 1, offsets)]

    play(scenario)


@pytest.mark.spec("C.4", "S1-01")
@pytest.mark.parametrize(
    "case", [case for case in OF_JAVA if case["record_type"]], ids=lambda case: case["case"]
)
def test_records_of_java_are_read_and_written_byte_for_byte(case: Case) -> None:
    key = bytes.fromhex(case["key_hex"])
    value = None if case["value_hex"] is None else bytes.fromhex(case["value_hex"])
    read = read_offsets_record(key, value)
    assert isinstance(read, OffsetsRecord)
    made = record(read.key, read.value, read.value_version or 0)
    assert (made.key, made.value) == (key, value)


# --- when they are seen


def hold_back(world: World) -> None:
    """No follower replicates the group's partition any more."""
    tp = where(world)
    partition = world.state.topics[tp.topic].partitions[tp.partition]
    for node in partition.replicas:
        if node != partition.leader:
            world.cluster.lag(tp.topic, tp.partition, node)


@pytest.mark.spec("S0-37", "B.21")
@pytest.mark.parametrize(("release", "unstable"), [("4.3", NONE), ("2.8", UNSTABLE_OFFSET_COMMIT)])
def test_a_commit_counts_when_all_in_sync_replicas_have_it(release: str, unstable: int) -> None:
    async def scenario(world: World) -> None:
        await known(world)
        await world.commit(1)
        hold_back(world)
        group_offsets = world.group.offsets
        committing = asyncio.create_task(world.commit(2))
        await until(lambda: group_offsets.writing)
        assert await world.fetched() == (1, NONE)
        assert await world.fetched(require_stable=True) == ((1, NONE) if unstable == NONE else (-1, unstable))
        world.cluster.catch_up(*where(world))
        assert await committing == NONE
        assert await world.fetched(require_stable=True) == (2, NONE)

    play(scenario, release)


@pytest.mark.spec("B.21", "I-14")
@pytest.mark.parametrize("release", ["4.3", "2.8"])
def test_a_commit_that_waits_for_replicas_goes_with_its_topic(release: str) -> None:
    async def scenario(world: World) -> None:
        await known(world)
        await world.commit(1)
        hold_back(world)
        offsets = world.group.offsets
        committing = asyncio.create_task(world.commit(2))
        await until(lambda: offsets.writing)
        world.cluster.recreate_topic("orders")
        world.cluster.catch_up(*where(world))
        assert await committing == NONE  # it was stored, and the tombstone after it
        assert await world.fetched() == (-1, NONE)
        assert await world.commit(3) == NONE
        assert await world.fetched() == (3, NONE)

    play(scenario, release)


@pytest.mark.spec("B.21")
def test_a_commit_that_is_not_replicated_in_time_or_whose_leader_goes_is_refused() -> None:
    async def scenario(world: World) -> None:
        await known(world)
        await world.commit(1)
        hold_back(world)
        offsets = world.group.offsets
        committing = asyncio.create_task(world.commit(2))
        await until(lambda: offsets.writing)
        world.pass_time(5.1)
        assert await committing == COORDINATOR_NOT_AVAILABLE
        committing = asyncio.create_task(world.commit(3))
        await until(lambda: offsets.writing)
        world.cluster.move_coordinator(GROUP)
        assert await committing == NOT_COORDINATOR
        assert await world.fetched() == (1, NONE)

    play(scenario)


@pytest.mark.spec("B.21")
def test_too_few_replicas_take_no_commits() -> None:
    async def scenario(world: World) -> None:
        await known(world)
        followers = [node for node in (1, 2, 3) if node != world.cluster.coordinator_of(GROUP)]
        for node in followers:
            world.cluster.kill(node)
        assert await world.commit(1) == COORDINATOR_NOT_AVAILABLE
        assert world.group is None  # nor is there a group for it

    play(scenario, min_insync_replicas=2)


@pytest.mark.spec("B.21")
@pytest.mark.parametrize(
    ("release", "code"), [("4.3", UNKNOWN_SERVER_ERROR), ("2.8", INVALID_COMMIT_OFFSET_SIZE)]
)
def test_a_commit_larger_than_a_batch_may_be_is_refused(release: str, code: int) -> None:
    async def scenario(world: World) -> None:
        await known(world)
        assert await world.commit(1, metadata="x" * 2_000) == code
        assert await world.commit(1, metadata="x" * 20) == NONE

    play(scenario, release, message_max_bytes=1_000)


@pytest.mark.spec("S4-48", "B.21")
def test_an_unclean_election_loses_the_commits_that_only_the_old_leader_had() -> None:
    async def scenario(world: World) -> None:
        await known(world)
        await world.commit(1)
        leader = world.cluster.coordinator_of(GROUP)
        hold_back(world)
        offsets = world.group.offsets
        committing = asyncio.create_task(world.commit(2))
        await until(lambda: offsets.writing)
        world.pass_time(5.1)
        assert await committing == COORDINATOR_NOT_AVAILABLE
        world.pass_time(30.0)  # the followers fall out of sync
        assert await world.commit(3) == NONE
        world.cluster.kill(leader)
        assert world.cluster.coordinator_of(GROUP) != leader
        assert await world.fetched() == (1, NONE)

    play(scenario, unclean_leader_election_enable=True)


# --- when they are gone


@pytest.mark.spec("S0-40", "B.21")
def test_offsets_of_a_simple_group_expire_a_retention_after_each_commit() -> None:
    async def scenario(world: World) -> None:
        await known(world)
        await world.commit(1, partition=0)
        world.pass_time(DAY)
        await world.commit(2, partition=1)
        world.pass_time(RETENTION - DAY + CHECK)
        assert [await world.fetched(number) for number in (0, 1)] == [(-1, NONE), (2, NONE)]
        world.pass_time(DAY)
        assert await world.fetched(1) == (-1, NONE)
        assert world.group is None
        tombstones = [key for key, _, value in await written(world) if value is None]
        assert [key.partition for key in tombstones] == [0, 1]

    play(scenario)


@pytest.mark.spec("S1-29", "S0-40", "B.21")
def test_offsets_of_an_empty_group_expire_a_retention_after_it_became_empty() -> None:
    async def scenario(world: World) -> None:
        member = world.member(session_ms=1_800_000)
        await stable(world, member)
        await member.commit(1)
        await member.leave()
        world.pass_time(RETENTION - CHECK)
        assert await world.fetched() == (1, NONE)
        world.pass_time(2 * CHECK)
        assert await world.fetched() == (-1, NONE)
        key, _, value = (await written(world))[-1]
        assert (type(key).__name__, value) == ("GroupMetadataKey", None)

    play(scenario)


@pytest.mark.spec("B.21")
def test_a_live_subscription_protects_the_offsets_of_its_topics() -> None:
    async def scenario(world: World) -> None:
        world.cluster.create_topic("left")
        member = world.member(session_ms=1_800_000)
        await stable(world, member)
        await member.commit(1)
        await member.commit(1, topic="left")
        for _ in range(int(RETENTION / (20 * MINUTE)) + 1):
            world.pass_time(20 * MINUTE)
            assert await member.heartbeat() == NONE
        assert await world.fetched() == (1, NONE)
        assert await world.fetched(topic="left") == (-1, NONE)

    play(scenario)


@pytest.mark.spec("S1-29", "C.4", "B.21")
def test_a_retention_that_came_with_the_commit_decides() -> None:
    async def scenario(world: World) -> None:
        await known(world)
        await world.commit(1, version=3, retention_time_ms=int(HOUR * 1000))
        world.pass_time(HOUR - MINUTE)
        assert await world.fetched() == (1, NONE)
        world.pass_time(2 * CHECK)
        assert await world.fetched() == (-1, NONE)

    play(scenario, release="2.8")


@pytest.mark.spec("S0-38", "S0-40")
def test_the_offsets_of_a_deleted_topic_are_deleted_too() -> None:
    async def scenario(world: World) -> None:
        world.cluster.create_topic("short")
        await known(world)
        await world.commit(1)
        await world.commit(5, topic="short")
        world.cluster.delete_topic("short")
        world.cluster.create_topic("short")
        assert await world.fetched(topic="short") == (-1, NONE)
        assert await world.fetched() == (1, NONE)
        key, _, value = (await written(world))[-1]
        assert (key.topic, value) == ("short", None)

    play(scenario)
