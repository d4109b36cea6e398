"""CreateTopics: each topic checked by itself, made, and described as it came out."""

from __future__ import annotations

from collections import Counter

from kclient.embedded import controller, placement, topic_config
from kclient.embedded.call import Call
from kclient.embedded.forwarding import check_controller
from kclient.embedded.operations import CLUSTER
from kclient.embedded.refusal import Refused
from kclient.embedded.topics import Topic
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


async def handle(call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """One result for each topic, in the order of the request. A timeout of 0 makes them and says so."""
    check_controller(call)
    counted = Counter(topic.name for topic in request.topics)
    results: dict[str, CreatableTopicResult] = {}
    for topic in request.topics:
        try:
            if counted[topic.name] > 1:
                raise Refused(INVALID_REQUEST, "Duplicate topic name.")
            results[topic.name] = _create(call, request, topic)
        except Refused as no:
            results[topic.name] = _failed(topic, no)
    return CreateTopicsResponse(topics=list(results.values()))


def refuse(call: Call, request: CreateTopicsRequest, refused: Refused) -> CreateTopicsResponse:
    """At every topic."""
    return CreateTopicsResponse(topics=[_failed(topic, refused) for topic in request.topics])


def _failed(topic: CreatableTopic, no: Refused) -> CreatableTopicResult:
    return CreatableTopicResult(name=topic.name, error_code=no.code, error_message=no.message)


def _create(call: Call, request: CreateTopicsRequest, asked: CreatableTopic) -> CreatableTopicResult:
    state = call.state
    if not (call.allowed("CREATE", CLUSTER) or call.allowed("CREATE", f"Topic:{asked.name}")):
        raise Refused(TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
    placement.check_name(state, asked.name)
    config = placement.check_config(state, {row.name: row.value for row in asked.configs})
    assignment = _assignment(call, asked)
    if assignment:
        count, replicas = len(assignment), len(assignment[0])
    else:
        replicas = placement.replication_factor(state, asked.replication_factor)
        count = placement.partition_count(state, asked.num_partitions)
    if request.validate_only:
        return _described(call, Topic(asked.name, bytes(16), config=config), count, replicas)
    topic = controller.create_topic(state, asked.name, count, replicas, config, assignment or None)
    if request.timeout_ms <= 0:
        raise Refused(REQUEST_TIMED_OUT)
    return _described(call, topic, count, replicas)


def _assignment(call: Call, asked: CreatableTopic) -> dict[int, list[int]]:
    if not asked.assignments:
        return {}
    if asked.num_partitions != placement.DEFAULT or asked.replication_factor != placement.DEFAULT:
        text = "A manual partition assignment was specified along with a number of partitions or replicas."
        raise Refused(INVALID_REQUEST, text)
    given = {row.partition_index: row.broker_ids for row in asked.assignments}
    if sorted(given) != list(range(len(asked.assignments))):
        text = "Partitions of a manual assignment should be a consecutive 0-based integer sequence."
        raise Refused(INVALID_REPLICA_ASSIGNMENT, text)
    placement.check_assignment(call.state, [given[number] for number in sorted(given)])
    return given


def _described(call: Call, topic: Topic, count: int, replicas: int) -> CreatableTopicResult:
    result = CreatableTopicResult(name=topic.name, topic_id=topic.topic_id, error_message=None)
    if call.version < 5:
        return result
    if not call.allowed("DESCRIBE_CONFIGS", f"Topic:{topic.name}"):
        result.topic_config_error_code, result.configs = TOPIC_AUTHORIZATION_FAILED, None
        return result
    result.num_partitions, result.replication_factor = count, replicas
    result.configs = [
        CreatableTopicConfigs(name=row.name, value=row.value, config_source=row.source)
        for row in topic_config.described(topic.config, call.state.settings, call.state.release)
    ]
    return result
