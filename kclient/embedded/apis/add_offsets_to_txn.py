"""AddOffsetsToTxn: a transaction is about to commit offsets of a group, so the group's partition gets its marker."""

from __future__ import annotations

from kclient.embedded.api_error import ApiError
from kclient.embedded.partition import OFFSETS_TOPIC
from kclient.embedded.request_context import RequestContext
from kclient.embedded.transactions.transaction import ProducerIdAndEpoch
from kclient.embedded.transactions.verification import FENCED_SINCE, txn_error_code
from kclient.generated.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kclient.generated.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from kclient.group.offsets_topic import offsets_topic_partition
from kclient.protocol.errors import GROUP_AUTHORIZATION_FAILED, TRANSACTIONAL_ID_AUTHORIZATION_FAILED
from kclient.types import TopicPartition


async def handle(context: RequestContext, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    """Add the partition of `__consumer_offsets` that holds the group. KIP-98."""
    if not context.allowed("WRITE", f"TransactionalId:{request.transactional_id}"):
        raise ApiError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not context.allowed("READ", f"Group:{request.group_id}"):
        raise ApiError(GROUP_AUTHORIZATION_FAILED)
    number = offsets_topic_partition(request.group_id, context.state.settings.offsets_topic_num_partitions)
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    tp = TopicPartition(OFFSETS_TOPIC, number)
    context.transactions.add_partitions(request.transactional_id, producer, [tp])
    return AddOffsetsToTxnResponse()


def error_response(
    context: RequestContext, request: AddOffsetsToTxnRequest, error: ApiError
) -> AddOffsetsToTxnResponse:
    """Return the error code at the top level."""
    return AddOffsetsToTxnResponse(error_code=txn_error_code(context.version, error, FENCED_SINCE))
