"""Fetch: records of many partitions, within sessions, and held back until there is enough to send."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from kclient.change_signal import ChangeSignal, wait_any
from kclient.embedded import request_context
from kclient.embedded.api_error import ApiError
from kclient.embedded.auth import CLUSTER
from kclient.embedded.broker import Broker
from kclient.embedded.fetch import READ_COMMITTED, Budget, Fetcher, ends_wait, failed, read, unread
from kclient.embedded.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    Key,
    Session,
    Sessions,
    Wanted,
)
from kclient.embedded.request_context import RequestContext
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
class Conversation:
    """What one request fetches: all of its session, or what it names. `opens` asks for a new session."""

    wanted: list[Wanted]
    session: Session | None = None
    opens: bool = False


async def handle(call: RequestContext, request: FetchRequest) -> FetchResponse:
    """Read, and wait for more while there is too little."""
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        raise ApiError(UNKNOWN_SERVER_ERROR)
    talk = _begin(call, request)
    rows = await _collect(call, request, talk.wanted)
    return _answer(call, request, talk, rows)


def refuse(call: RequestContext, request: FetchRequest, refused: ApiError) -> FetchResponse:
    """At the top from v7 on; before v13 at every partition too, unless the session is at fault."""
    named = call.version < IDS_SINCE and refused.code not in OF_SESSIONS
    asked = _asked(call, request) if named else ()
    return FetchResponse(
        error_code=refused.code if call.version >= SESSIONS_SINCE else NONE,
        responses=_by_topic([(wanted, failed(wanted.asked.partition, refused.code)) for wanted in asked]),
    )


def sessions_of(broker: Broker) -> Sessions:
    """The fetch sessions that a broker remembers until it dies."""
    state = broker.state
    slots = state.settings.max_incremental_fetch_session_cache_slots
    return broker.recall(Sessions, lambda: Sessions(state.runtime, slots))


# --- sessions


def _begin(call: RequestContext, request: FetchRequest) -> Conversation:
    asked = list({wanted.key: wanted for wanted in _asked(call, request)}.values())
    if call.version < SESSIONS_SINCE:
        return Conversation(asked)
    sessions, by_id = sessions_of(call.broker), call.version >= IDS_SINCE
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        sessions.end(request.session_id)
        return Conversation(asked, opens=request.session_epoch == INITIAL_EPOCH)
    session = sessions.find(request.session_id, request.session_epoch, by_id)
    session.alter(asked, _forgotten(request, by_id))
    if not session.partitions:
        sessions.end(session.session_id)
        return Conversation(asked)
    sessions.advance(session, call.state.clock.now())
    for wanted in session.partitions.values():
        if wanted.topic is None:
            wanted.topic = _name(call, wanted.topic_id)
    return Conversation(list(session.partitions.values()), session)


def _asked(call: RequestContext, request: FetchRequest) -> Iterator[Wanted]:
    by_id = call.version >= IDS_SINCE
    for topic in request.topics:
        name = _name(call, topic.topic_id) if by_id else topic.topic
        for partition in topic.partitions:
            yield Wanted(name, topic.topic_id, partition, by_id)


def _name(call: RequestContext, topic_id: bytes) -> str | None:
    topic = call.state.topic_of_id(topic_id)
    return None if topic is None else topic.name


def _forgotten(request: FetchRequest, by_id: bool) -> Iterator[Key]:
    for topic in request.forgotten_topics_data:
        for number in topic.partitions:
            yield (topic.topic_id if by_id else topic.topic), number


# --- reading and waiting


async def _collect(call: RequestContext, request: FetchRequest, wanted: list[Wanted]) -> list[PartitionData]:
    fetcher, expired, timer = _fetcher(call, request), ChangeSignal(), None
    try:
        while True:
            seen = [(changed, changed.count) for changed in _changes(call, wanted)]
            budget = Budget(request.max_bytes if call.version >= 3 else UNLIMITED, hard=call.version < 3)
            rows = [read(call, fetcher, one, budget) for one in wanted]
            size = sum(len(row.records or b"") for row in rows)
            enough = size >= request.min_bytes or any(map(ends_wait, rows))
            if enough or not rows or request.max_wait_ms <= 0 or expired.count:
                return rows
            timer = timer or call.broker.call_later(request.max_wait_ms / 1000, expired.notify)
            await wait_any(*seen, (expired, 0))
    finally:
        if timer is not None:
            timer.cancel()


def _fetcher(call: RequestContext, request: FetchRequest) -> Fetcher:
    state = request.replica_state
    replica_id = request.replica_id if call.version < 15 or state is None else state.replica_id
    allowed = replica_id < 0 or call.allowed("CLUSTER_ACTION", CLUSTER)
    return Fetcher(replica_id, request.isolation_level, request.rack_id, allowed)


def _changes(call: RequestContext, wanted: list[Wanted]) -> Iterator[ChangeSignal]:
    for one in wanted:
        partition = call.state.partition(TopicPartition(one.topic or "", one.asked.partition))
        if partition is not None:
            yield partition.changed


# --- answering


def _answer(
    call: RequestContext, request: FetchRequest, talk: Conversation, rows: list[PartitionData]
) -> FetchResponse:
    pairs = sorted(zip(talk.wanted, rows, strict=True), key=lambda pair: unread(pair[1]))
    session_id = NO_SESSION
    if talk.session is not None:
        session_id = talk.session.session_id
        pairs = [(wanted, row) for wanted, row in pairs if wanted.is_news(row)]
        for wanted, row in pairs:
            if row.records:  # it had its turn
                talk.session.partitions[wanted.key] = talk.session.partitions.pop(wanted.key)
    for wanted, row in pairs:
        wanted.remember(row)
    if talk.opens:
        partitions = {wanted.key: wanted for wanted in talk.wanted}
        privileged = _fetcher(call, request).replica_id >= 0
        by_id, now = call.version >= IDS_SINCE, call.state.clock.now()
        session_id = sessions_of(call.broker).create(partitions, by_id, privileged, now)
    leaders = [row.current_leader.leader_id for row in rows if row.current_leader is not None]
    return FetchResponse(
        session_id=session_id,
        responses=_by_topic(pairs),
        node_endpoints=request_context.endpoints(NodeEndpoint, call, leaders),
    )


def _by_topic(pairs: list[tuple[Wanted, PartitionData]]) -> list[FetchableTopicResponse]:
    topics: list[FetchableTopicResponse] = []
    last: tuple[str | None, bytes] | None = None
    for wanted, row in pairs:
        if (wanted.topic, wanted.topic_id) != last:
            last = wanted.topic, wanted.topic_id
            topics.append(FetchableTopicResponse(topic=wanted.topic or "", topic_id=wanted.topic_id))
        topics[-1].partitions.append(row)
    return topics
