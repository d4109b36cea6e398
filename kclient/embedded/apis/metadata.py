"""Metadata: the brokers that are up, and topics with their leaders, as one listener's clients see them."""

from __future__ import annotations

from kclient.embedded import controller
from kclient.embedded.api_error import ApiError
from kclient.embedded.auth import (
    CLUSTER,
    NOT_ASKED,
    OF_CLUSTER,
    OF_TOPIC,
    authorized_operations,
)
from kclient.embedded.controller import forwards
from kclient.embedded.request_context import RequestContext
from kclient.embedded.state import NO_LEADER, OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Partition, Topic
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


async def handle(call: RequestContext, request: MetadataRequest) -> MetadataResponse:
    """What was asked for; topics that are missing are made if broker and client allow it."""
    state = call.state
    topics = sorted(_topics(call, request), key=lambda topic: topic.error_code != NONE)
    if request.include_topic_authorized_operations:
        for topic in topics:
            resource = f"Topic:{topic.name}"
            topic.topic_authorized_operations = authorized_operations(call, OF_TOPIC, resource)
    asked = request.include_cluster_authorized_operations
    return MetadataResponse(
        brokers=_brokers(call),
        cluster_id=state.cluster_id,
        controller_id=state.controller_id,
        topics=topics,
        cluster_authorized_operations=authorized_operations(call, OF_CLUSTER, CLUSTER)
        if asked
        else NOT_ASKED,
    )


def refuse(call: RequestContext, request: MetadataRequest, refused: ApiError) -> MetadataResponse:
    """At the top where there is room, else at every topic that was asked for."""
    topics = [
        MetadataResponseTopic(error_code=refused.code, name=topic.name or "", topic_id=topic.topic_id)
        for topic in request.topics or ()
    ]
    error = refused.code if call.version >= 13 else NONE
    return MetadataResponse(brokers=_brokers(call), topics=topics, error_code=error)


def _brokers(call: RequestContext) -> list[MetadataResponseBroker]:
    return [
        MetadataResponseBroker(node_id=broker.node_id, host=host, port=port, rack=broker.rack)
        for broker, host, port in call.brokers()
    ]


def _topics(call: RequestContext, request: MetadataRequest) -> list[MetadataResponseTopic]:
    state, asked = call.state, request.topics
    if asked is None or (call.version == 0 and not asked):
        seen = [topic for topic in state.topics.values() if call.allowed("DESCRIBE", f"Topic:{topic.name}")]
        return [_described(call, topic) for topic in seen]
    if call.version < IDS_SINCE and any(one.name is None or one.topic_id != ZERO_UUID for one in asked):
        raise ApiError(INVALID_REQUEST)
    answers = []
    for one in {(one.name, one.topic_id): one for one in asked}.values():
        if one.name is None:
            answers.append(_by_id(call, one.topic_id))
        else:
            answers.append(_by_name(call, one.name, request.allow_auto_topic_creation))
    return answers


def _by_id(call: RequestContext, topic_id: bytes) -> MetadataResponseTopic:
    topic = call.state.topic_of_id(topic_id)
    if topic is None:
        return MetadataResponseTopic(error_code=UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
    if not call.allowed("DESCRIBE", f"Topic:{topic.name}"):
        return MetadataResponseTopic(error_code=TOPIC_AUTHORIZATION_FAILED, name=None, topic_id=topic_id)
    return _described(call, topic)


def _by_name(call: RequestContext, name: str, may_create: bool) -> MetadataResponseTopic:
    state = call.state
    if not call.allowed("DESCRIBE", f"Topic:{name}"):
        return MetadataResponseTopic(error_code=TOPIC_AUTHORIZATION_FAILED, name=name)
    if (topic := state.topics.get(name)) is not None:
        return _described(call, topic)
    if not is_legal_topic(name):
        return MetadataResponseTopic(error_code=INVALID_TOPIC_EXCEPTION, name=name)
    if not (
        may_create and state.settings.auto_create_topics_enable and call.allowed("CREATE", f"Topic:{name}")
    ):
        return MetadataResponseTopic(error_code=UNKNOWN_TOPIC_OR_PARTITION, name=name)
    return MetadataResponseTopic(error_code=_created(call, name), name=name, is_internal=_internal(name))


def _created(call: RequestContext, name: str) -> int:
    """Make it; the first answer says that it has no leader yet."""
    settings = call.state.settings
    if _internal(name):
        made = controller.create_internal_topic(call.state, name)
        return COORDINATOR_NOT_AVAILABLE if made is None else LEADER_NOT_AVAILABLE
    replicas = min(settings.default_replication_factor, len(call.state.alive()))
    controller.create_topic(call.state, name, settings.num_partitions, replicas)
    return UNKNOWN_TOPIC_OR_PARTITION if forwards(call) else LEADER_NOT_AVAILABLE


def _internal(name: str) -> bool:
    return name in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)


def _described(call: RequestContext, topic: Topic) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id if call.version >= 10 else ZERO_UUID,
        is_internal=topic.internal,
        partitions=[_partition(call, partition) for partition in topic.partitions],
    )


def _partition(call: RequestContext, partition: Partition) -> MetadataResponsePartition:
    state = call.state
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
