"""Commits and committed offsets in a group of the consumer protocol: whose epoch is good enough."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from kclient.generated.delete_groups_request import DeleteGroupsRequest
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
from kclient.generated.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kclient.protocol import errors
from tests.conformance.consumer import Member, described
from tests.conformance.target import Target

pytestmark = [pytest.mark.since("4.0"), pytest.mark.spec("B.17.6", "B.14.9")]

OFFSET = 5


@attrs.define
class Offsets:
    """One group's offsets of one topic, asked for by any member."""

    target: Target
    group: str
    topic: str

    def commit(
        self, member_id: str, epoch: int, *partitions: int, version: int = 9, instance_id: str | None = None
    ) -> set[int]:
        """The codes that the partitions (the first one unless said) are answered with."""
        rows = [
            OffsetCommitRequestPartition(partition_index=number, committed_offset=OFFSET)
            for number in partitions or (0,)
        ]
        request = OffsetCommitRequest(
            group_id=self.group,
            member_id=member_id,
            generation_id_or_member_epoch=epoch,
            group_instance_id=instance_id,
            topics=[OffsetCommitRequestTopic(name=self.topic, partitions=rows)],
        )
        return {row.error_code for row in self.target.ask(request, version).topics[0].partitions}

    def fetch(self, member_id: str | None, epoch: int) -> Any:
        """The group's code, or the committed offset of the first partition."""
        topics = [OffsetFetchRequestTopics(name=self.topic, partition_indexes=[0])]
        asked = OffsetFetchRequestGroup(
            group_id=self.group, member_id=member_id, member_epoch=epoch, topics=topics
        )
        [row] = self.target.ask(OffsetFetchRequest(groups=[asked]), 9).groups
        return (
            row.topics[0].partitions[0].committed_offset if row.error_code == errors.NONE else row.error_code
        )


def test_members_commit_in_their_epoch(target: Target, group: str, topic: str) -> None:
    Member(target, group, "m").join(topic)
    offsets = Offsets(target, group, topic)
    assert offsets.commit("m", 2) == {errors.NONE}
    assert offsets.commit("m", 2, version=8) == {errors.UNSUPPORTED_VERSION}
    assert offsets.commit("m", 1) == {errors.STALE_MEMBER_EPOCH}
    assert offsets.commit("m", 3) == {errors.STALE_MEMBER_EPOCH}
    assert offsets.commit("m", -1) == {errors.STALE_MEMBER_EPOCH}
    assert offsets.commit("stranger", 2) == {errors.UNKNOWN_MEMBER_ID}
    assert offsets.commit("", -1) == {errors.UNKNOWN_MEMBER_ID}
    assert offsets.commit("m", 2, instance_id="of nobody") == {errors.NONE}


def test_without_members_anybody_commits(target: Target, group: str, topic: str) -> None:
    member = Member(target, group, "m")
    member.join(topic)
    member.beat(-1)
    offsets = Offsets(target, group, topic)
    assert offsets.commit("", -1) == {errors.NONE}
    assert offsets.commit("m", -1) == {errors.NONE}
    assert offsets.commit("m", 2) == {errors.UNKNOWN_MEMBER_ID}


def test_an_older_epoch_commits_what_the_member_had_then_and_has_still(target: Target, group: str) -> None:
    topic = target.topic(4)
    topic_id = target.topic_id(topic)
    one, two = Member(target, group, "m1"), Member(target, group, "m2")
    one.join(topic)
    two.join(topic)
    one.beat()
    offsets = Offsets(target, group, topic)
    assert offsets.commit("m1", 2, 0, 3) == {errors.NONE}  # 3 is to be given up, but is not yet
    one.beat(owned={topic_id: [0, 1]})
    two.beat()
    assert (one.epoch, two.epoch) == (3, 3)
    assert offsets.commit("m1", 2, 0, 1) == {errors.NONE}
    assert offsets.commit("m1", 2, 3) == {errors.STALE_MEMBER_EPOCH}
    assert offsets.commit("m1", 2, 0, 3) == {errors.STALE_MEMBER_EPOCH}
    assert offsets.commit("m1", 1, 0) == {errors.STALE_MEMBER_EPOCH}
    assert offsets.commit("m1", 3, 3) == {errors.NONE}  # in the current epoch what it owns is not checked
    assert offsets.commit("m2", 2, 3) == {errors.STALE_MEMBER_EPOCH}
    assert offsets.commit("m2", 3, 3) == {errors.NONE}


def test_members_read_offsets_in_their_epoch_only(target: Target, group: str, topic: str) -> None:
    offsets = Offsets(target, group, topic)
    member = Member(target, group, "m")
    assert offsets.fetch("m", 1) == -1  # of a group that is unknown nothing is committed
    member.join(topic)
    offsets.commit("m", 2)
    assert offsets.fetch("m", 2) == OFFSET
    assert offsets.fetch(None, -1) == OFFSET
    assert offsets.fetch("m", 1) == errors.STALE_MEMBER_EPOCH
    assert offsets.fetch("m", 3) == errors.STALE_MEMBER_EPOCH
    assert offsets.fetch("m", -1) == errors.STALE_MEMBER_EPOCH
    assert offsets.fetch("", -1) == errors.UNKNOWN_MEMBER_ID
    assert offsets.fetch("stranger", 2) == errors.UNKNOWN_MEMBER_ID
    assert offsets.fetch(None, 2) == errors.UNKNOWN_SERVER_ERROR


def test_offsets_of_topics_that_are_read_stay(target: Target, group: str, topic: str) -> None:
    other = target.topic()
    Member(target, group, "m").join(topic)
    partition = [OffsetDeleteRequestPartition(partition_index=0)]
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[OffsetDeleteRequestTopic(name=name, partitions=partition) for name in (topic, other)],
    )
    response = target.ask(request)
    codes = {row.name: row.partitions[0].error_code for row in response.topics}
    assert codes == {topic: errors.GROUP_SUBSCRIBED_TO_TOPIC, other: errors.NONE}


def test_only_an_empty_group_is_deleted(target: Target, group: str, topic: str) -> None:
    member = Member(target, group, "m")
    member.join(topic)
    request = DeleteGroupsRequest(groups_names=[group])
    assert target.ask(request).results[0].error_code == errors.NON_EMPTY_GROUP
    member.beat(-1)
    assert target.ask(request).results[0].error_code == errors.NONE
    assert described(target, group).error_code == errors.GROUP_ID_NOT_FOUND
    assert member.join(topic).member_epoch == 2
