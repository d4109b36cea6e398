"""One module for each API, named after the request and imported with the first request of that API.

A module has two functions. `handle(context, request)` is a coroutine that returns the response, or None if the protocol
has none; it may raise `ApiError`. `error_response(context, request, error)` returns the response with an error code
wherever a client looks for one: at the top level, or at every requested entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final

from kclient.embedded.releases import Release, versions_of
from kclient.generated.api_versions_response import ApiVersion, ApiVersionsResponse
from kclient.generated.response_header import ResponseHeader
from kclient.protocol.errors import UNSUPPORTED_VERSION
from kclient.protocol.registry import write_message

API_VERSIONS: Final = 18
AUTHENTICATION: Final = (17, 36)  # SaslHandshake, SaslAuthenticate
BEFORE_AUTHENTICATION: Final = (API_VERSIONS, *AUTHENTICATION)

MODULES: Final = {
    "AddOffsetsToTxn": "add_offsets_to_txn",
    "AddPartitionsToTxn": "add_partitions_to_txn",
    "ApiVersions": "api_versions",
    "ConsumerGroupDescribe": "consumer_group_describe",
    "ConsumerGroupHeartbeat": "consumer_group_heartbeat",
    "CreatePartitions": "create_partitions",
    "CreateTopics": "create_topics",
    "DeleteGroups": "delete_groups",
    "DeleteRecords": "delete_records",
    "DeleteTopics": "delete_topics",
    "DescribeCluster": "describe_cluster",
    "DescribeConfigs": "describe_configs",
    "DescribeGroups": "describe_groups",
    "DescribeLogDirs": "describe_log_dirs",
    "EndTxn": "end_txn",
    "Fetch": "fetch",
    "FindCoordinator": "find_coordinator",
    "Heartbeat": "heartbeat",
    "InitProducerId": "init_producer_id",
    "JoinGroup": "join_group",
    "LeaveGroup": "leave_group",
    "ListGroups": "list_groups",
    "ListOffsets": "list_offsets",
    "Metadata": "metadata",
    "OffsetCommit": "offset_commit",
    "OffsetDelete": "offset_delete",
    "OffsetFetch": "offset_fetch",
    "OffsetForLeaderEpoch": "offset_for_leader_epoch",
    "Produce": "produce",
    "SaslAuthenticate": "sasl_authenticate",
    "SaslHandshake": "sasl_handshake",
    "SyncGroup": "sync_group",
    "TxnOffsetCommit": "txn_offset_commit",
}


@cache
def module(api: str) -> Any:
    """The module of an API. KeyError for one that is not served."""
    return import_module(f"kclient.embedded.apis.{MODULES[api]}")


@cache
def offered(release: Release) -> Mapping[int, tuple[int, int]]:
    """API key → lowest and highest version that a broker of this release offers."""
    return versions_of(release)


def versions_unsupported(correlation_id: int, release: Release) -> list[bytes | memoryview]:
    """The response to ApiVersions in a version that is not spoken: layout 0, and from 2.4 on the range that is."""
    own = offered(release)[API_VERSIONS]
    listed = [ApiVersion(api_key=API_VERSIONS, min_version=own[0], max_version=own[1])] if own[1] >= 3 else []
    response = ApiVersionsResponse(error_code=UNSUPPORTED_VERSION, api_keys=listed)
    return [*write_message(ResponseHeader(correlation_id=correlation_id), 0), *write_message(response, 0)]
