"""OffsetFetch: how far groups have read. Spec: S0-34…S0-40, S0-59, B.15.7, B.21.

Up to version 7 one group is asked for, from version 8 on several, each with an error of its own. Version 0 reads what
commits of version 0 left in ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from kclient.embedded.call import Call
from kclient.embedded.groups.group import Group
from kclient.embedded.groups.states import State
from kclient.embedded.refusal import Refused
from kclient.embedded.releases import Release
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
BY_ID: Final = 10  # the first that names topics by id
TOP_ERROR: Final = 2  # the first with an error for the whole answer, and with all topics for null
NEW_COORDINATOR: Final = Release.parse("4.0")

NOWHERE: Final = -1


@attrs.frozen
class AskedTopic:
    """Partitions of a topic that one asks for; by name or by id."""

    name: str
    topic_id: bytes
    numbers: Sequence[int]


@attrs.frozen
class Asked:
    """What is asked of one group; `topics` None means all."""

    group_id: str
    topics: Sequence[AskedTopic] | None
    member_id: str | None = None
    member_epoch: int = -1


async def handle(call: Call, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """The committed offsets."""
    rows = [_read_or_refuse(call, asked, request.require_stable) for asked in _asked(call, request)]
    if call.version >= GROUPS:
        return OffsetFetchResponse(groups=rows)
    (row,) = rows
    if row.error_code != NONE:
        raise Refused(row.error_code)
    return _single(row)


def refuse(call: Call, request: OffsetFetchRequest, refused: Refused) -> OffsetFetchResponse:
    """At every group; before version 8 at the top, before version 2 at every partition."""
    asked = _asked(call, request)
    if call.version >= GROUPS:
        return OffsetFetchResponse(groups=[_no(one, refused.code) for one in asked])
    if call.version >= TOP_ERROR:
        return OffsetFetchResponse(error_code=refused.code)
    topics = [
        OffsetFetchResponseTopics(
            name=topic.name, partitions=[_nothing(number, refused.code) for number in topic.numbers]
        )
        for topic in asked[0].topics or ()
    ]
    return _single(OffsetFetchResponseGroup(group_id=asked[0].group_id, topics=topics))


def _asked(call: Call, request: OffsetFetchRequest) -> list[Asked]:
    if call.version < GROUPS:
        topics = request.topics
        named = [AskedTopic(topic.name, ZERO_UUID, topic.partition_indexes) for topic in topics or ()]
        return [Asked(request.group_id, None if topics is None else named)]
    found = []
    for group in request.groups:
        rows = [AskedTopic(row.name, row.topic_id, row.partition_indexes) for row in group.topics or ()]
        topics_or_all = None if group.topics is None else rows
        found.append(Asked(group.group_id, topics_or_all, group.member_id, group.member_epoch))
    return found


def _single(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
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


# --- one group


def _read_or_refuse(call: Call, asked: Asked, require_stable: bool) -> OffsetFetchResponseGroup:
    try:
        return _read(call, asked, require_stable)
    except Refused as refused:
        return _no(asked, refused.code)


def _no(asked: Asked, code: int) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=code)


def _read(call: Call, asked: Asked, require_stable: bool) -> OffsetFetchResponseGroup:
    if not call.allowed("DESCRIBE", f"Group:{asked.group_id}"):
        raise Refused(GROUP_AUTHORIZATION_FAILED)
    if call.version == 0:
        kept = [_from_zookeeper(call, asked.group_id, topic) for topic in asked.topics or ()]
        return OffsetFetchResponseGroup(group_id=asked.group_id, topics=kept)
    group = call.broker.groups.find(asked.group_id, nameless=True)
    if group is not None and group.state_name == State.DEAD.value:
        group = None  # S0-35
    if group is not None:
        group.check_fetch(asked.member_id, asked.member_epoch)
    topics = _all_topics(call, group) if asked.topics is None else asked.topics
    rows = [_topic(call, group, topic, require_stable) for topic in topics]
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=rows)


def _all_topics(call: Call, group: Group | None) -> list[AskedTopic]:
    """All that the group has offsets of and the client may see. Spec: S0-36, S0-59."""
    numbers: dict[str, list[int]] = {}
    for tp in sorted(_known(group)):
        if call.allowed("DESCRIBE", f"Topic:{tp.topic}"):
            numbers.setdefault(tp.topic, []).append(tp.partition)
    found = []
    for name, of_topic in numbers.items():
        topic = call.state.topics.get(name)
        if topic is not None or call.version < BY_ID:
            found.append(AskedTopic(name, ZERO_UUID if topic is None else topic.topic_id, of_topic))
    return found


def _known(group: Group | None) -> list[TopicPartition]:
    if group is None:
        return []
    waiting = [tp for offsets in group.offsets.pending.values() for tp in offsets]
    return list({**group.offsets.committed, **dict.fromkeys(waiting)})


def _topic(
    call: Call, group: Group | None, topic: AskedTopic, require_stable: bool
) -> OffsetFetchResponseTopics:
    name, problem = topic.name, NONE
    if call.version >= BY_ID:
        found = call.state.topic_of_id(topic.topic_id)
        name, problem = (found.name, NONE) if found is not None else ("", UNKNOWN_TOPIC_ID)
    if problem == NONE and not call.allowed("DESCRIBE", f"Topic:{name}"):
        problem = TOPIC_AUTHORIZATION_FAILED
    rows = [
        _partition(call, group, TopicPartition(name, number), require_stable)
        if problem == NONE
        else _nothing(number, problem)
        for number in topic.numbers
    ]
    return OffsetFetchResponseTopics(name=name, topic_id=topic.topic_id, partitions=rows)


def _partition(
    call: Call, group: Group | None, tp: TopicPartition, require_stable: bool
) -> OffsetFetchResponsePartitions:
    """Spec: S0-34, S0-37…S0-39."""
    if group is None:
        return _nothing(tp.partition)
    if require_stable and _unstable(call, group, tp):
        return _nothing(tp.partition, UNSTABLE_OFFSET_COMMIT)
    commit = group.offsets.committed.get(tp)
    if commit is None:
        return _nothing(tp.partition)
    return OffsetFetchResponsePartitions(
        partition_index=tp.partition,
        committed_offset=commit.offset,
        committed_leader_epoch=commit.leader_epoch,
        metadata=commit.metadata,
    )


def _unstable(call: Call, group: Group, tp: TopicPartition) -> bool:
    """Coordinators up to 3.9 also wait for plain commits that are being written."""
    writing = call.state.release < NEW_COORDINATOR and tp in group.offsets.writing
    return writing or group.offsets.in_transaction(tp)


def _nothing(number: int, code: int = NONE) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=number, committed_offset=NOWHERE, metadata="", error_code=code
    )


def _from_zookeeper(call: Call, group_id: str, topic: AskedTopic) -> OffsetFetchResponseTopics:
    """There no offset and no partition are the same. Spec: S1-01."""
    rows = []
    for number in topic.numbers:
        tp = TopicPartition(topic.name, number)
        offset = call.state.zookeeper_offsets.get((group_id, tp))
        if not call.allowed("DESCRIBE", f"Topic:{topic.name}"):
            rows.append(_nothing(number, TOPIC_AUTHORIZATION_FAILED))
        elif offset is None or call.state.partition(tp) is None:
            rows.append(_nothing(number, UNKNOWN_TOPIC_OR_PARTITION))
        else:
            row = OffsetFetchResponsePartitions(partition_index=number, committed_offset=offset, metadata="")
            rows.append(row)
    return OffsetFetchResponseTopics(name=topic.name, partitions=rows)
