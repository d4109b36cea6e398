"""Choose the version of each request, from the response to ApiVersions, the first request on every connection.

A broker that does not know our version of ApiVersions answers UNSUPPORTED_VERSION in the layout of version 0, and may
list the versions that it knows. kclient asks once more on the same connection, and then gives up.

From version 5 on, the request contains the node id and the cluster id. A broker that is another node, or of another
cluster, answers REBOOTSTRAP_REQUIRED (KIP-1242): the address belongs to another broker since metadata named it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import attrs

from kclient.errors import ProtocolDecodeError
from kclient.generated.api_versions_request import ApiVersionsRequest
from kclient.generated.api_versions_response import ApiVersionsResponse
from kclient.network.errors import bad_versions, misrouted, no_common_version
from kclient.network.peer import Peer
from kclient.protocol.errors import NONE, REBOOTSTRAP_REQUIRED, UNSUPPORTED_VERSION, error
from kclient.protocol.message import Message
from kclient.protocol.registry import read_message

SOFTWARE_NAME: Final = "kclient"
SOFTWARE_VERSION: Final = "0.1.0"

Range = tuple[int, int]
Ask = Callable[[ApiVersionsRequest, int], Awaitable[Message]]

# From these versions on, the broker answers a throttled request at once and the client must wait for the throttle time
# before it sends another request (KIP-219). Older versions, and APIs that are not listed: the broker has waited.
THROTTLES_SINCE: Final[Mapping[int, int]] = {
    0: 6,  # Produce
    1: 8,  # Fetch
    2: 3,  # ListOffsets
    3: 6,  # Metadata
    8: 4,  # OffsetCommit
    9: 4,  # OffsetFetch
    10: 2,  # FindCoordinator
    11: 3,  # JoinGroup
    12: 2,  # Heartbeat
    13: 2,  # LeaveGroup
    14: 2,  # SyncGroup
    15: 2,  # DescribeGroups
    16: 2,  # ListGroups
    18: 2,  # ApiVersions
    19: 3,  # CreateTopics
    20: 2,  # DeleteTopics
    22: 1,  # InitProducerId
    24: 1,  # AddPartitionsToTxn
    25: 1,  # AddOffsetsToTxn
    26: 1,  # EndTxn
    28: 1,  # TxnOffsetCommit
    32: 2,  # DescribeConfigs
    42: 1,  # DeleteGroups
    47: 0,  # OffsetDelete
}


def choose_version(
    request: type[Message],
    offered: Mapping[int, Range],
    peer: Peer,
    lowest: int = 0,
    highest: int | None = None,
) -> int:
    """Return the newest version in all of: the broker's range, ours, and `lowest` to `highest`. Raise VersionError."""
    ours = (
        max(request.VERSIONS[0], lowest),
        request.VERSIONS[1] if highest is None else min(request.VERSIONS[1], highest),
    )
    theirs = offered.get(request.API_KEY) if request.API_KEY is not None else None
    if theirs is None or max(ours[0], theirs[0]) > min(ours[1], theirs[1]):
        raise no_common_version(peer, request.NAME.removesuffix("Request"), ours, theirs)
    return min(ours[1], theirs[1])


async def negotiate(ask: Ask, peer: Peer, cluster_id: str | None = None) -> dict[int, Range]:
    """Return the broker's versions by API key. Ask a second time if the broker is too old for our ApiVersions.

    With a `cluster_id`, a broker of release 4.4 or later checks that it is the peer's node of this cluster.
    """
    newest = ApiVersionsRequest.VERSIONS[1]
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)
    if cluster_id is not None and peer.node_id is not None:  # a bootstrap server may be any node
        request.cluster_id, request.node_id = cluster_id, peer.node_id
    response = await _ask(ask, request, newest, peer)
    if response.error_code == UNSUPPORTED_VERSION:
        response = await _ask(ask, request, _fallback(response, newest), peer)
    if response.error_code == REBOOTSTRAP_REQUIRED:
        raise misrouted(peer, cluster_id)
    if response.error_code != NONE:
        raise bad_versions(
            peer, f"the peer answered {error(response.error_code).name} ({response.error_code})"
        )
    return _offer(response, peer)


def read_api_versions(version: int, frame: memoryview, at: int) -> tuple[Message, int]:
    """Read a response to ApiVersions. UNSUPPORTED_VERSION comes in the layout of version 0."""
    refused = frame[at : at + 2] == UNSUPPORTED_VERSION.to_bytes(2, "big")
    return read_message("ApiVersionsResponse", 0 if refused else version, frame, at)


async def _ask(ask: Ask, request: ApiVersionsRequest, version: int, peer: Peer) -> ApiVersionsResponse:
    try:
        response = await ask(request, version)
    except ProtocolDecodeError as exc:
        raise bad_versions(peer, f"the response cannot be read: {exc.text}") from exc
    if not isinstance(response, ApiVersionsResponse):
        raise bad_versions(peer, f"the response is {type(response).__name__}")
    return response


def _fallback(refusal: ApiVersionsResponse, refused: int) -> int:
    """Return the newest version of ApiVersions below `refused` that the response lists; 0 if it lists none."""
    for api in refusal.api_keys:
        if api.api_key == ApiVersionsRequest.API_KEY and 0 <= api.max_version < refused:
            return api.max_version
    return 0


def _offer(response: ApiVersionsResponse, peer: Peer) -> dict[int, Range]:
    offered: dict[int, Range] = {}
    for api in response.api_keys:
        if api.api_key in offered:
            raise bad_versions(peer, f"API {api.api_key} is listed twice")
        if not 0 <= api.min_version <= api.max_version:
            raise bad_versions(peer, f"API {api.api_key} has versions {api.min_version} to {api.max_version}")
        offered[api.api_key] = (api.min_version, api.max_version)
    if not offered:
        raise bad_versions(peer, "no API is offered")
    return offered


GROUP_VERSION = "group.version"


@attrs.define
class Features:
    """Finalized features (name → level, 1 or higher) as of an epoch. A response with an older epoch changes nothing."""

    epoch: int = -1
    levels: Mapping[str, int] = attrs.field(factory=dict)
    apis: frozenset[int] = frozenset()  # API keys of the last response

    def learn(self, response: ApiVersionsResponse) -> None:
        """Apply a response without an error."""
        self.apis = frozenset(api.api_key for api in response.api_keys)
        if response.finalized_features_epoch >= max(self.epoch, 0):  # −1: it does not know
            self.epoch = response.finalized_features_epoch
            self.levels = {one.name: one.max_version_level for one in response.finalized_features}
