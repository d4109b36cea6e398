"""OffsetFetch: what is committed, what is not, and for whom."""

from __future__ import annotations

import uuid

import pytest

from kclient.generated.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kclient.generated.offset_fetch_response import OffsetFetchResponse
from kclient.protocol import errors
from tests.conformance.classic import Member
from tests.conformance.offsets import (
    BY_ID,
    NOTHING,
    SEVERAL,
    Committed,
    commit,
    committed,
    fetch_answer,
    rows_of,
)
from tests.conformance.target import Target, fresh

pytestmark = pytest.mark.api("OffsetFetch", 1, few=True)


@pytest.mark.spec("S0-38", "S0-39")
@pytest.mark.api("OffsetFetch", 1)
def test_found_and_not_found(target: Target, group: str, version: int) -> None:
    topic = target.topic(partitions=2)
    assert commit(target, group, topic, offset=12, metadata="note", leader_epoch=0) == errors.NONE
    response = fetch_answer(target, group, {topic: [0, 1]}, version)
    epoch = 0 if version >= 5 else -1
    assert response.error_code == errors.NONE
    assert rows_of(response) == {0: Committed(12, epoch, "note", errors.NONE), 1: NOTHING}
    if version >= BY_ID:
        assert (response.topics[0].name, response.topics[0].topic_id) == ("", target.topic_id(topic))
    else:
        assert response.topics[0].name == topic


@pytest.mark.spec("S0-34")
@pytest.mark.api("OffsetFetch", 1)
def test_an_unknown_group_has_nothing(target: Target, group: str, topic: str, version: int) -> None:
    assert rows_of(fetch_answer(target, group, {topic: [0, 3]}, version)) == {0: NOTHING, 3: NOTHING}


@pytest.mark.spec("S0-59")
@pytest.mark.api("OffsetFetch", 2, few=True)
def test_an_unknown_group_has_no_topics_at_all(target: Target, group: str, version: int) -> None:
    response = fetch_answer(target, group, None, version)
    assert (response.error_code, response.topics) == (errors.NONE, [])


@pytest.mark.spec("S0-36")
@pytest.mark.api("OffsetFetch", 2)
def test_without_topics_all_that_the_group_has_is_reported(target: Target, group: str, version: int) -> None:
    topics = [target.topic(partitions=3), target.topic()]
    for topic in topics:
        assert commit(target, group, topic, offset=4) == errors.NONE
    response = fetch_answer(target, group, None, version)
    found = {
        row.topic_id if version >= BY_ID else row.name: [
            (partition.partition_index, partition.committed_offset) for partition in row.partitions
        ]
        for row in response.topics
    }
    assert found == {target.topic_id(name) if version >= BY_ID else name: [(0, 4)] for name in topics}


@pytest.mark.spec("S0-38")
@pytest.mark.api("OffsetFetch", 1, few=True)
def test_a_group_that_does_not_exist_has_no_offsets(target: Target, topic: str, version: int) -> None:
    response = fetch_answer(target, target.coordinated(fresh("group")), {topic: [0]}, version)
    assert (response.error_code, rows_of(response)) == (errors.NONE, {0: NOTHING})


@pytest.mark.spec("S0-38")
def test_an_unknown_topic_has_nothing_by_name_and_an_error_by_id(
    target: Target, group: str, topic: str, version: int
) -> None:
    assert commit(target, group, topic) == errors.NONE
    if version < BY_ID:
        assert committed(target, group, "no-such-topic", version) == NOTHING
        return
    rows = [OffsetFetchRequestTopics(topic_id=uuid.uuid4().bytes, partition_indexes=[0])]
    wanted = OffsetFetchRequestGroup(group_id=group, topics=rows)
    [response] = target.ask(OffsetFetchRequest(groups=[wanted]), version).groups
    assert response.error_code == errors.NONE
    assert rows_of(response)[0] == Committed(-1, -1, "", errors.UNKNOWN_TOPIC_ID)


@pytest.mark.api("OffsetFetch", SEVERAL, few=True)
def test_several_groups_are_answered_each(target: Target, topic: str, version: int) -> None:
    groups = [fresh("group"), fresh("group")]
    assert commit(target, groups[1], topic, offset=3) == errors.NONE
    rows = [OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups]
    response = target.ask(OffsetFetchRequest(groups=rows), version)
    found = {row.group_id: (row.error_code, len(row.topics)) for row in response.groups}
    assert found == {groups[0]: (errors.NONE, 0), groups[1]: (errors.NONE, 1)}


@pytest.mark.api("OffsetFetch", SEVERAL, few=True)
def test_no_groups_no_responses(target: Target, version: int) -> None:
    assert target.ask(OffsetFetchRequest(groups=[]), version) == OffsetFetchResponse()


@pytest.mark.spec("B.21")
def test_members_are_not_asked_for_in_a_classic_group(
    target: Target, group: str, topic: str, version: int
) -> None:
    with Member(target, group) as member:
        member.settle()
        assert committed(target, group, topic, version) == NOTHING


@pytest.mark.api("OffsetFetch", 9, few=True)
def test_a_classic_group_does_not_look_at_the_member(
    target: Target, group: str, topic: str, version: int
) -> None:
    assert commit(target, group, topic) == errors.NONE
    nobody = {"member_id": "nobody", "member_epoch": 1}
    assert committed(target, group, topic, version, **nobody).offset == 7
    with Member(target, group) as member:
        member.settle()
        assert committed(target, group, topic, version, **nobody).offset == 7


def test_an_empty_group_id_is_a_group_like_any_other(target: Target, topic: str, version: int) -> None:
    response = fetch_answer(target, "", {topic: [0]}, version)
    assert response.error_code in (errors.NONE, errors.INVALID_GROUP_ID)
