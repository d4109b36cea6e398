"""Fetch: records of many partitions, with fetch sessions, answered when there is enough to send."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kclient.change_signal import ChangeSignal, wait_any
from kclient.embedded import request_context
from kclient.embedded.api_error import ApiError
from kclient.embedded.auth import CLUSTER
from kclient.embedded.fetch import READ_COMMITTED, FetchBudget, FetchParams, ends_wait, failed, read, unread
from kclient.embedded.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    BrokerFetchSession,
    CachedPartition,
    FetchSessionCache,
    Key,
)
from kclient.embedded.request_context import RequestContext
from kclient.embedded.state import BrokerState
from kclient.generated.fetch_request import FetchRequest
from kclient.generated.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)
from kclient.protocol.errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
    NONE,
    UNKNOWN_SERVER_ERROR,
)
from kclient.types import TopicPartition

UNLIMITED = 2**31 - 1
SESSIONS_SINCE = 7
IDS_SINCE = 13
READ_UNCOMMITTED = 0
OF_SESSIONS = (FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR)


@attrs.define(eq=False)
class FetchContext:
    """The partitions of one request: those of its session, or its own. `opens`: create a session."""

    wanted: list[CachedPartition]
    session: BrokerFetchSession | None = None
    opens: bool = False


async def handle(context: RequestContext, request: FetchRequest) -> FetchResponse:
    """Read, and wait until there are min_bytes or max_wait_ms is over."""
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        raise ApiError(UNKNOWN_SERVER_ERROR)
    fetch_context = _begin(context, request)
    rows = await _collect(context, request, fetch_context.wanted)
    return _answer(context, request, fetch_context, rows)


def error_response(context: RequestContext, request: FetchRequest, error: ApiError) -> FetchResponse:
    """Return the error code at the top level from v7 on; before v13 also per partition, session errors excepted."""
    named = context.version < IDS_SINCE and error.code not in OF_SESSIONS
    asked = _asked(context, request) if named else ()
    return FetchResponse(
        error_code=error.code if context.version >= SESSIONS_SINCE else NONE,
        responses=_by_topic([(wanted, failed(wanted.asked.partition, error.code)) for wanted in asked]),
    )


def sessions_of(broker: BrokerState) -> FetchSessionCache:
    """Return the fetch session cache of a broker."""
    state = broker.state
    slots = state.settings.max_incremental_fetch_session_cache_slots
    return broker.broker_local(FetchSessionCache, lambda: FetchSessionCache(state.runtime, slots))


# --- sessions


def _begin(context: RequestContext, request: FetchRequest) -> FetchContext:
    asked = list({wanted.key: wanted for wanted in _asked(context, request)}.values())
    if context.version < SESSIONS_SINCE:
        return FetchContext(asked)
    sessions, by_id = sessions_of(context.broker), context.version >= IDS_SINCE
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        sessions.end(request.session_id)
        return FetchContext(asked, opens=request.session_epoch == INITIAL_EPOCH)
    session = sessions.find(request.session_id, request.session_epoch, by_id)
    session.alter(asked, _forgotten(request, by_id))
    if not session.partitions:
        sessions.end(session.session_id)
        return FetchContext(asked)
    sessions.advance(session, context.state.clock.now())
    for wanted in session.partitions.values():
        if wanted.topic is None:
            wanted.topic = _name(context, wanted.topic_id)
    return FetchContext(list(session.partitions.values()), session)


def _asked(context: RequestContext, request: FetchRequest) -> Iterator[CachedPartition]:
    by_id = context.version >= IDS_SINCE
    for topic in request.topics:
        name = _name(context, topic.topic_id) if by_id else topic.topic
        for partition in topic.partitions:
            yield CachedPartition(name, topic.topic_id, partition, by_id)


def _name(context: RequestContext, topic_id: bytes) -> str | None:
    topic = context.state.topic_of_id(topic_id)
    return None if topic is None else topic.name


def _forgotten(request: FetchRequest, by_id: bool) -> Iterator[Key]:
    for topic in request.forgotten_topics_data:
        for number in topic.partitions:
            yield (topic.topic_id if by_id else topic.topic), number


# --- reading and waiting


async def _collect(
    context: RequestContext, request: FetchRequest, wanted: list[CachedPartition]
) -> list[PartitionData]:
    fetcher, expired, timer = _fetcher(context, request), ChangeSignal(), None
    try:
        while True:
            seen = [(changed, changed.count) for changed in _changes(context, wanted)]
            budget = FetchBudget(
                request.max_bytes if context.version >= 3 else UNLIMITED, hard=context.version < 3
            )
            rows = [read(context, fetcher, one, budget) for one in wanted]
            size = sum(len(row.records or b"") for row in rows)
            enough = size >= request.min_bytes or any(map(ends_wait, rows))
            if enough or not rows or request.max_wait_ms <= 0 or expired.count:
                return rows
            timer = timer or context.broker.call_later(request.max_wait_ms / 1000, expired.notify)
            await wait_any(*seen, (expired, 0))
    finally:
        if timer is not None:
            timer.cancel()


def _fetcher(context: RequestContext, request: FetchRequest) -> FetchParams:
    state = request.replica_state
    replica_id = request.replica_id if context.version < 15 or state is None else state.replica_id
    allowed = replica_id < 0 or context.allowed("CLUSTER_ACTION", CLUSTER)
    return FetchParams(replica_id, request.isolation_level, request.rack_id, allowed)


def _changes(context: RequestContext, wanted: list[CachedPartition]) -> Iterator[ChangeSignal]:
    for one in wanted:
        partition = context.state.partition(TopicPartition(one.topic or "", one.asked.partition))
        if partition is not None:
            yield partition.changed


# --- answering


def _answer(
    context: RequestContext, request: FetchRequest, fetch_context: FetchContext, rows: list[PartitionData]
) -> FetchResponse:
    pairs = sorted(zip(fetch_context.wanted, rows, strict=True), key=lambda pair: unread(pair[1]))
    session_id = NO_SESSION
    if fetch_context.session is not None:
        session_id = fetch_context.session.session_id
        pairs = [(wanted, row) for wanted, row in pairs if wanted.is_changed(row)]
        for wanted, row in pairs:
            if row.records:  # partitions with records move to the end, so that others are served first
                fetch_context.session.partitions[wanted.key] = fetch_context.session.partitions.pop(
                    wanted.key
                )
    for wanted, row in pairs:
        wanted.remember(row)
    if fetch_context.opens:
        partitions = {wanted.key: wanted for wanted in fetch_context.wanted}
        privileged = _fetcher(context, request).replica_id >= 0
        by_id, now = context.version >= IDS_SINCE, context.state.clock.now()
        session_id = sessions_of(context.broker).create(partitions, by_id, privileged, now)
    leaders = [row.current_leader.leader_id for row in rows if row.current_leader is not None]
    return FetchResponse(
        session_id=session_id,
        responses=_by_topic(pairs),
        node_endpoints=request_context.endpoints(NodeEndpoint, context, leaders),
    )


def _by_topic(pairs: list[tuple[CachedPartition, PartitionData]]) -> list[FetchableTopicResponse]:
    topics: list[FetchableTopicResponse] = []
    last: tuple[str | None, bytes] | None = None
    for wanted, row in pairs:
        if (wanted.topic, wanted.topic_id) != last:
            last = wanted.topic, wanted.topic_id
            topics.append(FetchableTopicResponse(topic=wanted.topic or "", topic_id=wanted.topic_id))
        topics[-1].partitions.append(row)
    return topics
