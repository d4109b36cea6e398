"""Fetch requests to one node: the state between them, one request and its response, closing the session.

Topics go by id (version 13 and later) only if every topic of the request has one, else by name (up to version 12).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

import attrs

from kclient.config import Config
from kclient.errors import KclientError
from kclient.fetch.session import FetchRequestData, FetchSession, PartitionFetch, PartitionFetches
from kclient.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kclient.generated.fetch_response import FetchResponse
from kclient.log import TRACE, get_logger
from kclient.network.backoff import Backoff
from kclient.protocol.errors import error
from kclient.protocol.primitives import ZERO_UUID
from kclient.types import IsolationLevel, TopicPartition

if TYPE_CHECKING:
    from kclient.network.cluster import Cluster

logger: Final = get_logger("kclient.fetch")

LAST_VERSION_BY_NAME: Final = 12
FIRST_VERSION_WITH_DIVERGING_EPOCH: Final = 12
CLOSE_SESSION_TIMEOUT: Final = 0.75  # seconds; enough for one request and, where needed, one new connection


# --- the message -------------------------------------------------------------------------------------


def build_request(data: FetchRequestData, max_bytes: int, config: Config) -> FetchRequest:
    """Return the Fetch of a consumer with this configuration."""
    return fetch_request(
        data,
        isolation_level=config.isolation,
        max_wait_ms=config.fetch_max_wait_ms,
        min_bytes=config.fetch_min_bytes,
        max_bytes=max_bytes,
        partition_max_bytes=config.max_partition_fetch_bytes,
        rack_id=config.client_rack,
    )


def fetch_request(
    data: FetchRequestData,
    *,
    isolation_level: IsolationLevel,
    max_bytes: int,
    partition_max_bytes: int,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    rack_id: str = "",
) -> FetchRequest:
    """Return a Fetch with the partitions in the given order, which is the order of service (KIP-74)."""
    topics: list[FetchTopic] = []
    for entry in data.to_send:
        # The same topic may come twice: merging its partitions would change the order of service.
        if not topics or topics[-1].topic != entry.tp.topic:
            topics.append(FetchTopic(topic=entry.tp.topic, topic_id=entry.topic_id or ZERO_UUID))
        topics[-1].partitions.append(_partition(entry, partition_max_bytes))
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=int(isolation_level),
        session_id=data.session_id,
        session_epoch=data.epoch,
        topics=topics,
        forgotten_topics_data=_forgotten_topics(data.to_forget),
        rack_id=rack_id,
    )


def _partition(entry: PartitionFetch, max_bytes: int) -> FetchPartition:
    return FetchPartition(
        partition=entry.tp.partition,
        current_leader_epoch=-1 if entry.leader_epoch is None else entry.leader_epoch,
        fetch_offset=entry.offset,
        last_fetched_epoch=-1 if entry.offset_epoch is None else entry.offset_epoch,
        partition_max_bytes=max_bytes,
    )


def _forgotten_topics(entries: Iterable[PartitionFetch]) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes | None], ForgottenTopic] = {}
    for entry in entries:
        key = (entry.tp.topic, entry.topic_id)
        if key not in topics:
            topics[key] = ForgottenTopic(topic=entry.tp.topic, topic_id=entry.topic_id or ZERO_UUID)
        topics[key].partitions.append(entry.tp.partition)
    return list(topics.values())


# --- sending -----------------------------------------------------------------------------------------


@attrs.define(eq=False)
class NodeFetchState:
    """What the fetcher keeps for each node.

    `requested` are the partitions of the request in flight: the mapping of the plan itself until the request is built,
    then that of the session. `requested_changes` are those that may differ from the request before (None: any may),
    `changes` are the same for the request after this one. `last_error` says why the last request was of no use.
    """

    node_id: int
    backoff: Backoff
    session: FetchSession = attrs.field(factory=FetchSession)
    request: asyncio.Task[None] | None = None
    retry_at: float = 0.0
    requested: PartitionFetches = attrs.field(factory=dict)
    requested_changes: dict[TopicPartition, None] | None = None
    sent_at: float = 0.0
    changes: dict[TopicPartition, None] | None = None
    last_error: str = ""


async def send_fetch(cluster: Cluster, node: NodeFetchState, max_bytes: int, config: Config) -> FetchResponse:
    """Send one Fetch of `node.requested` within the node's session. Raise what `cluster.request` raises.

    Connect first: whether the session has topic ids or names depends on the version that the node supports.
    """
    await cluster.connect(node.node_id)
    version = cluster.usable_version(node.node_id, FetchRequest)
    to_fetch = node.requested
    if version is None or version < FIRST_VERSION_WITH_DIVERGING_EPOCH:
        # The field does not exist there. A session must not take a change of it for a change of the request.
        to_fetch = {tp: attrs.evolve(entry, offset_epoch=None) for tp, entry in to_fetch.items()}
    by_id = version is None or version > LAST_VERSION_BY_NAME
    data = node.session.next_request(to_fetch, node.requested_changes, by_id=by_id)
    node.requested = node.session.partitions
    if not data.by_id:
        version = min(LAST_VERSION_BY_NAME, version or LAST_VERSION_BY_NAME)
    request = build_request(data, max_bytes, config)
    if logger.isEnabledFor(
        TRACE
    ):  # checked once for a request: the loop would cost with thousands of partitions
        for entry in to_fetch.values():
            logger.log(TRACE, "Added %s at %d to the Fetch to node %d", entry.tp, entry.offset, node.node_id)
    return cast(FetchResponse, await cluster.request(node.node_id, request, max_version=version))


def unusable_response(code: int) -> str:
    """Return why a response with this error code was of no use as a whole, for `explain()`."""
    if not code:
        return "it answered with other partitions than were asked for"
    refusal = error(code)
    return f"it answered {refusal.name} ({refusal.code})"


async def close_sessions(
    cluster: Cluster, nodes: Iterable[NodeFetchState], config: Config, deadline: float
) -> None:
    """Close the fetch session on every connected node. End by `deadline` (time of the loop), raise nothing.

    Wait for CLOSE_SESSION_TIMEOUT at most: a session that stays open is evicted when the broker needs its cache slot.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout_at(
            min(deadline, asyncio.get_running_loop().time() + CLOSE_SESSION_TIMEOUT)
        ):
            await asyncio.gather(*(_close_session(cluster, node, config) for node in nodes))


async def _close_session(cluster: Cluster, node: NodeFetchState, config: Config) -> None:
    if not cluster.is_connected(node.node_id):
        return
    in_flight = node.request is not None
    if node.request is not None:
        node.request.cancel()
    data = node.session.close_request()
    if data is None:
        return
    request = build_request(data, config.fetch_max_bytes, config)
    # The broker answers a connection in order: after a Fetch in flight the response could take fetch_max_wait_ms, so
    # the request goes over a connection of its own then.
    try:
        await cluster.request(node.node_id, request, purpose="last fetch" if in_flight else "")
    except KclientError as exc:
        logger.debug("The fetch session with node %d was not closed: %s", node.node_id, exc)
