"""DescribeCluster: the brokers that are up, for admin clients."""

from __future__ import annotations

from typing import Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.auth import CLUSTER, NOT_ASKED, OF_CLUSTER
from kclient.embedded.request_context import RequestContext
from kclient.generated.describe_cluster_request import DescribeClusterRequest
from kclient.generated.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from kclient.protocol.errors import MISMATCHED_ENDPOINT_TYPE, UNSUPPORTED_ENDPOINT_TYPE

BROKERS: Final = 1
CONTROLLERS: Final = 2


async def handle(context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """What Metadata says of brokers. Raise ApiError for endpoints of another kind."""
    if request.endpoint_type != BROKERS:
        if request.endpoint_type == CONTROLLERS:
            raise ApiError(MISMATCHED_ENDPOINT_TYPE, "This is a broker's endpoint, not a controller's.")
        raise ApiError(UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    brokers = [
        DescribeClusterBroker(broker_id=broker.node_id, host=host, port=port, rack=broker.rack)
        for broker, host, port in context.brokers()
    ]
    asked = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=context.state.cluster_id,
        controller_id=context.state.controller_id,
        brokers=brokers,
        cluster_authorized_operations=context.authorized_operations(OF_CLUSTER, CLUSTER)
        if asked
        else NOT_ASKED,
    )


def error_response(
    context: RequestContext, request: DescribeClusterRequest, error: ApiError
) -> DescribeClusterResponse:
    """Return the error code at the top level."""
    return DescribeClusterResponse(error_code=error.code, error_message=error.message)
