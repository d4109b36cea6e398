"""What coordinators write to `__consumer_offsets`: record by record, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from kclient import Consumer, TopicPartition, protocol
from kclient.generated.delete_groups_request import DeleteGroupsRequest
from kclient.generated.group_metadata_key import GroupMetadataKey
from kclient.generated.group_metadata_value import GroupMetadataValue, MemberMetadata
from kclient.generated.offset_commit_key import OffsetCommitKey
from kclient.generated.offset_commit_value import OffsetCommitValue
from kclient.group.offsets_topic import offsets_topic_partition
from kclient.protocol import errors
from kclient.protocol.message import Message
from tests.conformance.classic import SUBSCRIPTION, Member, settled_pair
from tests.conformance.offsets import BY_ID, commit_request
from tests.conformance.target import SETTINGS, Target, eventually

OFFSETS_TOPIC = "__consumer_offsets"
NAMES = {1: "OffsetCommit", 2: "GroupMetadata"}

Written = tuple[Message, int, Any]  # key, version of the value, value; −1 and None for a tombstone


def written(target: Target, group: str) -> list[Written]:
    """The group's records, times left out."""
    tp = TopicPartition(
        OFFSETS_TOPIC, offsets_topic_partition(group, SETTINGS["offsets.topic.num.partitions"])
    )
    address = f"{target.host}:{target.port}"
    found = list[Written]()
    with Consumer(bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        end = consumer.end_offsets([tp])[tp]
        while consumer.position(tp) < end:
            records = consumer.poll(timeout=1.0)
            found.extend(_decoded(one.key, one.value) for one in records if _kind(one.key) in NAMES)
    return [row for row in found if getattr(row[0], "group", None) == group]


def _kind(key: bytes) -> int:
    """The number of the record's type; groups of the consumer protocol write others."""
    return int.from_bytes(key[:2], "big")


def _decoded(key: bytes, value: bytes | None) -> Written:
    name = NAMES[_kind(key)]
    about = protocol.decode(name + "Key", 0, key[2:])
    if value is None:
        return about, -1, None
    version = int.from_bytes(value[:2], "big")
    message: Any = protocol.decode(name + "Value", version, value[2:])
    if name == "OffsetCommit":
        assert message.commit_timestamp > 0
        message.commit_timestamp = 0
    else:
        message.current_state_timestamp = min(message.current_state_timestamp, 0)
    return about, version, message


def commit_row(target: Target, topic: str, **fields: Any) -> OffsetCommitValue:
    """A commit of `commit_request` as it should lie there."""
    if target.newest("OffsetCommit") >= BY_ID:
        fields["topic_id"] = target.topic_id(topic)
    return OffsetCommitValue(**{"offset": 7, **fields})


def commit_version(target: Target) -> int:
    """Spec: C.4."""
    return 4 if target.since("4.1") else 3


@pytest.mark.spec("C.4", "S1-01")
def test_a_commit_without_a_group_is_one_record(target: Target, group: str, topic: str) -> None:
    target.coordinated(group)
    version = target.newest("OffsetCommit")
    request = commit_request(target, group, topic, version, metadata="m", leader_epoch=3)
    assert target.ask(request).topics[0].partitions[0].error_code == errors.NONE
    assert written(target, group) == [
        (
            OffsetCommitKey(group=group, topic=topic, partition=0),
            commit_version(target),
            commit_row(target, topic, leader_epoch=3, metadata="m"),
        )
    ]


@pytest.mark.spec("C.4")
def test_null_metadata_becomes_empty(target: Target, group: str, topic: str) -> None:
    target.coordinated(group)
    target.ask(commit_request(target, group, topic, target.newest("OffsetCommit"), metadata=None))
    [(_, _, value)] = written(target, group)
    assert value.metadata == ""


@pytest.mark.spec("C.4", "B.14.4")
def test_a_commit_with_a_retention_says_when_it_expires(target: Target, group: str, topic: str) -> None:
    target.coordinated(group)
    target.ask(commit_request(target, group, topic, 4, retention_time_ms=60_000), 4)
    [(_, version, value)] = written(target, group)
    assert (version, value.offset) == (1, 7)
    assert value.expire_timestamp > 1_600_000_000_000


@pytest.mark.spec("C.4", "S4-40", "S4-42", "S4-52")
def test_a_group_is_written_when_its_plan_is_stored_and_when_it_is_empty(target: Target, group: str) -> None:
    with Member(target, group, instance_id="till", session_timeout_ms=7000) as member:
        member.settle()
        member.leave()
    key = GroupMetadataKey(group=group)
    row = MemberMetadata(
        member_id=member.member_id,
        group_instance_id="till",
        client_id="asker",
        client_host="/127.0.0.1",
        rebalance_timeout=10_000,
        session_timeout=7000,
        subscription=SUBSCRIPTION,
        assignment=b"plan",
    )
    stable = GroupMetadataValue(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader=member.member_id,
        current_state_timestamp=0,
        members=[row],
    )
    nobody: dict[str, Any] = {"protocol": None, "leader": None, "current_state_timestamp": 0}
    empty = GroupMetadataValue(protocol_type="consumer", generation=2, **nobody)
    new = GroupMetadataValue(protocol_type="", generation=0, **nobody)
    stored = [(key, 3, stable), (key, 3, empty)]
    found = written(target, group)
    assert found == ([(key, 3, new), *stored] if target.since("4.0") else stored)


@pytest.mark.spec("C.4", "S4-40")
def test_a_follower_that_the_leader_forgot_is_written_with_nothing(target: Target, group: str) -> None:
    leader, follower = settled_pair(target, group)
    with leader, follower:
        leader.send_join()
        eventually(follower.heartbeat, lambda code: code == errors.REBALANCE_IN_PROGRESS)
        follower.begin()
        leader.joined()
        follower.joined()
        leader.sync({leader.member_id: b"mine"})
        value = written(target, group)[-1][2]
        parts = {row.member_id: row.assignment for row in value.members}
        assert parts == {leader.member_id: b"mine", follower.member_id: b""}
        assert value.generation == 3


@pytest.mark.spec("C.4", "B.21")
def test_a_deleted_group_leaves_tombstones(target: Target, group: str, topic: str) -> None:
    with Member(target, group) as member:
        member.settle()
        version = target.newest("OffsetCommit")
        request = commit_request(target, group, topic, version)
        request.member_id, request.generation_id_or_member_epoch = member.member_id, member.generation
        assert target.ask(request).topics[0].partitions[0].error_code == errors.NONE
        member.leave()
    assert target.ask(DeleteGroupsRequest(groups_names=[group])).results[0].error_code == errors.NONE
    found = written(target, group)[-2:]
    assert [row[1:] for row in found] == [(-1, None)] * 2
    keys = [row[0] for row in found]
    assert keys == [OffsetCommitKey(group=group, topic=topic, partition=0), GroupMetadataKey(group=group)]
