"""CreatePartitions: a topic grows; what is in its partitions stays where it is."""

from __future__ import annotations

from collections import Counter

from kclient.embedded import controller
from kclient.embedded.api_error import ApiError
from kclient.embedded.request_context import RequestContext, check_controller
from kclient.generated.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kclient.generated.create_partitions_response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kclient.protocol.errors import (
    INVALID_PARTITIONS,
    INVALID_REPLICA_ASSIGNMENT,
    INVALID_REQUEST,
    REQUEST_TIMED_OUT,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)


async def handle(context: RequestContext, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """One result for each topic."""
    check_controller(context)
    counted = Counter(topic.name for topic in request.topics)
    results: dict[str, CreatePartitionsTopicResult] = {}
    for topic in request.topics:
        results[topic.name] = CreatePartitionsTopicResult(name=topic.name)
        try:
            if counted[topic.name] > 1:
                raise ApiError(INVALID_REQUEST, "Duplicate topic name.")
            _grow(context, request, topic)
        except ApiError as exc:
            results[topic.name] = _failed(topic, exc)
    return CreatePartitionsResponse(results=list(results.values()))


def error_response(
    context: RequestContext, request: CreatePartitionsRequest, error: ApiError
) -> CreatePartitionsResponse:
    """Return the error code for every topic."""
    return CreatePartitionsResponse(results=[_failed(topic, error) for topic in request.topics])


def _failed(topic: CreatePartitionsTopic, no: ApiError) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=topic.name, error_code=no.code, error_message=no.message)


def _grow(context: RequestContext, request: CreatePartitionsRequest, asked: CreatePartitionsTopic) -> None:
    state, topic = context.state, context.state.topics.get(asked.name)
    if not context.allowed("ALTER", f"Topic:{asked.name}"):
        raise ApiError(TOPIC_AUTHORIZATION_FAILED, "The topic authorization is failed.")
    if topic is None:
        raise ApiError(UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{asked.name}' does not exist.")
    before = len(topic.partitions)
    if asked.count <= before:
        text = f"The topic {topic.name} currently has {before} partition(s); {asked.count} would not be an increase."
        raise ApiError(INVALID_PARTITIONS, text)
    replicas = len(topic.partitions[0].replicas)
    assignment = None
    if asked.assignments is not None:
        given = [row.broker_ids for row in asked.assignments]
        if len(given) != asked.count - before or any(len(nodes) != replicas for nodes in given):
            text = (
                f"Increasing by {asked.count - before} partition(s) but {len(given)} assignment(s) provided."
            )
            raise ApiError(INVALID_REPLICA_ASSIGNMENT, text)
        controller.check_assignment(state, given)
        assignment = dict(enumerate(given, before))
    if assignment is None:
        controller.replication_factor(state, replicas)
    if request.validate_only:
        return
    controller.add_partitions(state, topic, asked.count, replicas, assignment)
    if request.timeout_ms <= 0:
        raise ApiError(REQUEST_TIMED_OUT)
