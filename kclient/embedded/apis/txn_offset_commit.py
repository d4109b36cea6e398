"""TxnOffsetCommit: offsets of a group that count when the producer's transaction is committed.

From version 3 on the producer says as which member of the group it commits. From version 5 on (transactions V2,
KIP-890) the coordinator makes the group's partition part of the transaction. From version 6 on topics have ids, and
the response has separate error codes for an unknown group and a stale member epoch.
"""

from __future__ import annotations

from typing import Final

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.classic.group import ClassicGroup
from kclient.embedded.groups.coordinator import Committer, CoordinatorGroup
from kclient.embedded.groups.offsets import CommittedOffset, metadata_too_long
from kclient.embedded.groups.records import commit_record
from kclient.embedded.partition import Partition
from kclient.embedded.releases import Release
from kclient.embedded.request_context import RequestContext
from kclient.embedded.transactions.transaction import ProducerIdAndEpoch
from kclient.embedded.transactions.verification import has_open_transaction, verify_or_add_partition
from kclient.generated.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kclient.generated.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kclient.protocol.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    GROUP_ID_NOT_FOUND,
    ILLEGAL_GENERATION,
    INVALID_PRODUCER_EPOCH,
    NONE,
    NOT_ENOUGH_REPLICAS,
    OFFSET_METADATA_TOO_LARGE,
    STALE_MEMBER_EPOCH,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kclient.protocol.primitives import ZERO_UUID
from kclient.types import TopicPartition

BY_ID: Final = (
    6  # the first version that names topics by id, and the first with the codes of KIP-848's groups
)
V2_SINCE: Final = 5
ABORTABLE_SINCE: Final = 4
LOADING_SINCE: Final = 2  # before that clients did not expect COORDINATOR_LOAD_IN_PROGRESS
VERIFIED_SINCE: Final = Release.parse("3.7")

Asked = dict[TopicPartition, TxnOffsetCommitRequestPartition]
Codes = dict[TopicPartition, int]


async def handle(context: RequestContext, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    """Every partition with its error; one bad partition keeps no other out. KIP-98, KIP-447, KIP-890."""
    if not context.allowed("WRITE", f"TransactionalId:{request.transactional_id}"):
        raise ApiError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not context.allowed("READ", f"Group:{request.group_id}"):
        raise ApiError(GROUP_AUTHORIZATION_FAILED)
    asked = _asked(context, request)
    codes = {tp: _problem(context, tp) for tp in asked}
    known = {tp: row for tp, row in asked.items() if not codes[tp]}
    if known:
        try:
            codes |= await _commit(context, request, known)
        except ApiError as exc:
            codes |= dict.fromkeys(known, _code(context, exc))
    return _answer(context, request, codes, UNKNOWN_TOPIC_ID)


def error_response(
    context: RequestContext, request: TxnOffsetCommitRequest, error: ApiError
) -> TxnOffsetCommitResponse:
    """Return the error code for every partition."""
    return _answer(context, request, {}, _code(context, error))


def _code(context: RequestContext, error: ApiError) -> int:
    if error.code == NOT_ENOUGH_REPLICAS or (
        error.code == COORDINATOR_LOAD_IN_PROGRESS and context.version < LOADING_SINCE
    ):
        return COORDINATOR_NOT_AVAILABLE
    if error.code in (STALE_MEMBER_EPOCH, GROUP_ID_NOT_FOUND) and context.version < BY_ID:
        return ILLEGAL_GENERATION
    return error.code


def _asked(context: RequestContext, request: TxnOffsetCommitRequest) -> Asked:
    """What is to be committed, of the topics that exist."""
    return {
        TopicPartition(name, row.partition_index): row
        for topic in request.topics
        if (name := _name(context, topic)) is not None
        for row in topic.partitions
    }


def _name(context: RequestContext, topic: TxnOffsetCommitRequestTopic) -> str | None:
    """The topic's name; None for an id that no topic has."""
    if context.version < BY_ID:
        return topic.name
    found = context.state.topic_of_id(topic.topic_id)
    return None if found is None else found.name


def _problem(context: RequestContext, tp: TopicPartition) -> int:
    if not context.allowed("READ", f"Topic:{tp.topic}"):
        return TOPIC_AUTHORIZATION_FAILED
    return NONE if context.state.partition(tp) is not None else UNKNOWN_TOPIC_OR_PARTITION


async def _commit(context: RequestContext, request: TxnOffsetCommitRequest, rows: Asked) -> Codes:
    """Write the offsets into the transaction. Raise ApiError if none is taken."""
    coordinator, group_id = context.groups, request.group_id
    partition = coordinator.check(group_id)
    _verify_group_partition(context, request, partition)
    committer = Committer(
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        context.version,
        transactional=True,
    )
    group = _group(context, group_id, committer)
    group.check_commit(committer, list(rows))
    _check_epoch(request, partition)
    long = [
        tp for tp, row in rows.items() if metadata_too_long(context.state.settings, row.committed_metadata)
    ]
    commits = {tp: _new(context, tp, row) for tp, row in rows.items() if tp not in long}
    if commits:
        records = [commit_record(context.state.release, group_id, tp, one) for tp, one in commits.items()]
        stored = coordinator.write(
            group_id, records, producer_id=request.producer_id, producer_epoch=request.producer_epoch
        )
        for at, (tp, commit) in enumerate(commits.items(), stored.base_offset):
            group.offsets.pend(request.producer_id, tp, attrs.evolve(commit, at=at))
        coordinator.groups[group_id] = group
        await coordinator.replicated(group_id, stored)
    return dict.fromkeys(commits, NONE) | dict.fromkeys(long, OFFSET_METADATA_TOO_LARGE)


def _verify_group_partition(
    context: RequestContext, request: TxnOffsetCommitRequest, partition: Partition
) -> None:
    """Verify that the group's partition is part of the transaction."""
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    adds = context.version >= V2_SINCE
    if not has_open_transaction(partition, producer) and (adds or context.state.release >= VERIFIED_SINCE):
        verify_or_add_partition(
            context.state,
            request.transactional_id,
            producer,
            partition.tp,
            adds=adds,
            knows_abortable=context.version >= ABORTABLE_SINCE,
        )


def _check_epoch(request: TxnOffsetCommitRequest, partition: Partition) -> None:
    """Raise ApiError for a producer epoch older than that of the log."""
    known = partition.log.producers.known.get(request.producer_id)
    if known is not None and known.epoch > request.producer_epoch:
        raise ApiError(INVALID_PRODUCER_EPOCH)


def _group(context: RequestContext, group_id: str, committer: Committer) -> CoordinatorGroup:
    """Return the group; the first commit without membership creates one."""
    group = context.groups.find(group_id)
    if group is not None:
        return group
    if committer.generation >= 0:
        raise ApiError(GROUP_ID_NOT_FOUND)
    return ClassicGroup(context.groups, group_id)


def _new(
    context: RequestContext, tp: TopicPartition, row: TxnOffsetCommitRequestPartition
) -> CommittedOffset:
    topic = context.state.topics.get(tp.topic)
    return CommittedOffset(
        offset=row.committed_offset,
        leader_epoch=row.committed_leader_epoch,
        metadata=row.committed_metadata or "",
        commit_ms=context.state.clock.wall_ms(),
        topic_id=ZERO_UUID if topic is None else topic.topic_id,
    )


def _answer(
    context: RequestContext, request: TxnOffsetCommitRequest, codes: Codes, other: int
) -> TxnOffsetCommitResponse:
    """Every partition with its code; `other` is that of those without one."""
    topics = []
    for topic in request.topics:
        name = _name(context, topic)
        rows = [
            TxnOffsetCommitResponsePartition(
                partition_index=row.partition_index,
                error_code=other
                if name is None
                else codes.get(TopicPartition(name, row.partition_index), other),
            )
            for row in topic.partitions
        ]
        topics.append(TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=rows))
    return TxnOffsetCommitResponse(topics=topics)
