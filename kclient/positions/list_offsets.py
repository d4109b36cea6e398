"""ListOffsets: the offset at the beginning, at the end, or at a timestamp, from each partition's leader.

One request per leader, in parallel. Partitions without a leader or a result are retried with fresh metadata.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

import attrs

from kclient.errors import DeadlineError, KclientError, VersionError
from kclient.generated.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kclient.generated.list_offsets_response import ListOffsetsPartitionResponse, ListOffsetsResponse
from kclient.log import get_logger
from kclient.network.backoff import Backoff
from kclient.network.errors import broker_error
from kclient.protocol.errors import TOPIC_AUTHORIZATION_FAILED, UNSUPPORTED_FOR_MESSAGE_FORMAT
from kclient.text import format_partitions
from kclient.types import IsolationLevel, OffsetAndTimestamp, TopicPartition

if TYPE_CHECKING:
    from kclient.network.cluster import Cluster
    from kclient.network.metadata import MetadataCache

logger: Final = get_logger("kclient.positions")

DEFAULT_REQUEST_TIMEOUT_MS = 30_000


async def list_offsets(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, int],
    isolation_level: IsolationLevel,
    *,
    backoff: Backoff,
    timeout: float,
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """Return the offset of each partition at its timestamp (ms since 1970; −1 the end, −2 the beginning), or None.

    Retries until every partition has a result. `timeout` is in seconds; with 0 no request is sent and nothing is
    returned. Raises DeadlineError, TopicAuthorizationError, and any other error that is not retriable.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    answered: dict[TopicPartition, OffsetAndTimestamp | None] = {}
    remaining = dict(wanted)
    if timeout <= 0 or not wanted:
        return answered
    try:
        async with asyncio.timeout_at(deadline):
            while True:
                answered |= await list_offsets_once(cluster, remaining, isolation_level)
                remaining = {tp: timestamp for tp, timestamp in wanted.items() if tp not in answered}
                if not remaining:
                    return answered
                await _refresh(cluster, remaining, deadline - loop.time())
                await asyncio.sleep(backoff.next())
    except TimeoutError:
        raise DeadlineError(
            f"Looking up the offsets of {format_partitions(remaining)} took longer than {timeout:.3g} s. The "
            "partitions may not exist or have no leader, or the brokers do not answer. Check the names and "
            "numbers with partitions_for(), look at the brokers, or call again with a longer timeout.",
            waiting_for="ListOffsets",
            timeout=timeout,
        ) from None


async def list_offsets_from(
    cluster: Cluster,
    node_id: int,
    wanted: Mapping[TopicPartition, int],
    isolation_level: IsolationLevel,
    timeout_ms: int = DEFAULT_REQUEST_TIMEOUT_MS,
) -> ListedOffsets:
    """Send one request to one leader. Raises TopicAuthorizationError, VersionError, and what `Cluster.request` raises.

    Every attempt builds its request, so that a new leader epoch is sent.
    """
    epochs = {tp: cluster.metadata.leader(tp).epoch for tp in wanted}
    request = build_request(wanted, epochs, isolation_level, timeout_ms)
    least = min_version(wanted.values(), isolation_level)
    try:
        response = await cluster.request(node_id, request, min_version=least)
    except VersionError as exc:
        raise version_error(exc, least) from exc
    return parse_response(cast(ListOffsetsResponse, response), wanted)


def group_by_leader(
    metadata: MetadataCache, partitions: Iterable[TopicPartition]
) -> tuple[dict[int, list[TopicPartition]], list[TopicPartition]]:
    """Return the partitions of each leader, and the partitions whose leader is not known."""
    leaders: dict[int, list[TopicPartition]] = {}
    unknown = []
    for tp in partitions:
        node_id = metadata.leader(tp).node_id
        if node_id is None:
            unknown.append(tp)
        else:
            leaders.setdefault(node_id, []).append(tp)
    return leaders, unknown


async def list_offsets_once(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], isolation_level: IsolationLevel
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """Send one request to each known leader. Partitions to retry are not in the result.

    Raises errors that are not retriable.
    """
    leaders, _ = group_by_leader(cluster.metadata, wanted)
    questions = [
        list_offsets_from(cluster, node_id, {tp: wanted[tp] for tp in partitions}, isolation_level)
        for node_id, partitions in leaders.items()
    ]
    answered: dict[TopicPartition, OffsetAndTimestamp | None] = {}
    for response in await asyncio.gather(*questions, return_exceptions=True):
        if isinstance(response, ListedOffsets):
            answered |= response.found
            answered |= dict.fromkeys(response.missing)
            if response.refused:
                logger.debug(
                    "ListOffsets was refused for %s, will ask again", format_partitions(response.refused)
                )
            for tp, found in response.found.items():
                cluster.update_last_seen_epoch(tp, found.leader_epoch)
        elif isinstance(response, KclientError) and response.retriable:
            logger.debug("ListOffsets failed, will ask again: %s", response)
        else:
            raise response
    return answered


async def _refresh(cluster: Cluster, partitions: Iterable[TopicPartition], timeout: float) -> None:
    """Request metadata of these topics, also of topics that the consumer is not subscribed to."""
    topics = list(dict.fromkeys(tp.topic for tp in partitions))
    try:
        response = await cluster.describe_topics(topics, allow_auto_create=False, timeout=timeout)
    except KclientError as exc:
        if not exc.retriable:
            raise
        return
    refused = [
        topic.name or "" for topic in response.topics if topic.error_code == TOPIC_AUTHORIZATION_FAILED
    ]
    if refused:
        raise broker_error(TOPIC_AUTHORIZATION_FAILED, "Looking up offsets", topics=refused)


# --- the messages ---------------------------------------------------------------------------------------------
#
# no error and an offset       found
# no error and offset -1       there is none (a search by time beyond the last record)
# 43, format too old           counts as none
# 29, not authorized           the whole response fails, with every such topic in the error
# any other code, or missing   retried


ISOLATION_SINCE: Final = 2
TIMES_SINCE: Final = 1
MISSING_FEATURES: Final = {
    ISOLATION_SINCE: "isolation_level read_committed needs Kafka 0.11, the first with transactions; "
    "read_uncommitted reads the same from older brokers. ",
    TIMES_SINCE: "A search by time needs Kafka 0.10.1. ",
}


@attrs.frozen
class ListedOffsets:
    """A response by partition: found offsets, partitions without such an offset, and partitions to retry.

    `refused` holds the error codes of partitions to retry.
    """

    found: Mapping[TopicPartition, OffsetAndTimestamp]
    missing: Sequence[TopicPartition]
    retry: Sequence[TopicPartition]
    refused: Mapping[TopicPartition, int]


def min_version(timestamps: Iterable[int], isolation_level: IsolationLevel) -> int:
    """Return the lowest usable version: 2 has isolation levels, 1 a search by time, 0 only begin and end."""
    if isolation_level is IsolationLevel.READ_COMMITTED:
        return ISOLATION_SINCE
    return TIMES_SINCE if any(timestamp >= 0 for timestamp in timestamps) else 0


def version_error(refusal: VersionError, version: int) -> VersionError:
    """Return the same error with the feature that is missing and the alternative."""
    return VersionError(
        MISSING_FEATURES.get(version, "") + refusal.text,
        api=refusal.api,
        host=refusal.host,
        port=refusal.port,
        node_id=refusal.node_id,
    )


def build_request(
    wanted: Mapping[TopicPartition, int],
    epochs: Mapping[TopicPartition, int | None],
    isolation_level: IsolationLevel,
    timeout_ms: int,
) -> ListOffsetsRequest:
    """Return the request for partitions of one leader: partition → timestamp, with the present leader epochs."""
    topics: dict[str, ListOffsetsTopic] = {}
    for tp, timestamp in wanted.items():
        topic = topics.setdefault(tp.topic, ListOffsetsTopic(name=tp.topic))
        epoch = epochs[tp]
        topic.partitions.append(
            ListOffsetsPartition(
                partition_index=tp.partition,
                current_leader_epoch=-1 if epoch is None else epoch,
                timestamp=timestamp,
            )
        )
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(isolation_level),
        topics=list(topics.values()),
        timeout_ms=timeout_ms,
    )


def parse_response(response: ListOffsetsResponse, wanted: Iterable[TopicPartition]) -> ListedOffsets:
    """Sort the partitions of a response. Raises TopicAuthorizationError with every unauthorized topic."""
    found: dict[TopicPartition, OffsetAndTimestamp] = {}
    missing: dict[TopicPartition, None] = {}
    refused: dict[TopicPartition, int] = {}
    forbidden: dict[str, None] = {}
    for tp, partition in _partitions(response):
        if partition.error_code == TOPIC_AUTHORIZATION_FAILED:
            forbidden[tp.topic] = None
        elif partition.error_code == UNSUPPORTED_FOR_MESSAGE_FORMAT:
            missing[tp] = None
        elif partition.error_code:
            refused[tp] = partition.error_code
        elif (offset := _offset(partition)) < 0:
            missing[tp] = None
        else:
            epoch = partition.leader_epoch if partition.leader_epoch >= 0 else None
            found[tp] = OffsetAndTimestamp(offset, partition.timestamp, epoch)
    if forbidden:
        raise broker_error(TOPIC_AUTHORIZATION_FAILED, "Looking up offsets (ListOffsets)", topics=forbidden)
    wanted = dict.fromkeys(wanted)
    return ListedOffsets(
        {tp: offset for tp, offset in found.items() if tp in wanted},
        [tp for tp in wanted if tp in missing],
        [tp for tp in wanted if tp not in found and tp not in missing],
        {tp: code for tp, code in refused.items() if tp in wanted},
    )


def _partitions(
    response: ListOffsetsResponse,
) -> Iterator[tuple[TopicPartition, ListOffsetsPartitionResponse]]:
    for topic in response.topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.name, partition.partition_index), partition


def _offset(partition: ListOffsetsPartitionResponse) -> int:
    """Return the offset; version 0 returns a list, and the request limits it to one entry."""
    return partition.old_style_offsets[0] if partition.old_style_offsets else partition.offset
