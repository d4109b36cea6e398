"""Metadata: the brokers that are up, and topics with their leaders, as one listener's clients see them."""

from __future__ import annotations

from kclient.embedded import controller
from kclient.embedded.api_error import ApiError
from kclient.embedded.auth import (
    CLUSTER,
    NOT_ASKED,
    OF_CLUSTER,
    OF_TOPIC,
)
from kclient.embedded.partition import NO_LEADER, OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Partition, Topic
from kclient.embedded.request_context import RequestContext, forwards
from kclient.generated.metadata_request import MetadataRequest
from kclient.generated.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.network.metadata import is_legal_topic
from kclient.protocol.errors import (
    COORDINATOR_NOT_AVAILABLE,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    LEADER_NOT_AVAILABLE,
    NONE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kclient.protocol.primitives import ZERO_UUID

IDS_SINCE = 12


async def handle(context: RequestContext, request: MetadataRequest) -> MetadataResponse:
    """What was asked for; topics that are missing are made if broker and client allow it."""
    state = context.state
    topics = sorted(_topics(context, request), key=lambda topic: topic.error_code != NONE)
    if request.include_topic_authorized_operations:
        for topic in topics:
            resource = f"Topic:{topic.name}"
            topic.topic_authorized_operations = context.authorized_operations(OF_TOPIC, resource)
    asked = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=_brokers(context),
        cluster_id=state.cluster_id,
        controller_id=state.controller_id,
        topics=topics,
        cluster_authorized_operations=context.authorized_operations(OF_CLUSTER, CLUSTER)
        if asked
        else NOT_ASKED,
    )


def error_response(context: RequestContext, request: MetadataRequest, error: ApiError) -> MetadataResponse:
    """Return the error code at the top level from version 13 on, and for every requested topic."""
    topics = [
        MetadataResponseTopic(error_code=error.code, name=topic.name or "", topic_id=topic.topic_id)
        for topic in request.topics or ()
    ]
    code = error.code if context.version >= 13 else NONE
    return MetadataResponse(brokers=_brokers(context), topics=topics, error_code=code)


def _brokers(context: RequestContext) -> list[MetadataResponseBroker]:
    return [
        MetadataResponseBroker(node_id=broker.node_id, host=host, port=port, rack=broker.rack)
        for broker, host, port in context.brokers()
    ]


def _topics(context: RequestContext, request: MetadataRequest) -> list[MetadataResponseTopic]:
    state, asked = context.state, request.topics
    if asked is None or (context.version == 0 and not asked):
        seen = [
            topic for topic in state.topics.values() if context.allowed("DESCRIBE", f"Topic:{topic.name}")
        ]
        return [_described(context, topic) for topic in seen]
    if context.version < IDS_SINCE and any(one.name is None or one.topic_id != ZERO_UUID for one in asked):
        raise ApiError(INVALID_REQUEST)
    answers = []
    for one in {(one.name, one.topic_id): one for one in asked}.values():
        if one.name is None:
            answers.append(_by_id(context, one.topic_id))
        else:
            answers.append(_by_name(context, one.name, request.allow_auto_topic_creation))
    return answers


def _by_id(context: RequestContext, topic_id: bytes) -> MetadataResponseTopic:
    topic = context.state.topic_of_id(topic_id)
    if topic is None:
        return MetadataResponseTopic(error_code=UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
    if not context.allowed("DESCRIBE", f"Topic:{topic.name}"):
        return MetadataResponseTopic(error_code=TOPIC_AUTHORIZATION_FAILED, name=None, topic_id=topic_id)
    return _described(context, topic)


def _by_name(context: RequestContext, name: str, may_create: bool) -> MetadataResponseTopic:
    state = context.state
    if not context.allowed("DESCRIBE", f"Topic:{name}"):
        return MetadataResponseTopic(error_code=TOPIC_AUTHORIZATION_FAILED, name=name)
    if (topic := state.topics.get(name)) is not None:
        return _described(context, topic)
    if not is_legal_topic(name):
        return MetadataResponseTopic(error_code=INVALID_TOPIC_EXCEPTION, name=name)
    if not (
        may_create and state.settings.auto_create_topics_enable and context.allowed("CREATE", f"Topic:{name}")
    ):
        return MetadataResponseTopic(error_code=UNKNOWN_TOPIC_OR_PARTITION, name=name)
    return MetadataResponseTopic(error_code=_created(context, name), name=name, is_internal=_internal(name))


def _created(context: RequestContext, name: str) -> int:
    """Make it; the first response says that it has no leader yet."""
    settings = context.state.settings
    if _internal(name):
        made = controller.create_internal_topic(context.state, name)
        return COORDINATOR_NOT_AVAILABLE if made is None else LEADER_NOT_AVAILABLE
    replicas = min(settings.default_replication_factor, len(context.state.alive()))
    controller.create_topic(context.state, name, settings.num_partitions, replicas)
    return UNKNOWN_TOPIC_OR_PARTITION if forwards(context) else LEADER_NOT_AVAILABLE


def _internal(name: str) -> bool:
    return name in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)


def _described(context: RequestContext, topic: Topic) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id if context.version >= 10 else ZERO_UUID,
        is_internal=topic.internal,
        partitions=[_partition(context, partition) for partition in topic.partitions],
    )


def _partition(context: RequestContext, partition: Partition) -> MetadataResponsePartition:
    state = context.state
    return MetadataResponsePartition(
        error_code=LEADER_NOT_AVAILABLE if partition.leader == NO_LEADER else NONE,
        partition_index=partition.number,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=[
            node for node in partition.replicas if not state.brokers[node].up or node in partition.offline
        ],
    )
