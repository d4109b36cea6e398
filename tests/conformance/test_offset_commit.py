"""OffsetCommit: the members that may commit in each state of the group, and the error codes of partitions."""

from __future__ import annotations

import time
import uuid

import pytest

from kclient.generated.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kclient.generated.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kclient.protocol import errors
from tests.conformance.classic import Member, pair
from tests.conformance.offsets import BY_ID, NOTHING, Committed, commit, commit_request, committed
from tests.conformance.target import Target

pytestmark = pytest.mark.api("OffsetCommit", 1, few=True)

METADATA_MAX_BYTES = 4096


def member_of(member: Member) -> dict[str, object]:
    """The fields by which a member of a group commits."""
    return {"generation_id_or_member_epoch": member.generation, "member_id": member.member_id}


@pytest.mark.spec("S0-39", "B.21")
@pytest.mark.api("OffsetCommit", 1, few=True)
def test_a_simple_consumer_commits_to_a_group_that_did_not_exist(
    target: Target, group: str, topic: str, version: int
) -> None:
    target.coordinated(group)
    epoch = {"leader_epoch": 0} if version >= 6 else {}
    response = target.ask(commit_request(target, group, topic, version, 42, "note", **epoch), version)
    named = {"topic_id": target.topic_id(topic)} if version >= BY_ID else {"name": topic}
    row = OffsetCommitResponsePartition(partition_index=0, error_code=errors.NONE)
    assert response == OffsetCommitResponse(topics=[OffsetCommitResponseTopic(partitions=[row], **named)])
    assert committed(target, group, topic) == Committed(42, 0 if version >= 6 else -1, "note", errors.NONE)


@pytest.mark.spec("B.21")
def test_a_member_of_a_stable_group_commits(target: Target, group: str, topic: str, version: int) -> None:
    with Member(target, group) as member:
        member.settle()
        assert commit(target, group, topic, version, offset=5, **member_of(member)) == errors.NONE
    assert committed(target, group, topic).offset == 5


@pytest.mark.spec("B.21")
def test_another_generation_is_refused(target: Target, group: str, topic: str, version: int) -> None:
    with Member(target, group) as member:
        member.settle()
        for generation in (0, 2):
            code = commit(
                target,
                group,
                topic,
                version,
                member_id=member.member_id,
                generation_id_or_member_epoch=generation,
            )
            assert code == errors.ILLEGAL_GENERATION
    assert committed(target, group, topic) == NOTHING


@pytest.mark.spec("B.21", "S1-27", "S1-28")
def test_an_unknown_member_is_refused(target: Target, group: str, topic: str, version: int) -> None:
    with Member(target, group) as member:
        member.settle()
        for fields in (
            {"generation_id_or_member_epoch": 1, "member_id": "nobody"},
            {"generation_id_or_member_epoch": 1, "member_id": ""},
            {"generation_id_or_member_epoch": -1, "member_id": "nobody"},
            {},
        ):
            assert commit(target, group, topic, version, **fields) == errors.UNKNOWN_MEMBER_ID
        fields = {"generation_id_or_member_epoch": -1, "member_id": member.member_id}
        assert commit(target, group, topic, version, **fields) == errors.ILLEGAL_GENERATION
    assert committed(target, group, topic) == NOTHING


@pytest.mark.spec("B.21")
@pytest.mark.api("OffsetCommit", 1, few=True)
def test_an_unknown_group_with_a_generation_is_refused(
    target: Target, group: str, topic: str, version: int
) -> None:
    code = commit(target, group, topic, version, generation_id_or_member_epoch=5, member_id="nobody")
    assert code == (errors.GROUP_ID_NOT_FOUND if version >= 9 else errors.ILLEGAL_GENERATION)


@pytest.mark.spec("B.21")
def test_an_empty_group_refuses_generations_and_takes_simple_commits(
    target: Target, group: str, topic: str, version: int
) -> None:
    with Member(target, group) as member:
        member.settle()
        member.leave()
        code = commit(target, group, topic, version, **member_of(member))
        assert code == errors.UNKNOWN_MEMBER_ID
    assert commit(target, group, topic, version) == errors.NONE


@pytest.mark.spec("B.21")
def test_in_preparing_rebalance_the_old_generation_is_accepted(
    target: Target, group: str, topic: str, version: int
) -> None:
    with Member(target, group) as member, Member(target, group) as other:
        member.settle()
        other.queue(member)
        assert commit(target, group, topic, version, **member_of(member)) == errors.NONE


@pytest.mark.spec("B.21")
def test_in_completing_rebalance_a_commit_is_sent_back(
    target: Target, group: str, topic: str, version: int
) -> None:
    leader, follower = pair(target, group)
    with leader, follower:
        assert commit(target, group, topic, version, **member_of(leader)) == errors.REBALANCE_IN_PROGRESS


@pytest.mark.spec("B.21")
@pytest.mark.api("OffsetCommit", 7, few=True)
def test_another_member_with_the_instance_is_fenced(
    target: Target, group: str, topic: str, version: int
) -> None:
    with Member(target, group, instance_id="a") as member:
        member.settle()
        fields = {"generation_id_or_member_epoch": 1, "group_instance_id": "a"}
        fenced = commit(target, group, topic, version, member_id="nobody", **fields)
        assert fenced == errors.FENCED_INSTANCE_ID
        assert commit(target, group, topic, version, member_id=member.member_id, **fields) == errors.NONE


@pytest.mark.spec("B.21")
def test_the_empty_group_id_may_commit_without_a_member_only(
    target: Target, topic: str, version: int
) -> None:
    target.coordinated("")
    assert commit(target, "", topic, version) == errors.NONE
    code = commit(target, "", topic, version, member_id="nobody", generation_id_or_member_epoch=1)
    assert code == errors.UNKNOWN_MEMBER_ID


@pytest.mark.spec("B.21")
def test_metadata_may_be_4096_bytes_and_no_more(target: Target, group: str, topic: str, version: int) -> None:
    most = "m" * METADATA_MAX_BYTES
    assert commit(target, group, topic, version, metadata=most + "m") == errors.OFFSET_METADATA_TOO_LARGE
    assert committed(target, group, topic) == NOTHING
    assert commit(target, group, topic, version, metadata=most) == errors.NONE
    assert committed(target, group, topic).metadata == most


@pytest.mark.spec("B.14.4")
def test_metadata_is_counted_in_utf_16(target: Target, group: str, topic: str, version: int) -> None:
    surrogates = "😀" * (METADATA_MAX_BYTES // 2)  # each is two units, and four bytes
    assert commit(target, group, topic, version, metadata=surrogates) == errors.NONE
    code = commit(target, group, topic, version, metadata=surrogates + "m")
    assert code == errors.OFFSET_METADATA_TOO_LARGE


def test_null_metadata_is_stored_as_empty(target: Target, group: str, topic: str, version: int) -> None:
    assert commit(target, group, topic, version, metadata=None) == errors.NONE
    assert committed(target, group, topic) == Committed(7, -1, "", errors.NONE)


@pytest.mark.spec("B.21")
def test_an_unknown_partition_is_refused_and_the_others_are_kept(
    target: Target, group: str, topic: str, version: int
) -> None:
    target.coordinated(group)
    response = target.ask(commit_request(target, group, topic, version, partitions=[5, 0]), version)
    codes = {row.partition_index: row.error_code for row in response.topics[0].partitions}
    assert codes == {5: errors.UNKNOWN_TOPIC_OR_PARTITION, 0: errors.NONE}
    assert committed(target, group, topic).offset == 7


@pytest.mark.spec("B.21")
@pytest.mark.api("OffsetCommit", 1, few=True)
def test_an_unknown_topic_is_refused(target: Target, group: str, version: int) -> None:
    target.coordinated(group)
    row = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    named = {"topic_id": uuid.uuid4().bytes} if version >= BY_ID else {"name": "no-such-topic"}
    request = OffsetCommitRequest(
        group_id=group, topics=[OffsetCommitRequestTopic(partitions=[row], **named)]
    )
    [response] = target.ask(request, version).topics
    unknown = errors.UNKNOWN_TOPIC_ID if version >= BY_ID else errors.UNKNOWN_TOPIC_OR_PARTITION
    assert [partition.error_code for partition in response.partitions] == [unknown]


def test_a_commit_without_topics_is_answered_without(target: Target, group: str, version: int) -> None:
    target.coordinated(group)
    assert target.ask(OffsetCommitRequest(group_id=group), version) == OffsetCommitResponse()


@pytest.mark.spec("B.21")
def test_a_later_commit_replaces_also_with_a_smaller_offset(
    target: Target, group: str, topic: str, version: int
) -> None:
    for offset in (10, 3):
        assert commit(target, group, topic, version, offset=offset) == errors.NONE
        assert committed(target, group, topic).offset == offset


@pytest.mark.spec("B.21")
def test_a_commit_counts_as_a_heartbeat(target: Target, group: str, topic: str) -> None:
    with Member(target, group, session_timeout_ms=4000) as member:
        member.settle()
        for _ in range(3):  # longer than the session in all
            time.sleep(1.4)
            assert commit(target, group, topic, **member_of(member)) == errors.NONE
        assert member.heartbeat() == errors.NONE


@pytest.mark.spec("B.21")
def test_a_commit_that_is_too_large_for_one_batch_is_refused_as_a_whole(target: Target, group: str) -> None:
    """Coordinators of 4.x return another error for it: one that does not name the cause."""
    partitions = list(range(260))  # with 4,096 bytes of metadata each more than max.message.bytes, 1,048,588
    topic = target.topic(partitions=len(partitions))
    version = target.newest("OffsetCommit")
    large = commit_request(
        target,
        target.coordinated(group),
        topic,
        version,
        metadata="m" * METADATA_MAX_BYTES,
        partitions=partitions,
    )
    [response] = target.ask(large, version).topics
    too_large = errors.UNKNOWN_SERVER_ERROR if target.since("4.0") else errors.INVALID_COMMIT_OFFSET_SIZE
    assert [row.error_code for row in response.partitions] == [too_large] * len(partitions)
    assert committed(target, group, topic) == NOTHING
