"""OffsetCommit and OffsetFetch in whatever version: topics by name or by id, one group or several."""

from __future__ import annotations

from typing import Any, NamedTuple

from kclient.generated.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kclient.generated.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.conformance.target import Target

BY_ID = 10  # from this version of both on topics are named by their ids
SEVERAL = 8  # and from this one OffsetFetch asks for several groups


class Committed(NamedTuple):
    """What OffsetFetch says of one partition."""

    offset: int
    leader_epoch: int
    metadata: str | None
    error_code: int


NOTHING = Committed(-1, -1, "", 0)


def commit_request(
    target: Target,
    group: str,
    topic: str,
    version: int,
    offset: int = 7,
    metadata: str | None = "",
    **fields: Any,
) -> OffsetCommitRequest:
    """A commit for partition 0, or for `partitions` (numbers), of one topic."""
    numbers = fields.pop("partitions", [0])
    leader_epoch = fields.pop("leader_epoch", -1)
    named = {"topic_id": target.topic_id(topic)} if version >= BY_ID else {"name": topic}
    rows = [
        OffsetCommitRequestPartition(
            partition_index=number,
            committed_offset=offset,
            committed_leader_epoch=leader_epoch,
            committed_metadata=metadata,
        )
        for number in numbers
    ]
    return OffsetCommitRequest(
        group_id=group, topics=[OffsetCommitRequestTopic(partitions=rows, **named)], **fields
    )


def commit(target: Target, group: str, topic: str, version: int | None = None, **details: Any) -> int:
    """Commit for one partition: its error code."""
    version = target.newest("OffsetCommit") if version is None else version
    response = target.ask(
        commit_request(target, target.coordinated(group), topic, version, **details), version
    )
    [row] = response.topics
    [partition] = row.partitions
    return int(partition.error_code)


def fetch_answer(
    target: Target,
    group: str,
    topics: dict[str, list[int]] | None,
    version: int | None = None,
    require_stable: bool = False,
    **member: Any,
) -> Any:
    """The response about one group: it has `error_code` and `topics`, whatever the version."""
    version = target.newest("OffsetFetch") if version is None else version
    target.coordinated(group)
    stable = {"require_stable": require_stable} if version >= 7 else {}
    if version < SEVERAL:
        rows = [
            OffsetFetchRequestTopic(name=name, partition_indexes=asked)
            for name, asked in (topics or {}).items()
        ]
        return target.ask(
            OffsetFetchRequest(group_id=group, topics=None if topics is None else rows, **stable), version
        )
    named = [
        OffsetFetchRequestTopics(
            partition_indexes=asked,
            **({"topic_id": target.topic_id(name)} if version >= BY_ID else {"name": name}),
        )
        for name, asked in (topics or {}).items()
    ]
    wanted = OffsetFetchRequestGroup(group_id=group, topics=None if topics is None else named, **member)
    [response] = target.ask(OffsetFetchRequest(groups=[wanted], **stable), version).groups
    assert response.group_id == group
    return response


def rows_of(response: Any) -> dict[int, Committed]:
    """Partition → what was committed, of the only topic in a response."""
    [topic] = response.topics
    return {
        row.partition_index: Committed(
            row.committed_offset, row.committed_leader_epoch, row.metadata, row.error_code
        )
        for row in topic.partitions
    }


def committed(
    target: Target, group: str, topic: str, version: int | None = None, **details: Any
) -> Committed:
    """What is committed for partition 0 of a topic."""
    response = fetch_answer(target, group, {topic: [0]}, version, **details)
    assert response.error_code == 0, response
    return rows_of(response)[0]
