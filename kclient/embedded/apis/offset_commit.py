"""OffsetCommit: store committed offsets of a group.

Version 0 of old brokers kept offsets in ZooKeeper, apart from those of all later versions and without a coordinator.
"""

from __future__ import annotations

from typing import Final

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.classic.group import ClassicGroup
from kclient.embedded.groups.coordinator import NEW_COORDINATOR, Committer, CoordinatorGroup, GroupCoordinator
from kclient.embedded.groups.offsets import CommittedOffset, metadata_too_long
from kclient.embedded.groups.records import commit_record
from kclient.embedded.releases import Release
from kclient.embedded.request_context import RequestContext
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
from kclient.protocol.errors import (
    GROUP_AUTHORIZATION_FAILED,
    GROUP_ID_NOT_FOUND,
    ILLEGAL_GENERATION,
    INVALID_COMMIT_OFFSET_SIZE,
    NONE,
    OFFSET_METADATA_TOO_LARGE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kclient.protocol.primitives import ZERO_UUID
from kclient.types import TopicPartition

BY_ID: Final = 10  # the first version that names topics by id
GROUP_ID_NOT_FOUND_SINCE: Final = 9
RETENTION_OF_GROUPS_SINCE: Final = Release.parse("2.1")

Row = OffsetCommitRequestPartition
Codes = dict[tuple[int, int], int]  # place of topic and partition in the request → error code


async def handle(context: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Every partition with its error; one bad partition keeps no other out."""
    if not context.allowed("READ", f"Group:{request.group_id}"):
        raise ApiError(GROUP_AUTHORIZATION_FAILED)
    codes: Codes = {}
    commits: dict[TopicPartition, Row] = {}
    places: dict[TopicPartition, tuple[int, int]] = {}
    for i, topic in enumerate(request.topics):
        name, problem = _name(context, topic)
        for j, row in enumerate(topic.partitions):
            tp = TopicPartition(name, row.partition_index)
            codes[i, j] = problem or _problem(context, tp)
            if codes[i, j] == NONE:
                commits[tp], places[tp] = row, (i, j)
    if commits:
        done = (
            _keep(context, request, commits)
            if context.version == 0
            else await _commit(context, request, commits)
        )
        for tp, code in done.items():
            codes[places[tp]] = code
    return _answer(request, codes)


def error_response(
    context: RequestContext, request: OffsetCommitRequest, error: ApiError
) -> OffsetCommitResponse:
    """Return the error code for every partition."""
    places = [(i, j) for i, topic in enumerate(request.topics) for j in range(len(topic.partitions))]
    return _answer(request, dict.fromkeys(places, error.code))


def _answer(request: OffsetCommitRequest, codes: Codes) -> OffsetCommitResponse:
    topics = [
        OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetCommitResponsePartition(partition_index=row.partition_index, error_code=codes[i, j])
                for j, row in enumerate(topic.partitions)
            ],
        )
        for i, topic in enumerate(request.topics)
    ]
    return OffsetCommitResponse(topics=topics)


# --- what may be committed


def _name(context: RequestContext, topic: OffsetCommitRequestTopic) -> tuple[str, int]:
    """The topic's name, and what is wrong with all of it."""
    name = topic.name
    if context.version >= BY_ID:
        found = context.state.topic_of_id(topic.topic_id)
        if found is None:
            return "", UNKNOWN_TOPIC_ID
        name = found.name
    return name, NONE if context.allowed("READ", f"Topic:{name}") else TOPIC_AUTHORIZATION_FAILED


def _problem(context: RequestContext, tp: TopicPartition) -> int:
    return NONE if context.state.partition(tp) is not None else UNKNOWN_TOPIC_OR_PARTITION


# --- the commit


def _keep(
    context: RequestContext, request: OffsetCommitRequest, rows: dict[TopicPartition, Row]
) -> dict[TopicPartition, int]:
    """Store version 0 commits, which any broker accepts without a group."""
    codes = {}
    for tp, row in rows.items():
        if metadata_too_long(context.state.settings, row.committed_metadata):
            codes[tp] = OFFSET_METADATA_TOO_LARGE
        else:
            codes[tp] = NONE
            context.state.zookeeper_offsets[request.group_id, tp] = row.committed_offset
    return codes


async def _commit(
    context: RequestContext, request: OffsetCommitRequest, rows: dict[TopicPartition, Row]
) -> dict[TopicPartition, int]:
    coordinator = context.groups
    try:
        group = _group(context, request)
        group.check_commit(_committer(context, request), list(rows))
        settings = context.state.settings
        short = {
            tp: row for tp, row in rows.items() if not metadata_too_long(settings, row.committed_metadata)
        }
        commits = {tp: _new(context, request, tp, row) for tp, row in short.items()}
        if commits:
            await _store(coordinator, group, commits)
    except ApiError as exc:
        return dict.fromkeys(rows, exc.code)
    _tell(context, request, commits)
    return {tp: NONE if tp in commits else OFFSET_METADATA_TOO_LARGE for tp in rows}


def _committer(context: RequestContext, request: OffsetCommitRequest) -> Committer:
    return Committer(
        request.member_id, request.group_instance_id, request.generation_id_or_member_epoch, context.version
    )


def _group(context: RequestContext, request: OffsetCommitRequest) -> CoordinatorGroup:
    """Return the group; the first commit without membership creates one."""
    coordinator = context.groups
    group = coordinator.find(request.group_id, nameless=True)
    if group is not None:
        return group
    if request.generation_id_or_member_epoch >= 0:
        knows_code = context.version >= GROUP_ID_NOT_FOUND_SINCE and context.state.release >= NEW_COORDINATOR
        raise ApiError(GROUP_ID_NOT_FOUND if knows_code else ILLEGAL_GENERATION)
    return ClassicGroup(coordinator, request.group_id)


def _new(
    context: RequestContext, request: OffsetCommitRequest, tp: TopicPartition, row: Row
) -> CommittedOffset:
    """Version 1 may bring the time of the commit, 2 to 4 a retention time. Up to 2.0 every commit has one."""
    now, retention = context.state.clock.wall_ms(), request.retention_time_ms
    if retention < 0 and context.state.release < RETENTION_OF_GROUPS_SINCE:
        retention = context.state.settings.offsets_retention_minutes * 60_000
    topic = context.state.topics.get(tp.topic)
    return CommittedOffset(
        offset=row.committed_offset,
        leader_epoch=row.committed_leader_epoch,
        metadata=row.committed_metadata or "",
        commit_ms=now if row.commit_timestamp < 0 else row.commit_timestamp,
        expire_ms=None if retention < 0 else now + retention,
        topic_id=ZERO_UUID if topic is None or context.version < BY_ID else topic.topic_id,
    )


async def _store(
    coordinator: GroupCoordinator, group: CoordinatorGroup, commits: dict[TopicPartition, CommittedOffset]
) -> None:
    """Write the commits; they are visible when they are on all in-sync replicas. Raise ApiError."""
    release = coordinator.broker.state.release
    too_large = UNKNOWN_SERVER_ERROR if release >= NEW_COORDINATOR else INVALID_COMMIT_OFFSET_SIZE
    records = [commit_record(release, group.group_id, tp, commit) for tp, commit in commits.items()]
    stored = coordinator.write(group.group_id, records, too_large=too_large)
    coordinator.groups.setdefault(group.group_id, group)
    group.offsets.begin(commits)
    try:
        await coordinator.replicated(group.group_id, stored)
        for at, (tp, commit) in enumerate(commits.items(), stored.base_offset):
            group.offsets.put(tp, attrs.evolve(commit, at=at))
    finally:
        group.offsets.end(commits)


def _tell(
    context: RequestContext, request: OffsetCommitRequest, commits: dict[TopicPartition, CommittedOffset]
) -> None:
    offsets = {tp: commit.plain() for tp, commit in commits.items()}
    for observer in context.state.observers if offsets else ():
        observer.committed(
            request.group_id, request.member_id, request.generation_id_or_member_epoch, offsets
        )
