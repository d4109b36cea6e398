"""FindCoordinator: which broker coordinates a group or a transactional id.

The first request creates the topic of the coordinator, and is answered COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from typing import Final

import attrs

from kclient.embedded import controller
from kclient.embedded.api_error import ApiError
from kclient.embedded.partition import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kclient.embedded.request_context import RequestContext
from kclient.embedded.state import ClusterState
from kclient.generated.find_coordinator_request import FindCoordinatorRequest
from kclient.generated.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kclient.group.offsets_topic import offsets_topic_partition
from kclient.protocol.errors import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    NONE,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    error,
)

MAKING_SECONDS: Final = 0.005  # until every broker knows of a topic that one of them asked for
BATCHED: Final = 4  # the first version that asks for several keys


@attrs.frozen
class CoordinatorType:
    """A type of key: which resource it is to authorization, what a refusal is called, which topic holds it."""

    resource: str
    denied: int
    topic: str


KINDS: Final = {
    0: CoordinatorType("Group", GROUP_AUTHORIZATION_FAILED, OFFSETS_TOPIC),
    1: CoordinatorType("TransactionalId", TRANSACTIONAL_ID_AUTHORIZATION_FAILED, TRANSACTIONS_TOPIC),
}


async def handle(context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """One response for each key; before version 4 there is one key."""
    kind = KINDS.get(request.key_type)
    if kind is None:
        raise ApiError(INVALID_REQUEST)
    if context.version >= BATCHED:
        found = [_find(context, kind, key) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)
    return _single(_find(context, kind, request.key))


def error_response(
    context: RequestContext, request: FindCoordinatorRequest, error: ApiError
) -> FindCoordinatorResponse:
    """Return the error code for every key."""
    if context.version < BATCHED:
        return _single(_nowhere("", error.code))
    rows = [_nowhere(key, error.code) for key in request.coordinator_keys]
    return FindCoordinatorResponse(coordinators=rows)


def _single(row: Coordinator) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        error_code=row.error_code,
        error_message=error(row.error_code).name,
        node_id=row.node_id,
        host=row.host,
        port=row.port,
    )


def _nowhere(key: str, code: int) -> Coordinator:
    return Coordinator(key=key, error_code=code, node_id=-1, host="", port=-1)


def _find(context: RequestContext, kind: CoordinatorType, key: str) -> Coordinator:
    """Return the coordinator; authorization is checked before the topic is created."""
    if not context.allowed("DESCRIBE", f"{kind.resource}:{key}"):
        return _nowhere(key, kind.denied)
    topic = context.state.topics.get(kind.topic)
    if topic is None:
        _make(context.state, kind.topic)
        return _nowhere(key, COORDINATOR_NOT_AVAILABLE)
    partition = topic.partitions[offsets_topic_partition(key, len(topic.partitions))]
    leader = context.state.brokers.get(partition.leader)  # None for NO_LEADER
    address = context.address_of(leader) if leader is not None and leader.up else None
    if leader is None or address is None:
        return _nowhere(key, COORDINATOR_NOT_AVAILABLE)
    host, port = address
    return Coordinator(key=key, error_code=NONE, node_id=leader.node_id, host=host, port=port)


def _make(state: ClusterState, topic: str) -> None:
    """Create the topic; requests meanwhile, at any broker, are answered COORDINATOR_NOT_AVAILABLE."""
    state.clock.call_later(MAKING_SECONDS, lambda: _made(state, topic))


def _made(state: ClusterState, topic: str) -> None:
    controller.create_internal_topic(state, topic)
