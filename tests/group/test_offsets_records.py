"""Records of `__consumer_offsets` as the Java client's own code writes them, read by `kclient.group`."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kclient import TopicPartition, group, protocol
from kclient.errors import ProtocolDecodeError
from kclient.generated.group_metadata_value import GroupMetadataValue
from kclient.generated.offset_commit_key import OffsetCommitKey
from kclient.generated.offset_commit_value import OffsetCommitValue
from kclient.group.offsets_topic import OffsetsRecord, UnknownOffsetsRecord
from tests.group.vectors import vectors as group_vectors
from tests.vectors.cases import vectors

CASES = vectors("offsets_topic")
CONSUMER_GROUPS = [case for case in CASES if case["case"].startswith("GroupMetadata-consumer")]


def raw(case: dict[str, Any]) -> tuple[bytes, bytes | None]:
    value = case["value_hex"]
    return bytes.fromhex(case["key_hex"]), None if value is None else bytes.fromhex(value)


def commit(
    offset: int | None, topic: str = "t", partition: int = 0, group_id: str = "g"
) -> tuple[bytes, bytes | None]:
    """A record as a broker of 2.8 writes it; None is a tombstone."""
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    value = None if offset is None else protocol.encode(OffsetCommitValue(offset=offset), 3)
    return b"\x00\x01" + protocol.encode(key, 0), None if value is None else b"\x00\x03" + value


@pytest.mark.spec("S1-01", "S1-11", "C.4")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_what_java_writes_is_read(case: dict[str, Any]) -> None:
    record = group.read_offsets_record(*raw(case))
    assert isinstance(record, OffsetsRecord)
    assert record.name == case["key_message"].removesuffix("Key").removeprefix("Legacy")
    assert record.is_tombstone == (case["value_hex"] is None)
    assert record.group_id == case["key"].get("group", case["key"].get("groupId"))
    value = None if case["value"] is None else {"version": case["value_version"], "data": case["value"]}
    assert record.to_json() == {"key": {"type": case["record_type"], "data": case["key"]}, "value": value}


@pytest.mark.spec("C.4", "B.13.4")
@pytest.mark.parametrize("case", CONSUMER_GROUPS, ids=lambda case: case["case"])
def test_members_of_a_group_of_consumers_are_read(case: dict[str, Any]) -> None:
    record = group.read_offsets_record(*raw(case))
    assert isinstance(record, OffsetsRecord)
    assert isinstance(record.value, GroupMetadataValue)
    members = group.read_members(record.value)
    assert members
    for member, row in zip(members, case["value"]["members"], strict=True):
        assert member.row.member_id == row["memberId"]
        for blob, read in (("subscription", member.subscription), ("assignment", member.assignment)):
            encoded = base64.b64decode(row[blob])
            assert read is not None
            version = int.from_bytes(encoded[:2], "big")
            name = f"ConsumerProtocol{blob.capitalize()}"
            by_java = protocol.to_json(protocol.decode(name, version, encoded[2:]), version)
            assert _shape(read) == _java_shape(blob, by_java)


def _shape(read: Any) -> Any:
    if hasattr(read, "topics"):
        return sorted(read.topics), sorted(read.owned_partitions)
    return sorted(read.partitions)


def _java_shape(blob: str, fields: dict[str, Any]) -> Any:
    rows = fields.get("ownedPartitions" if blob == "subscription" else "assignedPartitions", [])
    partitions = sorted(TopicPartition(row["topic"], one) for row in rows for one in row["partitions"])
    return (sorted(fields["topics"]), partitions) if blob == "subscription" else partitions


@pytest.mark.spec("C.4")
def test_members_of_other_kinds_of_groups_have_no_subscriptions() -> None:
    value = GroupMetadataValue(protocol_type="connect")
    value.members.append(_row(subscription=b"not ours", assignment=b"\x00"))
    (member,) = group.read_members(value)
    assert (member.subscription, member.assignment) == (None, None)
    value.protocol_type = "consumer"
    with pytest.raises(ProtocolDecodeError):
        group.read_members(value)


@pytest.mark.spec("C.4", "B.13.4")
def test_a_member_that_the_leader_forgot_has_no_assignment() -> None:
    subscription = bytes.fromhex("000000000001000174ffffffff")  # version 0, [t], no user data
    value = GroupMetadataValue(protocol_type="consumer", members=[_row(subscription, b"")])
    (member,) = group.read_members(value)
    assert member.subscription is not None
    assert member.subscription.topics == ("t",)
    assert member.assignment is None


def _row(subscription: bytes, assignment: bytes) -> Any:
    from kclient.generated.group_metadata_value import MemberMetadata

    return MemberMetadata(member_id="m", subscription=subscription, assignment=assignment)


@pytest.mark.spec("C.4")
def test_a_commit_of_the_oldest_type_is_a_commit() -> None:
    key, value = commit(7)
    record = group.read_offsets_record(b"\x00\x00" + key[2:], value)
    assert isinstance(record, OffsetsRecord)
    assert (record.record_type, record.name, record.value_version) == (0, "OffsetCommit", 3)
    assert isinstance(record.value, OffsetCommitValue)
    assert record.value.offset == 7


@pytest.mark.spec("C.4")
@pytest.mark.parametrize(
    ("key", "value", "version"),
    [(b"\x7f\xffabc", b"\x00\x09x", 9), (b"\x00\x18abc", None, None), (b"\xff\xff", b"\x00\x00", 0)],
)
def test_a_type_that_is_newer_than_the_reader_is_no_error(
    key: bytes, value: bytes | None, version: int | None
) -> None:
    record = group.read_offsets_record(key, value)
    assert isinstance(record, UnknownOffsetsRecord)
    assert record.record_type == int.from_bytes(key[:2], signed=True)
    assert (record.key, record.value, record.value_version) == (key, value, version)
    assert record.is_tombstone == (value is None)
    assert record.to_json()["key"]["type"] == record.record_type


@pytest.mark.spec("C.4")
def test_a_version_that_is_newer_than_the_reader_is_no_error() -> None:
    key, _ = commit(1)
    record = group.read_offsets_record(key, b"\x00\x05\xff\xff")
    assert isinstance(record, UnknownOffsetsRecord)
    assert (record.record_type, record.value_version) == (1, 5)
    assert record.to_json() == {
        "key": {"type": 1, "data": base64.b64encode(key[2:]).decode()},
        "value": {"version": 5, "data": base64.b64encode(b"\xff\xff").decode()},
    }


@pytest.mark.spec("C.4")
@pytest.mark.parametrize("part", ["key", "value"])
def test_every_cut_of_a_record_is_a_typed_error(part: str) -> None:
    whole = commit(1, topic="orders")
    assert whole[1] is not None
    for size in range(len(whole[0] if part == "key" else whole[1])):
        key, value = (whole[0][:size], whole[1]) if part == "key" else (whole[0], whole[1][:size])
        with pytest.raises(ProtocolDecodeError):
            group.read_offsets_record(key, value)
    with pytest.raises(ProtocolDecodeError, match="has no key"):
        group.read_offsets_record(None, whole[1])


@pytest.mark.spec("S1-01", "S1-11", "C.4")
def test_the_last_record_under_a_key_counts_and_a_tombstone_removes() -> None:
    records = [
        commit(1),
        commit(9, partition=1),
        commit(5),
        commit(3, group_id="other"),
        (b"\x7f\xff", b"\x00\x00"),  # unknown
        commit(4),  # back again: not the greatest counts, but the last
        commit(None, partition=1),
        commit(None, group_id="gone"),
        (b"\x00\x02\x00\x01g", None),  # the group's own record is no commit
    ]
    found = group.committed_offsets(records)
    committed = {name: {tp: one.offset for tp, one in commits.items()} for name, commits in found.items()}
    assert committed == {"g": {TopicPartition("t", 0): 4}, "other": {TopicPartition("t", 0): 3}}


# --- what real brokers wrote


@pytest.mark.spec("S1-01", "S1-11", "C.4")
@pytest.mark.parametrize("release", ["2.8.2", "4.3.1"])
def test_what_a_broker_wrote_is_read_as_its_own_formatter_prints_it(release: str) -> None:
    """The bytes of a real broker, and what Kafka's console consumer made of them; see data/README.md."""
    compared = 0
    for case in vectors_of_broker(release):
        key, value = bytes.fromhex(case["key"]), case["value"]
        record = group.read_offsets_record(key, None if value is None else bytes.fromhex(value))
        assert isinstance(record, OffsetsRecord)
        assert protocol.encode(record.key, 0) == key[2:]
        if record.value is not None and record.value_version is not None:
            assert protocol.encode(record.value, record.value_version).hex() == value[4:]
        if case["json"] is not None:  # Kafka has no formatter for the groups of KIP-848
            assert record.to_json() == case["json"]
            compared += 1
    assert compared > 20


@pytest.mark.spec("S1-01", "C.4", "B.13.4")
@pytest.mark.parametrize(
    ("release", "versions", "kinds"), [("2.8.2", {3}, {1, 2}), ("4.3.1", {4}, {1, 2, 3, 5, 6, 7, 8, 16})]
)
def test_what_a_broker_wrote_adds_up(release: str, versions: set[int], kinds: set[int]) -> None:
    cases = vectors_of_broker(release)
    pairs = [(bytes.fromhex(one["key"]), one["value"] and bytes.fromhex(one["value"])) for one in cases]
    records = [group.read_offsets_record(*pair) for pair in pairs]
    assert {one.record_type for one in records} == kinds
    commits = [one for one in records if one.record_type == 1 and not one.is_tombstone]
    assert {one.value_version for one in commits} == versions
    by_kind = {name.split("-")[1]: found for name, found in group.committed_offsets(pairs).items()}
    assert "ours" not in by_kind  # deleted
    assert [(tp, one.offset) for tp, one in by_kind["transactional"].items()] == [(("orders", 0), 1)]
    (by_librdkafka,) = by_kind["range"].values()
    assert by_librdkafka.metadata == "from librdkafka\0"  # the NUL is its own
    last = {
        one.group_id: group.read_members(one.value)
        for one in records
        if isinstance(one, OffsetsRecord) and isinstance(one.value, GroupMetadataValue) and one.value.members
    }
    assert len(last) == 5
    for (member,) in last.values():
        assert member.subscription is not None
        assert member.assignment is not None
        assert member.subscription.topics == ("orders",)
        assert sorted(member.assignment.partitions) == [("orders", 0), ("orders", 1)]
    assert {member.row.group_instance_id for (member,) in last.values()} == {None, "first"}


def vectors_of_broker(release: str) -> list[dict[str, Any]]:
    return group_vectors(f"written_by_{release}")
