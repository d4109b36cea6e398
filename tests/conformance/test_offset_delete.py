"""OffsetDelete (KIP-496): offsets of topics to which no member of the group subscribes."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.generated.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kclient.protocol import errors
from tests.conformance.classic import Member, subscription
from tests.conformance.offsets import NOTHING, commit, committed
from tests.conformance.target import Target


def delete(target: Target, group: str, topic: str, *partitions: int) -> Any:
    """Delete offsets: the response."""
    rows = [OffsetDeleteRequestPartition(partition_index=number) for number in partitions or (0,)]
    topics = [OffsetDeleteRequestTopic(name=topic, partitions=rows)]
    return target.ask(OffsetDeleteRequest(group_id=target.coordinated(group), topics=topics))


def codes(response: Any) -> list[int]:
    """The error codes of a response: its own, then each partition's."""
    return [response.error_code] + [row.error_code for topic in response.topics for row in topic.partitions]


@pytest.mark.spec("B.21")
def test_an_offset_of_an_empty_group_is_deleted(target: Target, group: str, topic: str) -> None:
    assert commit(target, group, topic) == errors.NONE
    assert codes(delete(target, group, topic)) == [errors.NONE, errors.NONE]
    assert committed(target, group, topic) == NOTHING


@pytest.mark.spec("B.21")
def test_an_unknown_group_is_refused(target: Target, group: str, topic: str) -> None:
    assert codes(delete(target, group, topic)) == [errors.GROUP_ID_NOT_FOUND]


@pytest.mark.spec("B.21")
def test_a_topic_that_members_subscribe_to_is_kept(target: Target, group: str, topic: str) -> None:
    assert commit(target, group, topic) == errors.NONE
    with Member(target, group, protocols=(("range", subscription(topic)),)) as member:
        member.settle()
        assert codes(delete(target, group, topic)) == [errors.NONE, errors.GROUP_SUBSCRIBED_TO_TOPIC]
        assert committed(target, group, topic).offset == 7


@pytest.mark.spec("B.21")
def test_another_topic_of_a_group_with_members_is_deleted(target: Target, group: str, topic: str) -> None:
    assert commit(target, group, topic) == errors.NONE
    with Member(target, group) as member:
        member.settle()
        assert codes(delete(target, group, topic)) == [errors.NONE, errors.NONE]
        assert committed(target, group, topic) == NOTHING


@pytest.mark.spec("B.21")
def test_a_group_of_another_kind_must_be_empty(target: Target, group: str, topic: str) -> None:
    assert commit(target, group, topic) == errors.NONE
    with Member(target, group, protocol_type="connect", protocols=(("sessioned", b""),)) as member:
        member.settle()
        assert codes(delete(target, group, topic)) == [errors.NON_EMPTY_GROUP]


def test_an_unknown_partition_is_refused_and_the_others_are_deleted(
    target: Target, group: str, topic: str
) -> None:
    assert commit(target, group, topic) == errors.NONE
    [response] = delete(target, group, topic, 0, 5).topics
    rows = {row.partition_index: row.error_code for row in response.partitions}
    assert rows == {0: errors.NONE, 5: errors.UNKNOWN_TOPIC_OR_PARTITION}
    assert committed(target, group, topic) == NOTHING
