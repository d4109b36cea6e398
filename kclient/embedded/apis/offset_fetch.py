"""OffsetFetch: the committed offsets of groups.

Up to version 7 one group is asked for, from version 8 on several, each with an error of its own. Version 0 reads what
commits of version 0 left in ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.coordinator import NEW_COORDINATOR, CoordinatorGroup
from kclient.embedded.groups.offsets import CommittedOffset
from kclient.embedded.request_context import RequestContext
from kclient.generated.offset_fetch_request import OffsetFetchRequest
from kclient.generated.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kclient.protocol.errors import (
    GROUP_AUTHORIZATION_FAILED,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSTABLE_OFFSET_COMMIT,
)
from kclient.protocol.primitives import ZERO_UUID
from kclient.types import TopicPartition

GROUPS: Final = 8  # the first version that asks for several groups
NOWHERE: Final = -1


@attrs.frozen
class RequestedTopic:
    """The requested partitions of a topic, by name or id."""

    name: str
    topic_id: bytes
    numbers: Sequence[int]


@attrs.frozen
class RequestedGroup:
    """The requested topics of one group; `topics` None means all."""

    group_id: str
    topics: Sequence[RequestedTopic] | None
    member_id: str | None = None
    member_epoch: int = -1


def asked_of(request: OffsetFetchRequest, version: int) -> list[RequestedGroup]:
    """Return the requested groups; before version 8 there is one."""
    if version < GROUPS:
        topics = request.topics
        named = [RequestedTopic(topic.name, ZERO_UUID, topic.partition_indexes) for topic in topics or ()]
        return [RequestedGroup(request.group_id, None if topics is None else named)]
    found = []
    for group in request.groups:
        rows = [RequestedTopic(row.name, row.topic_id, row.partition_indexes) for row in group.topics or ()]
        topics_or_all = None if group.topics is None else rows
        found.append(RequestedGroup(group.group_id, topics_or_all, group.member_id, group.member_epoch))
    return found


def single(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    """The form of version 7 and older."""
    topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=row.partition_index,
                    committed_offset=row.committed_offset,
                    committed_leader_epoch=row.committed_leader_epoch,
                    metadata=row.metadata,
                    error_code=row.error_code,
                )
                for row in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return OffsetFetchResponse(topics=topics)


def no_offsets(asked: RequestedGroup, code: int) -> OffsetFetchResponseGroup:
    """The group's own error."""
    return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=code)


def no_row(number: int, code: int = NONE) -> OffsetFetchResponsePartitions:
    """Return a row without an offset."""
    return OffsetFetchResponsePartitions(
        partition_index=number, committed_offset=NOWHERE, metadata="", error_code=code
    )


def row_of(number: int, commit: CommittedOffset) -> OffsetFetchResponsePartitions:
    """A committed offset."""
    return OffsetFetchResponsePartitions(
        partition_index=number,
        committed_offset=commit.offset,
        committed_leader_epoch=commit.leader_epoch,
        metadata=commit.metadata,
    )


BY_ID: Final = 10  # the first version that names topics by id
TOP_ERROR: Final = 2  # the first with an error for the whole response, and with all topics for null


async def handle(context: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """The committed offsets."""
    rows = [
        _read_or_refuse(context, asked, request.require_stable)
        for asked in asked_of(request, context.version)
    ]
    if context.version >= GROUPS:
        return OffsetFetchResponse(groups=rows)
    (row,) = rows
    if row.error_code != NONE:
        raise ApiError(row.error_code)
    return single(row)


def error_response(
    context: RequestContext, request: OffsetFetchRequest, error: ApiError
) -> OffsetFetchResponse:
    """At every group; before version 8 at the top, before version 2 at every partition."""
    asked = asked_of(request, context.version)
    if context.version >= GROUPS:
        return OffsetFetchResponse(groups=[no_offsets(one, error.code) for one in asked])
    if context.version >= TOP_ERROR:
        return OffsetFetchResponse(error_code=error.code)
    topics = [
        OffsetFetchResponseTopics(
            name=topic.name, partitions=[no_row(number, error.code) for number in topic.numbers]
        )
        for topic in asked[0].topics or ()
    ]
    return single(OffsetFetchResponseGroup(group_id=asked[0].group_id, topics=topics))


# --- one group


def _read_or_refuse(
    context: RequestContext, asked: RequestedGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    try:
        return _read(context, asked, require_stable)
    except ApiError as exc:
        return no_offsets(asked, exc.code)


def _read(context: RequestContext, asked: RequestedGroup, require_stable: bool) -> OffsetFetchResponseGroup:
    if not context.allowed("DESCRIBE", f"Group:{asked.group_id}"):
        raise ApiError(GROUP_AUTHORIZATION_FAILED)
    if context.version == 0:
        kept = [_of_version_0(context, asked.group_id, topic) for topic in asked.topics or ()]
        return OffsetFetchResponseGroup(group_id=asked.group_id, topics=kept)
    group = context.groups.find(asked.group_id, nameless=True)
    if group is not None:
        group.check_fetch(asked.member_id, asked.member_epoch)
    topics = _all_topics(context, group) if asked.topics is None else asked.topics
    rows = [_topic(context, group, topic, require_stable) for topic in topics]
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=rows)


def _all_topics(context: RequestContext, group: CoordinatorGroup | None) -> list[RequestedTopic]:
    """All that the group has offsets of and the client may see."""
    numbers: dict[str, list[int]] = {}
    for tp in sorted(() if group is None else group.offsets.committed):
        if context.allowed("DESCRIBE", f"Topic:{tp.topic}"):
            numbers.setdefault(tp.topic, []).append(tp.partition)
    found = []
    for name, of_topic in numbers.items():
        topic = context.state.topics.get(name)
        if topic is not None or context.version < BY_ID:
            found.append(RequestedTopic(name, ZERO_UUID if topic is None else topic.topic_id, of_topic))
    return found


def _topic(
    context: RequestContext, group: CoordinatorGroup | None, topic: RequestedTopic, require_stable: bool
) -> OffsetFetchResponseTopics:
    name, problem = topic.name, NONE
    if context.version >= BY_ID:
        found = context.state.topic_of_id(topic.topic_id)
        name, problem = (found.name, NONE) if found is not None else ("", UNKNOWN_TOPIC_ID)
    if problem == NONE and not context.allowed("DESCRIBE", f"Topic:{name}"):
        problem = TOPIC_AUTHORIZATION_FAILED
    rows = [
        _partition(context, group, TopicPartition(name, number), require_stable)
        if problem == NONE
        else no_row(number, problem)
        for number in topic.numbers
    ]
    return OffsetFetchResponseTopics(name=name, topic_id=topic.topic_id, partitions=rows)


def _partition(
    context: RequestContext, group: CoordinatorGroup | None, tp: TopicPartition, require_stable: bool
) -> OffsetFetchResponsePartitions:
    if group is None:
        return no_row(tp.partition)
    if require_stable and _unstable(context, group, tp):
        return no_row(tp.partition, UNSTABLE_OFFSET_COMMIT)
    commit = group.offsets.committed.get(tp)
    return no_row(tp.partition) if commit is None else row_of(tp.partition, commit)


def _unstable(context: RequestContext, group: CoordinatorGroup, tp: TopicPartition) -> bool:
    """Coordinators up to 3.9 also wait for plain commits that are being written."""
    writing = context.state.release < NEW_COORDINATOR and tp in group.offsets.writing
    return writing or group.offsets.in_transaction(tp)


def _of_version_0(context: RequestContext, group_id: str, topic: RequestedTopic) -> OffsetFetchResponseTopics:
    """There no offset and no partition are the same."""
    rows = []
    for number in topic.numbers:
        offset = context.state.zookeeper_offsets.get((group_id, TopicPartition(topic.name, number)))
        if not context.allowed("DESCRIBE", f"Topic:{topic.name}"):
            rows.append(no_row(number, TOPIC_AUTHORIZATION_FAILED))
        elif offset is None:
            rows.append(no_row(number, UNKNOWN_TOPIC_OR_PARTITION))
        else:
            rows.append(row_of(number, CommittedOffset(offset)))
    return OffsetFetchResponseTopics(name=topic.name, partitions=rows)
