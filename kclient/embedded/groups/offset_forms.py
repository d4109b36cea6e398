"""The forms of OffsetFetch: one group up to version 7, several from version 8 on; inside, all are asked as several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from kclient.embedded.groups.offsets import Commit
from kclient.generated.offset_fetch_request import OffsetFetchRequest
from kclient.generated.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
)
from kclient.protocol.errors import NONE
from kclient.protocol.primitives import ZERO_UUID

GROUPS: Final = 8  # the first version that asks for several groups
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


def asked_of(request: OffsetFetchRequest, version: int) -> list[Asked]:
    """What is asked, group by group; one group before version 8."""
    if version < GROUPS:
        topics = request.topics
        named = [AskedTopic(topic.name, ZERO_UUID, topic.partition_indexes) for topic in topics or ()]
        return [Asked(request.group_id, None if topics is None else named)]
    found = []
    for group in request.groups:
        rows = [AskedTopic(row.name, row.topic_id, row.partition_indexes) for row in group.topics or ()]
        topics_or_all = None if group.topics is None else rows
        found.append(Asked(group.group_id, topics_or_all, group.member_id, group.member_epoch))
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


def no_offsets(asked: Asked, code: int) -> OffsetFetchResponseGroup:
    """The group's own error."""
    return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=code)


def no_row(number: int, code: int = NONE) -> OffsetFetchResponsePartitions:
    """There is no offset, or none that may be told."""
    return OffsetFetchResponsePartitions(
        partition_index=number, committed_offset=NOWHERE, metadata="", error_code=code
    )


def row_of(number: int, commit: Commit) -> OffsetFetchResponsePartitions:
    """A committed offset."""
    return OffsetFetchResponsePartitions(
        partition_index=number,
        committed_offset=commit.offset,
        committed_leader_epoch=commit.leader_epoch,
        metadata=commit.metadata,
    )
