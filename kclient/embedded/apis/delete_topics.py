"""DeleteTopics, by name or, from version 6 on, by id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kclient.embedded import controller
from kclient.embedded.api_error import ApiError
from kclient.embedded.request_context import RequestContext, check_controller, forwards
from kclient.generated.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kclient.generated.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from kclient.protocol.errors import (
    INVALID_REQUEST,
    REQUEST_TIMED_OUT,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kclient.protocol.primitives import ZERO_UUID


async def handle(context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """One result for each topic. Who waits on a partition of it is answered."""
    check_controller(context)
    asked = list(_asked(context, request))
    counted = Counter(map(_key, asked))
    answered: dict[tuple[str | None, bytes], DeletableTopicResult] = {}
    for one in asked:
        if _key(one) not in answered:
            try:
                if counted[_key(one)] > 1 and forwards(context):
                    raise ApiError(INVALID_REQUEST, "Duplicate topic name.")
                answered[_key(one)] = _delete(context, request, one)
            except ApiError as exc:
                answered[_key(one)] = _failed(one, exc)
    rows = list(answered.values()) if forwards(context) else [answered[_key(one)] for one in asked]
    return DeleteTopicsResponse(responses=rows)


def error_response(
    context: RequestContext, request: DeleteTopicsRequest, error: ApiError
) -> DeleteTopicsResponse:
    """Return the error code for every topic."""
    return DeleteTopicsResponse(responses=[_failed(one, error) for one in _asked(context, request)])


def _asked(context: RequestContext, request: DeleteTopicsRequest) -> Iterator[DeleteTopicState]:
    if context.version >= 6:
        yield from request.topics
    else:
        yield from (DeleteTopicState(name=name) for name in request.topic_names)


def _key(asked: DeleteTopicState) -> tuple[str | None, bytes]:
    return asked.name, asked.topic_id


def _failed(asked: DeleteTopicState, no: ApiError) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=asked.name, topic_id=asked.topic_id, error_code=no.code, error_message=no.message
    )


def _delete(
    context: RequestContext, request: DeleteTopicsRequest, asked: DeleteTopicState
) -> DeletableTopicResult:
    state, by_id = context.state, asked.name is None
    if (asked.name is None) == (asked.topic_id == ZERO_UUID):
        raise ApiError(INVALID_REQUEST, "Give a topic's name or its id, not both.")
    topic = state.topic_of_id(asked.topic_id) if by_id else state.topics.get(asked.name or "")
    if topic is None and by_id:
        raise ApiError(UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
    if not context.allowed("DELETE", f"Topic:{topic.name if topic else asked.name}"):
        raise ApiError(TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
    if topic is None:
        raise ApiError(UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    controller.delete_topic(state, topic)
    if request.timeout_ms <= 0:
        raise ApiError(REQUEST_TIMED_OUT)
    topic_id = topic.topic_id if by_id or forwards(context) else ZERO_UUID
    return DeletableTopicResult(name=topic.name, topic_id=topic_id)
