"""EndTxn: commit or abort. The response comes when that is decided; the markers follow it.

From version 5 on (transactions V2, KIP-890) the response also holds the id and epoch of the next transaction.
"""

from __future__ import annotations

from kclient.embedded.api_error import ApiError
from kclient.embedded.request_context import RequestContext
from kclient.embedded.transactions.transaction import V2, ProducerIdAndEpoch
from kclient.embedded.transactions.verification import FENCED_SINCE, txn_error_code
from kclient.generated.end_txn_request import EndTxnRequest
from kclient.generated.end_txn_response import EndTxnResponse
from kclient.protocol.errors import TRANSACTIONAL_ID_AUTHORIZATION_FAILED

V2_SINCE = 5


async def handle(context: RequestContext, request: EndTxnRequest) -> EndTxnResponse:
    """End the producer's transaction. KIP-98, KIP-890."""
    if not context.allowed("WRITE", f"TransactionalId:{request.transactional_id}"):
        raise ApiError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    version = V2 if context.version >= V2_SINCE else 0
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    then = context.transactions.end_transaction(
        request.transactional_id, producer, request.committed, version
    )
    if version < V2:
        return EndTxnResponse()
    return EndTxnResponse(producer_id=then.producer_id, producer_epoch=then.epoch)


def error_response(context: RequestContext, request: EndTxnRequest, error: ApiError) -> EndTxnResponse:
    """Return the error code at the top level."""
    return EndTxnResponse(error_code=txn_error_code(context.version, error, FENCED_SINCE))
