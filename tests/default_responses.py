"""The default responses of scripted brokers: ApiVersions and Metadata."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from kclient.generated.api_versions_response import ApiVersion, ApiVersionsResponse
from kclient.generated.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.protocol.registry import message_class, message_names

OUR_VERSIONS = {name: message_class(name).VERSIONS for name in message_names() if name.endswith("Request")}


def api_versions(versions: Mapping[str, tuple[int, int]]) -> ApiVersionsResponse:
    """Every request that kclient knows, in `versions` where given, else in all versions of kclient."""
    ranges = {message_class(name).API_KEY or 0: span for name, span in {**OUR_VERSIONS, **versions}.items()}
    keys = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in ranges.items()]
    return ApiVersionsResponse(api_keys=keys)


class Broker(Protocol):
    """The attributes of a scripted broker that the responses need."""

    node_id: int
    host: str
    port: int
    brokers: Sequence[Broker]
    topics: Mapping[str, int]
    leaders: Mapping[tuple[str, int], int]
    leader_epoch: int


def metadata(broker: Broker, request: Any) -> MetadataResponse:
    """All brokers and the requested topics; a topic that the broker lacks is UNKNOWN_TOPIC_OR_PARTITION (3)."""
    requested = list(broker.topics) if request.topics is None else [topic.name for topic in request.topics]
    described = []
    for name in requested:
        if name not in broker.topics:
            described.append(MetadataResponseTopic(name=name, error_code=3))
            continue
        led = [broker.leaders.get((name, index), broker.node_id) for index in range(broker.topics[name])]
        partitions = [
            MetadataResponsePartition(
                partition_index=index,
                leader_id=node,
                leader_epoch=broker.leader_epoch,
                replica_nodes=[node],
                isr_nodes=[node],
            )
            for index, node in enumerate(led)
        ]
        described.append(MetadataResponseTopic(name=name, topic_id=topic_id(name), partitions=partitions))
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=one.node_id, host=one.host, port=one.port)
            for one in broker.brokers
        ],
        cluster_id="scripted",
        controller_id=broker.node_id,
        topics=described,
    )


def topic_id(name: str) -> bytes:
    """Return the id that scripted brokers give a topic."""
    return hashlib.md5(name.encode(), usedforsecurity=False).digest()
