"""ApiVersions: the API versions of the release, and the features of the cluster.

From version 5 on (KIP-1242) a client says which node of which cluster it believes to reach. Another one answers
REBOOTSTRAP_REQUIRED, but not before the client is authenticated.
"""

from __future__ import annotations

import re
from typing import Final

from kclient.embedded import apis
from kclient.embedded.api_error import ApiError
from kclient.embedded.releases import features_of
from kclient.embedded.request_context import RequestContext
from kclient.generated.api_versions_request import ApiVersionsRequest
from kclient.generated.api_versions_response import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kclient.protocol.errors import INVALID_REQUEST, REBOOTSTRAP_REQUIRED

NAMED_SINCE: Final = 3
LEVEL_ZERO_SINCE: Final = (
    4  # older clients cannot read a feature whose lowest level is 0, so they do not hear of it
)
CHECKED_SINCE: Final = 5
NO_NODE: Final = -1
SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


async def handle(context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """The tables of the release."""
    names = (request.client_software_name, request.client_software_version)
    if context.version >= NAMED_SINCE and not all(map(SOFTWARE.fullmatch, names)):
        raise ApiError(INVALID_REQUEST)
    if context.version >= CHECKED_SINCE:
        _check_destination(context, request)
    rows = apis.offered(context.state.release).items()
    response = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in rows]
    )
    if context.version >= NAMED_SINCE:
        _add_features(context, response)
    return response


def error_response(
    context: RequestContext, request: ApiVersionsRequest, error: ApiError
) -> ApiVersionsResponse:
    """Return the error code at the top level."""
    return ApiVersionsResponse(error_code=error.code)


def _check_destination(context: RequestContext, request: ApiVersionsRequest) -> None:
    """Raise ApiError if the client took this node for another one."""
    if (request.cluster_id is None) is not (request.node_id == NO_NODE):
        raise ApiError(INVALID_REQUEST)
    believed = (request.cluster_id, request.node_id)
    here = (context.state.cluster_id, context.broker.node_id)
    if request.cluster_id is not None and context.connection.authenticated and believed != here:
        raise ApiError(REBOOTSTRAP_REQUIRED)


def _add_features(context: RequestContext, response: ApiVersionsResponse) -> None:
    features = features_of(context.state.release)
    response.supported_features = [
        SupportedFeatureKey(name=one.name, min_version=one.lowest, max_version=one.highest)
        for one in features
        if one.lowest > 0 or context.version >= LEVEL_ZERO_SINCE
    ]
    response.finalized_features_epoch = 0
    response.finalized_features = [
        FinalizedFeatureKey(name=one.name, min_version_level=one.level, max_version_level=one.level)
        for one in features
        if one.level > 0
    ]
