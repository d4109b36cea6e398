"""InitProducerId: without a transactional id a new producer id; with one its next epoch."""

from __future__ import annotations

from kclient.embedded.api_error import ApiError
from kclient.embedded.auth import CLUSTER
from kclient.embedded.request_context import RequestContext
from kclient.embedded.transactions.transaction import NO_EPOCH, NO_ID, ProducerIdAndEpoch
from kclient.embedded.transactions.verification import txn_error_code
from kclient.generated.init_producer_id_request import InitProducerIdRequest
from kclient.generated.init_producer_id_response import InitProducerIdResponse
from kclient.protocol.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)

FENCED_SINCE = 4


async def handle(context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """A producer id and its epoch. KIP-98, KIP-360."""
    if request.transactional_id is None:
        _check_idempotent(context)
        producer = ProducerIdAndEpoch(context.transactions.new_producer_id(), 0)
    else:
        if not context.allowed("WRITE", f"TransactionalId:{request.transactional_id}"):
            raise ApiError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        producer = context.transactions.init_producer_id(
            request.transactional_id,
            request.transaction_timeout_ms,
            _expected(request),
        )
    return InitProducerIdResponse(producer_id=producer.producer_id, producer_epoch=producer.epoch)


def error_response(
    context: RequestContext, request: InitProducerIdRequest, error: ApiError
) -> InitProducerIdResponse:
    """Return the error code at the top level."""
    return InitProducerIdResponse(
        error_code=txn_error_code(context.version, error, FENCED_SINCE), producer_epoch=NO_EPOCH
    )


def _check_idempotent(context: RequestContext) -> None:
    """Raise ApiError unless the principal may write to any topic, which allows idempotent producers."""
    if context.allowed("IDEMPOTENT_WRITE", CLUSTER):
        return
    if not any(context.allowed("WRITE", f"Topic:{name}") for name in context.state.topics):
        raise ApiError(CLUSTER_AUTHORIZATION_FAILED)


def _expected(request: InitProducerIdRequest) -> ProducerIdAndEpoch | None:
    given = request.producer_id != NO_ID, request.producer_epoch != NO_EPOCH
    if any(given) and not all(given):
        raise ApiError(INVALID_REQUEST)
    return ProducerIdAndEpoch(request.producer_id, request.producer_epoch) if all(given) else None
