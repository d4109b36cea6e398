"""ListOffsets: which offset stands at the beginning, at the end, or at a time. Asked of each partition's leader.

One request per leader, in parallel; what has no leader or no answer yet is asked again with fresh metadata.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from kclient.errors import DeadlineError, KclientError, VersionError
from kclient.generated.list_offsets_response import ListOffsetsResponse
from kclient.log import get_logger
from kclient.network.backoff import Backoff
from kclient.network.errors import broker_error
from kclient.positions.list_offsets_messages import (
    ListedOffsets,
    build_request,
    min_version,
    split_answer,
    too_old,
)
from kclient.protocol.errors import TOPIC_AUTHORIZATION_FAILED
from kclient.text import format_partitions
from kclient.types import IsolationLevel, OffsetAndTimestamp, TopicPartition

if TYPE_CHECKING:
    from kclient.network.cluster import Cluster
    from kclient.network.metadata import MetadataCache

logger = get_logger("kclient.positions")

DEFAULT_REQUEST_TIMEOUT_MS = 30_000


async def list_offsets(
    cluster: Cluster,
    wanted: Mapping[TopicPartition, int],
    isolation_level: IsolationLevel,
    *,
    backoff: Backoff,
    timeout: float,
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """The offset of each partition at its timestamp (ms since 1970; −1 the end, −2 the beginning), None without one.

    Goes on until every partition was answered. `timeout` is in seconds; 0 asks nobody and returns nothing. Raises
    DeadlineError, TopicAuthorizationError, and whatever else no retry heals.
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
                answered |= await ask_leaders(cluster, remaining, isolation_level)
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


async def ask_leader(
    cluster: Cluster,
    node_id: int,
    wanted: Mapping[TopicPartition, int],
    isolation_level: IsolationLevel,
    timeout_ms: int = DEFAULT_REQUEST_TIMEOUT_MS,
) -> ListedOffsets:
    """One request to one leader. Raises TopicAuthorizationError, VersionError, or what else `Cluster.request` raises.

    Built anew for every attempt, so that a new leader epoch is sent.
    """
    epochs = {tp: cluster.metadata.leader(tp).epoch for tp in wanted}
    request = build_request(wanted, epochs, isolation_level, timeout_ms)
    least = min_version(wanted.values(), isolation_level)
    try:
        answer = await cluster.request(node_id, request, min_version=least)
    except VersionError as exc:
        raise too_old(exc, least) from exc
    return split_answer(cast(ListOffsetsResponse, answer), wanted)


def group_by_leader(
    metadata: MetadataCache, partitions: Iterable[TopicPartition]
) -> tuple[dict[int, list[TopicPartition]], list[TopicPartition]]:
    """Leader → its partitions, and the partitions whose leader is not known."""
    leaders: dict[int, list[TopicPartition]] = {}
    unknown = []
    for tp in partitions:
        node_id = metadata.leader(tp).node_id
        if node_id is None:
            unknown.append(tp)
        else:
            leaders.setdefault(node_id, []).append(tp)
    return leaders, unknown


async def ask_leaders(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], isolation_level: IsolationLevel
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """One round: each leader that is known is asked once. What has no answer is not in the result, and may be asked
    again; raises what no retry heals."""
    leaders, _ = group_by_leader(cluster.metadata, wanted)
    questions = [
        ask_leader(cluster, node_id, {tp: wanted[tp] for tp in partitions}, isolation_level)
        for node_id, partitions in leaders.items()
    ]
    answered: dict[TopicPartition, OffsetAndTimestamp | None] = {}
    for answer in await asyncio.gather(*questions, return_exceptions=True):
        if isinstance(answer, ListedOffsets):
            answered |= answer.found
            answered |= dict.fromkeys(answer.missing)
            if answer.refused:
                logger.debug(
                    "ListOffsets was refused for %s, will ask again", format_partitions(answer.refused)
                )
            for tp, found in answer.found.items():
                cluster.saw_leader_epoch(tp, found.leader_epoch)
        elif isinstance(answer, KclientError) and answer.retriable:
            logger.debug("ListOffsets failed, will ask again: %s", answer)
        else:
            raise answer
    return answered


async def _refresh(cluster: Cluster, partitions: Iterable[TopicPartition], timeout: float) -> None:
    """Ask for the leaders anew, also of topics that the consumer does not follow otherwise."""
    topics = list(dict.fromkeys(tp.topic for tp in partitions))
    try:
        answer = await cluster.describe_topics(topics, allow_auto_create=False, timeout=timeout)
    except KclientError as exc:
        if not exc.retriable:
            raise
        return
    refused = [topic.name or "" for topic in answer.topics if topic.error_code == TOPIC_AUTHORIZATION_FAILED]
    if refused:
        raise broker_error(TOPIC_AUTHORIZATION_FAILED, "Looking up offsets", topics=refused)
