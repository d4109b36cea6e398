"""AddPartitionsToTxn: where a transaction is about to write. Up to version 3 a producer asks for itself; from 4 on a
broker asks for many producers, and perhaps only whether they may write there (KIP-890).

One partition that cannot be added keeps all others of its transaction out.
"""

from __future__ import annotations

from collections.abc import Iterable

from kclient.embedded.api_error import ApiError
from kclient.embedded.auth import CLUSTER
from kclient.embedded.request_context import RequestContext
from kclient.embedded.transactions.transaction import V2, ProducerIdAndEpoch
from kclient.embedded.transactions.verification import FENCED_SINCE, txn_error_code
from kclient.generated.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kclient.generated.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from kclient.protocol.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    NONE,
    OPERATION_NOT_ATTEMPTED,
    TOPIC_AUTHORIZATION_FAILED,
    TRANSACTION_ABORTABLE,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kclient.types import TopicPartition

BATCHED_SINCE = 4
Errors = dict[TopicPartition, int]


async def handle(context: RequestContext, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    """Every transaction's partitions with an error each. KIP-98, KIP-890."""
    if context.version < BATCHED_SINCE:
        if not context.allowed("WRITE", f"TransactionalId:{request.v3_and_below_transactional_id}"):
            raise ApiError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_one(context, _own(request)))
    if not context.allowed("CLUSTER_ACTION", CLUSTER):
        raise ApiError(CLUSTER_AUTHORIZATION_FAILED)
    rows = [
        AddPartitionsToTxnResult(transactional_id=one.transactional_id, topic_results=_one(context, one))
        for one in request.transactions
    ]
    return AddPartitionsToTxnResponse(results_by_transaction=rows)


def error_response(
    context: RequestContext, request: AddPartitionsToTxnRequest, error: ApiError
) -> AddPartitionsToTxnResponse:
    """Return the error code for every partition, or at the top level from version 4 on."""
    code = txn_error_code(context.version, error, FENCED_SINCE)
    if context.version >= BATCHED_SINCE:
        return AddPartitionsToTxnResponse(error_code=code)
    asked = _partitions(request.v3_and_below_topics)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_rows(dict.fromkeys(asked, code)))


def _own(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


def _one(
    context: RequestContext, asked: AddPartitionsToTxnTransaction
) -> list[AddPartitionsToTxnTopicResult]:
    partitions = _partitions(asked.topics)
    problems = {tp: _problem(context, tp) for tp in partitions}
    if any(problems.values()):
        return _rows({tp: code or OPERATION_NOT_ATTEMPTED for tp, code in problems.items()})
    try:
        return _rows(_verified(context, asked) if asked.verify_only else _added(context, asked))
    except ApiError as exc:
        return _rows(dict.fromkeys(partitions, txn_error_code(context.version, exc, FENCED_SINCE)))


def _problem(context: RequestContext, tp: TopicPartition) -> int:
    """What is wrong with a partition whatever the transaction. Producers do not write to internal topics."""
    topic = context.state.topics.get(tp.topic)
    internal = topic is not None and topic.internal
    if context.version < BATCHED_SINCE and (internal or not context.allowed("WRITE", f"Topic:{tp.topic}")):
        return TOPIC_AUTHORIZATION_FAILED
    return NONE if context.state.partition(tp) is not None else UNKNOWN_TOPIC_OR_PARTITION


def _added(context: RequestContext, asked: AddPartitionsToTxnTransaction) -> Errors:
    producer = ProducerIdAndEpoch(asked.producer_id, asked.producer_epoch)
    partitions = _partitions(asked.topics)
    version = V2 if context.version >= BATCHED_SINCE else 0
    context.transactions.add_partitions(asked.transactional_id, producer, partitions, version)
    return dict.fromkeys(partitions, NONE)


def _verified(context: RequestContext, asked: AddPartitionsToTxnTransaction) -> Errors:
    producer = ProducerIdAndEpoch(asked.producer_id, asked.producer_epoch)
    return {
        tp: NONE
        if context.transactions.verify_partition(asked.transactional_id, producer, tp)
        else TRANSACTION_ABORTABLE
        for tp in _partitions(asked.topics)
    }


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, number) for topic in topics for number in topic.partitions]


def _rows(errors: Errors) -> list[AddPartitionsToTxnTopicResult]:
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for tp, code in errors.items():
        row = topics.setdefault(tp.topic, AddPartitionsToTxnTopicResult(name=tp.topic))
        row.results_by_partition.append(
            AddPartitionsToTxnPartitionResult(partition_index=tp.partition, partition_error_code=code)
        )
    return list(topics.values())
