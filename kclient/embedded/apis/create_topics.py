"""CreateTopics: each topic is validated separately, created, and described."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kclient.embedded import controller, topic_config
from kclient.embedded.api_error import ApiError
from kclient.embedded.auth import CLUSTER
from kclient.embedded.request_context import RequestContext, check_controller, forwards
from kclient.generated.create_topics_request import CreatableTopic, CreateTopicsRequest
from kclient.generated.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from kclient.protocol.errors import (
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REQUEST,
    REQUEST_TIMED_OUT,
    TOPIC_AUTHORIZATION_FAILED,
)
from kclient.protocol.primitives import ZERO_UUID


async def handle(context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """One result for each topic. A timeout of 0 is over at once; with ZooKeeper they are made all the same."""
    check_controller(context)
    counted = Counter(topic.name for topic in request.topics)
    asked = (
        request.topics if not forwards(context) else list({one.name: one for one in request.topics}.values())
    )
    rows = []
    for topic in asked:
        row = CreatableTopicResult(name=topic.name, error_message=None)
        try:
            if counted[topic.name] > 1:
                raise ApiError(INVALID_REQUEST, "Duplicate topic name.")
            _create(context, request, topic, row)
        except ApiError as exc:
            row.error_code, row.error_message = exc.code, exc.message
        rows.append(row)
    return CreateTopicsResponse(topics=rows)


def error_response(
    context: RequestContext, request: CreateTopicsRequest, error: ApiError
) -> CreateTopicsResponse:
    """Return the error code for every topic."""
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            for topic in request.topics
        ]
    )


def _create(
    context: RequestContext, request: CreateTopicsRequest, asked: CreatableTopic, row: CreatableTopicResult
) -> None:
    state = context.state
    if not (context.allowed("CREATE", CLUSTER) or context.allowed("CREATE", f"Topic:{asked.name}")):
        raise ApiError(TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
    controller.check_name(state, asked.name)
    config = controller.check_config(state, {one.name: one.value for one in asked.configs})
    assignment = _assignment(context, asked)
    if assignment:
        count, replicas = len(assignment), len(assignment[0])
    else:
        replicas = controller.replication_factor(state, asked.replication_factor)
        count = controller.partition_count(state, asked.num_partitions)
    if request.timeout_ms <= 0 and forwards(context):
        raise ApiError(REQUEST_TIMED_OUT)
    if request.validate_only:
        row.topic_id = state.new_id() if forwards(context) else ZERO_UUID
    else:
        row.topic_id = controller.create_topic(
            state, asked.name, count, replicas, config, assignment or None
        ).topic_id
    if request.timeout_ms <= 0:
        raise ApiError(REQUEST_TIMED_OUT)
    _describe(context, row, config, count, replicas)


def _assignment(context: RequestContext, asked: CreatableTopic) -> dict[int, list[int]]:
    if not asked.assignments:
        return {}
    if asked.num_partitions != controller.DEFAULT or asked.replication_factor != controller.DEFAULT:
        text = "A manual partition assignment was specified along with a number of partitions or replicas."
        raise ApiError(INVALID_REQUEST, text)
    given = {row.partition_index: row.broker_ids for row in asked.assignments}
    if sorted(given) != list(range(len(asked.assignments))):
        text = "Partitions of a manual assignment should be a consecutive 0-based integer sequence."
        raise ApiError(INVALID_REPLICA_ASSIGNMENT, text)
    controller.check_assignment(context.state, [given[number] for number in sorted(given)])
    return given


def _describe(
    context: RequestContext, row: CreatableTopicResult, config: Mapping[str, str], count: int, replicas: int
) -> None:
    if context.version < 5:
        return
    if not context.allowed("DESCRIBE_CONFIGS", f"Topic:{row.name}"):
        row.topic_config_error_code, row.configs = TOPIC_AUTHORIZATION_FAILED, None
        return
    row.num_partitions, row.replication_factor = count, replicas
    row.configs = [
        CreatableTopicConfigs(name=one.name, value=one.value, config_source=one.source)
        for one in topic_config.described(config, context.state.settings, context.state.release)
    ]
