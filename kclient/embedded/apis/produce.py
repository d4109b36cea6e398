"""Produce: one batch for each partition, checked, appended, and answered when as many replicas have it as was asked."""

from __future__ import annotations

from typing import Final

from kclient.embedded import leader_hints
from kclient.embedded.admission import Admitted, RecordsRefused, admit
from kclient.embedded.appending import tell
from kclient.embedded.call import Call
from kclient.embedded.checks import usable
from kclient.embedded.refusal import Refused
from kclient.embedded.replication import Written, enough_replicas, replicated
from kclient.embedded.topics import Partition, Topic
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
    INVALID_REQUIRED_ACKS,
    INVALID_TOPIC_EXCEPTION,
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_ENOUGH_REPLICAS,
    NOT_LEADER_OR_FOLLOWER,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kclient.types import TopicPartition

ALL: Final = -1
ADMIN_CLIENT: Final = "__admin_client"


async def handle(call: Call, request: ProduceRequest) -> ProduceResponse | None:
    """Append, and wait for the replicas with acks −1. Without acks an error ends the connection. Spec: F-34."""
    authorize(call, request)
    written: list[Written] = []
    answer = ProduceResponse(
        responses=[_topic(call, request, topic, written) for topic in request.topic_data]
    )
    if request.acks == ALL:
        await replicated(call, request.timeout_ms, written)
    rows = [row for topic in answer.responses for row in topic.partition_responses]
    if request.acks == 0:
        if any(row.error_code != NONE for row in rows):
            call.connection.abort()
        return None
    if call.version >= 10:
        leaders = [row.current_leader.leader_id for row in rows if row.current_leader is not None]
        answer.node_endpoints = leader_hints.endpoints(NodeEndpoint, call, leaders)
    return answer


def refuse(call: Call, request: ProduceRequest, refused: Refused) -> ProduceResponse | None:
    """At every partition; nowhere without acks."""
    if request.acks == 0:
        call.connection.abort()
        return None
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[failed(one.index, refused.code) for one in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )


def authorize(call: Call, request: ProduceRequest) -> None:
    """Raise Refused where the transactional id must not be used, or the number of acks means nothing."""
    transactional_id = request.transactional_id
    if transactional_id is not None and not call.allowed("WRITE", f"TransactionalId:{transactional_id}"):
        raise Refused(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.acks not in (ALL, 0, 1):
        raise Refused(INVALID_REQUIRED_ACKS)


def failed(index: int, code: int, message: str | None = None) -> PartitionProduceResponse:
    """A row that says no."""
    return PartitionProduceResponse(index=index, error_code=code, base_offset=-1, error_message=message)


def _topic(
    call: Call, request: ProduceRequest, asked: TopicProduceData, written: list[Written]
) -> TopicProduceResponse:
    topic = (
        call.state.topic_of_id(asked.topic_id) if call.version >= 13 else call.state.topics.get(asked.name)
    )
    rows = [_partition(call, request, asked, topic, one, written) for one in asked.partition_data]
    return TopicProduceResponse(name=asked.name, topic_id=asked.topic_id, partition_responses=rows)


def _partition(
    call: Call,
    request: ProduceRequest,
    asked: TopicProduceData,
    topic: Topic | None,
    data: PartitionProduceData,
    written: list[Written],
) -> PartitionProduceResponse:
    if topic is None and call.version >= 13:
        return failed(data.index, UNKNOWN_TOPIC_ID)
    name = asked.name if topic is None else topic.name
    if not call.allowed("WRITE", f"Topic:{name}"):
        return failed(data.index, TOPIC_AUTHORIZATION_FAILED)
    partition = call.state.partition(TopicPartition(name, data.index))
    if partition is None:
        return failed(data.index, UNKNOWN_TOPIC_OR_PARTITION)
    try:
        return _append(call, request, partition, data, written)
    except RecordsRefused as no:
        row = failed(data.index, no.code, no.message)
        row.log_start_offset = partition.log.start
        row.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
            for index, text in no.records
        ]
        return row
    except Refused as no:
        return _with_hint(call, partition, failed(data.index, no.code, no.message))


def _append(
    call: Call,
    request: ProduceRequest,
    partition: Partition,
    data: PartitionProduceData,
    written: list[Written],
) -> PartitionProduceResponse:
    state = call.state
    admitted = admit(state, partition, data.records, call.version)
    if partition.topic.internal and call.client_id != ADMIN_CLIENT:
        raise Refused(INVALID_TOPIC_EXCEPTION)
    _check_leader(call, partition)
    if request.acks == ALL and not enough_replicas(state, partition):
        raise Refused(NOT_ENOUGH_REPLICAS)
    row = PartitionProduceResponse(index=data.index, log_start_offset=partition.log.start)
    if admitted.header is not None and admitted.header.producer_id >= 0:
        earlier = partition.log.producers.check(admitted.header, state.release)
        if earlier is not None:
            row.base_offset, row.log_append_time_ms = earlier.base_offset, earlier.max_timestamp
            written.append(Written(partition, partition.leader_epoch, earlier.last_offset, row))
            return row
        if admitted.header.is_transactional:
            from kclient.embedded.transactions.enlisting import enlist_batch  # only for those

            enlist_batch(call, request.transactional_id, partition, admitted.header)
    _keep(call, partition, admitted, row)
    written.append(Written(partition, partition.leader_epoch, partition.log.end - 1, row))
    return row


def _keep(call: Call, partition: Partition, admitted: Admitted, row: PartitionProduceResponse) -> None:
    row.base_offset = partition.log.end
    row.log_append_time_ms = admitted.log_append_time_ms
    stored = [partition.log.keep(one) for one in admitted.place(partition.log.end, partition.leader_epoch)]
    tell(call.state, partition, stored)


def _check_leader(call: Call, partition: Partition) -> None:
    if error := usable(call, partition, -1):
        raise Refused(NOT_LEADER_OR_FOLLOWER if error == KAFKA_STORAGE_ERROR and call.version < 4 else error)


def _with_hint(call: Call, partition: Partition, row: PartitionProduceResponse) -> PartitionProduceResponse:
    if call.version >= 10 and row.error_code in leader_hints.HINTED:
        row.current_leader = leader_hints.leader(LeaderIdAndEpoch, partition)
    return row
