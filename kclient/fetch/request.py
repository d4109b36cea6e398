"""A Fetch on the wire: from wanted partitions to the request.

Topics go by id (version 13 and later) only if every topic of the request has one, else by name (version 12 at most).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

import attrs

from kclient.config import Config
from kclient.errors import KclientError
from kclient.fetch.session import FetchRequestData, FetchSession, PartitionFetch
from kclient.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kclient.generated.fetch_response import FetchResponse
from kclient.log import TRACE, get_logger
from kclient.network.backoff import Backoff
from kclient.protocol.errors import error
from kclient.protocol.primitives import ZERO_UUID
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.network.cluster import Cluster

logger = get_logger("kclient.fetch")

LAST_VERSION_BY_NAME = 12


def build_request(step: FetchRequestData, max_bytes: int, config: Config) -> FetchRequest:
    """The request of one step of a session. The order of partitions is kept: it is the order of service (KIP-74)."""
    topics: list[FetchTopic] = []
    for one in step.to_send:
        if not topics or topics[-1].topic != one.tp.topic:
            topics.append(topic_entry(one))
        topics[-1].partitions.append(partition_entry(one, config.max_partition_fetch_bytes))
    return FetchRequest(
        max_wait_ms=config.fetch_max_wait_ms,
        min_bytes=config.fetch_min_bytes,
        max_bytes=max_bytes,
        isolation_level=int(config.isolation),
        session_id=step.session_id,
        session_epoch=step.epoch,
        topics=topics,
        forgotten_topics_data=_forgotten(step),
        rack_id=config.client_rack,
    )


def topic_entry(one: PartitionFetch) -> FetchTopic:
    """The topic of a partition, without partitions."""
    return FetchTopic(topic=one.tp.topic, topic_id=one.topic_id or ZERO_UUID)


def partition_entry(one: PartitionFetch, max_bytes: int) -> FetchPartition:
    """What a request says of one partition."""
    return FetchPartition(
        partition=one.tp.partition,
        current_leader_epoch=-1 if one.leader_epoch is None else one.leader_epoch,
        fetch_offset=one.offset,
        last_fetched_epoch=-1 if one.offset_epoch is None else one.offset_epoch,
        partition_max_bytes=max_bytes,
    )


def _forgotten(step: FetchRequestData) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes | None], ForgottenTopic] = {}
    for one in step.forgotten:
        topic = topics.get((one.tp.topic, one.topic_id))
        if topic is None:
            topic = ForgottenTopic(topic=one.tp.topic, topic_id=one.topic_id or ZERO_UUID)
            topics[one.tp.topic, one.topic_id] = topic
        topic.partitions.append(one.tp.partition)
    return list(topics.values())


def max_version(wanted: Sequence[PartitionFetch]) -> int | None:
    """None: the newest both sides have."""
    return None if all(one.topic_id is not None for one in wanted) else LAST_VERSION_BY_NAME


EPOCHS_SINCE: Final = 12
COURTESY_SECONDS: Final = 0.75  # what a connection and one answer take, in most places


@attrs.define(eq=False)
class NodeFetchState:
    """What the fetcher keeps per node.

    `asked` are the partitions of the request in flight: the plan's own mapping until the request is built, then the
    session's. `asked_news` are those that may differ from the request before (None: any), `news` the same of the
    request that comes next. `trouble` says why the last one came to nothing.
    """

    node_id: int
    backoff: Backoff
    session: FetchSession = attrs.field(factory=FetchSession)
    request: asyncio.Task[None] | None = None
    retry_at: float = 0.0
    asked: Mapping[TopicPartition, PartitionFetch] = attrs.field(factory=dict)
    asked_at: float = 0.0
    asked_news: dict[TopicPartition, None] | None = None
    news: dict[TopicPartition, None] | None = None
    trouble: str = ""


async def ask(cluster: Cluster, node: NodeFetchState, max_bytes: int, config: Config) -> FetchResponse:
    """One Fetch of `node.asked`, within the node's session. Raises what `cluster.request` raises.

    A session has topic ids or names, and what becomes of it depends on the version, so the node is connected first.
    """
    await cluster.connect(node.node_id)
    version = cluster.usable_version(node.node_id, FetchRequest)
    wanted = node.asked
    if version is None or version < EPOCHS_SINCE:
        wanted = {tp: attrs.evolve(one, offset_epoch=None) for tp, one in wanted.items()}
    step = node.session.next_step(
        wanted, node.asked_news, by_id=version is None or version > LAST_VERSION_BY_NAME
    )
    node.asked = node.session.partitions
    if not step.by_id:
        version = min(LAST_VERSION_BY_NAME, version or LAST_VERSION_BY_NAME)
    request = build_request(step, max_bytes, config)
    if logger.isEnabledFor(TRACE):  # once for a request: a loop over partitions that nobody reads would cost
        for one in wanted.values():
            logger.log(TRACE, "Added %s at %d to the Fetch to node %d", one.tp, one.offset, node.node_id)
    return cast(FetchResponse, await cluster.request(node.node_id, request, max_version=version))


def what_is_wrong(code: int) -> str:
    """With an answer that is of no use as a whole and has this error code."""
    if not code:
        return "it answered with other partitions than were asked for"
    refusal = error(code)
    return f"it answered {refusal.name} ({refusal.code})"


async def end_sessions(
    cluster: Cluster, nodes: Iterable[NodeFetchState], config: Config, deadline: float
) -> None:
    """Give its session back to every node that can be reached. Ends by `deadline` (of the loop), raises nothing.

    Nobody waits long for this courtesy: a session that is kept makes room for others after a while.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout_at(min(deadline, asyncio.get_running_loop().time() + COURTESY_SECONDS)):
            await asyncio.gather(*(_end_session(cluster, node, config) for node in nodes))


async def _end_session(cluster: Cluster, node: NodeFetchState, config: Config) -> None:
    """A node answers in order, and a Fetch perhaps late: beside one, the last word has a connection of its own."""
    if not cluster.is_connected(node.node_id):
        return
    waits = node.request is not None
    if node.request is not None:
        node.request.cancel()
    step = node.session.last_step()
    if step is None:
        return
    request = build_request(step, config.fetch_max_bytes, config)
    try:
        await cluster.request(node.node_id, request, purpose="last fetch" if waits else "")
    except KclientError as exc:
        logger.debug("The fetch session with node %d was not given back: %s", node.node_id, exc)
