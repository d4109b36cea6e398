"""ApiVersions: what this release speaks."""

from __future__ import annotations

from kclient.embedded import apis
from kclient.embedded.call import Call
from kclient.embedded.refusal import Refused
from kclient.generated.api_versions_request import ApiVersionsRequest
from kclient.generated.api_versions_response import ApiVersion, ApiVersionsResponse


async def handle(call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    """The table of the release. Spec: B.4.4, C.2."""
    rows = apis.offered(call.state.release).items()
    return ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in rows]
    )


def refuse(call: Call, request: ApiVersionsRequest, refused: Refused) -> ApiVersionsResponse:
    """At the top."""
    return ApiVersionsResponse(error_code=refused.code)
