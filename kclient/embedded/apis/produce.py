"""Produce: one batch for each partition, validated, appended, and answered according to acks."""

from __future__ import annotations

from typing import Final

from kclient.embedded import request_context
from kclient.embedded.api_error import ApiError
from kclient.embedded.auth import CLUSTER
from kclient.embedded.partition import Partition, Topic
from kclient.embedded.produce_validation import (
    InvalidRecordFormatError,
    InvalidRecordsError,
    is_idempotent,
    is_transactional,
    parsed,
    validate,
)
from kclient.embedded.releases import Release
from kclient.embedded.replication import ProducePartitionStatus, enough_replicas, notify_appended, replicated
from kclient.embedded.request_context import RequestContext, check_partition
from kclient.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.generated.produce_response import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kclient.protocol.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_RECORD,
    INVALID_REQUIRED_ACKS,
    INVALID_TIMESTAMP,
    INVALID_TOPIC_EXCEPTION,
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_ENOUGH_REPLICAS,
    NOT_LEADER_OR_FOLLOWER,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_PRODUCER_ID,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kclient.records.batch import Batch
from kclient.types import TopicPartition

ALL: Final = -1
ADMIN_CLIENT: Final = "__admin_client"
ANYONE_IDEMPOTENT_SINCE: Final = Release.parse("3.0")  # who may write may do it so
TOLD_WITH_START: Final = (  # these errors come with the log start offset
    *(INVALID_RECORD, INVALID_TIMESTAMP, NOT_ENOUGH_REPLICAS),
    *(OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID, UNKNOWN_SERVER_ERROR),
)


async def handle(context: RequestContext, request: ProduceRequest) -> ProduceResponse | None:
    """Append, and wait for the replicas with acks −1. Without acks an error ends the connection."""
    authorize(context, request)
    written: list[ProducePartitionStatus] = []
    response = ProduceResponse(
        responses=[_topic(context, request, topic, written) for topic in request.topic_data]
    )
    if request.acks == ALL:
        await replicated(context.broker, request.timeout_ms, written)
    rows = [row for topic in response.responses for row in topic.partition_responses]
    if request.acks == 0:
        if any(row.error_code != NONE for row in rows):
            context.connection.abort()
        return None
    if context.version >= 10:
        leaders = [row.current_leader.leader_id for row in rows if row.current_leader is not None]
        response.node_endpoints = request_context.endpoints(NodeEndpoint, context, leaders)
    return response


def error_response(
    context: RequestContext, request: ProduceRequest, error: ApiError
) -> ProduceResponse | None:
    """Return the error code for every partition; without acks there is no response."""
    if request.acks == 0:
        context.connection.abort()
        return None
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[failed(one.index, error.code) for one in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )


def authorize(context: RequestContext, request: ProduceRequest) -> None:
    """Raise ApiError where the transactional id must not be used, or the number of acks means nothing."""
    transactional_id = request.transactional_id
    records = [data.records for topic in request.topic_data for data in topic.partition_data]
    if any(map(is_transactional, records)) and not (
        transactional_id is not None and context.allowed("WRITE", f"TransactionalId:{transactional_id}")
    ):
        raise ApiError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    wanted = context.state.release < ANYONE_IDEMPOTENT_SINCE and any(map(is_idempotent, records))
    if wanted and transactional_id is None and not context.allowed("IDEMPOTENT_WRITE", CLUSTER):
        raise ApiError(CLUSTER_AUTHORIZATION_FAILED)
    if request.acks not in (ALL, 0, 1):
        raise ApiError(INVALID_REQUIRED_ACKS)


def failed(index: int, code: int) -> PartitionProduceResponse:
    """Return a row with an error code."""
    return PartitionProduceResponse(index=index, error_code=code, base_offset=-1)


def _topic(
    context: RequestContext,
    request: ProduceRequest,
    asked: TopicProduceData,
    written: list[ProducePartitionStatus],
) -> TopicProduceResponse:
    topic = (
        context.state.topic_of_id(asked.topic_id)
        if context.version >= 13
        else context.state.topics.get(asked.name)
    )
    rows = [_partition(context, request, asked, topic, one, written) for one in asked.partition_data]
    return TopicProduceResponse(name=asked.name, topic_id=asked.topic_id, partition_responses=rows)


def _partition(
    context: RequestContext,
    request: ProduceRequest,
    asked: TopicProduceData,
    topic: Topic | None,
    data: PartitionProduceData,
    written: list[ProducePartitionStatus],
) -> PartitionProduceResponse:
    if topic is None and context.version >= 13:
        return failed(data.index, UNKNOWN_TOPIC_ID)
    name = asked.name if topic is None else topic.name
    if not context.allowed("WRITE", f"Topic:{name}"):
        return failed(data.index, TOPIC_AUTHORIZATION_FAILED)
    partition = context.state.partition(TopicPartition(name, data.index))
    if partition is None:
        return failed(data.index, UNKNOWN_TOPIC_OR_PARTITION)
    try:
        batches = parsed(context.state, data.records, context.version)
        return _append(context, request, partition, data.index, batches, written)
    except ApiError as exc:
        return _error_row(context, partition, data.index, exc)


def _error_row(
    context: RequestContext, partition: Partition, index: int, no: ApiError
) -> PartitionProduceResponse:
    row = failed(index, no.code)
    if no.code in TOLD_WITH_START and not isinstance(no, InvalidRecordFormatError):
        row.log_start_offset = partition.log.start
    if isinstance(no, InvalidRecordsError):
        row.error_message = no.message
        row.record_errors = [
            BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=text)
            for place, text in no.records
        ]
    if context.version >= 10 and no.code in request_context.HINTED:
        row.current_leader = request_context.leader(LeaderIdAndEpoch, partition)
    return row


def _append(
    context: RequestContext,
    request: ProduceRequest,
    partition: Partition,
    index: int,
    batches: list[Batch],
    written: list[ProducePartitionStatus],
) -> PartitionProduceResponse:
    _check_partition(context, request, partition)
    admitted = validate(context.state, partition, batches, context.version)
    row = PartitionProduceResponse(index=index, log_start_offset=partition.log.start)
    earlier = _check_producer(context, request, partition, admitted.header)
    if earlier is not None:
        row.base_offset, row.log_append_time_ms = earlier.base_offset, earlier.max_timestamp
        written.append(ProducePartitionStatus(partition, partition.leader_epoch, earlier.last_offset, row))
        return row
    placed = admitted.place(partition.log.end, partition.leader_epoch)
    row.base_offset = placed[0].base_offset if placed else -1
    row.log_append_time_ms = admitted.log_append_time_ms
    notify_appended(context.state, partition, [partition.log.keep(one) for one in placed])
    written.append(ProducePartitionStatus(partition, partition.leader_epoch, partition.log.end - 1, row))
    return row


def _check_partition(context: RequestContext, request: ProduceRequest, partition: Partition) -> None:
    if partition.topic.internal and context.client_id != ADMIN_CLIENT:
        raise ApiError(INVALID_TOPIC_EXCEPTION)
    if error := check_partition(context, partition, -1):
        raise ApiError(
            NOT_LEADER_OR_FOLLOWER if error == KAFKA_STORAGE_ERROR and context.version < 4 else error
        )
    if request.acks == ALL and not enough_replicas(context.state, partition):
        raise ApiError(NOT_ENOUGH_REPLICAS)


def _check_producer(
    context: RequestContext, request: ProduceRequest, partition: Partition, header: Batch | None
) -> Batch | None:
    """Return the earlier batch that a batch of an idempotent producer duplicates."""
    if header is None or header.producer_id < 0:
        return None
    if header.is_transactional:
        from kclient.embedded.transactions.verification import verify_batch  # only for those

        verify_batch(context.state, context.version, request.transactional_id, partition, header)
    return partition.log.producers.check(header, context.state.release)
