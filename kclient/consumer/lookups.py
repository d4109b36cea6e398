"""Questions to the cluster that change nothing: topics and partitions, offsets by time, beginnings, ends, lag."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from kclient.consumer.session import Session
from kclient.consumer.subscription import checked_partitions, checked_topics
from kclient.errors import ArgumentError, KclientError
from kclient.network.backoff import Backoff
from kclient.network.failures import broker_error
from kclient.positions.list_offsets import list_offsets
from kclient.positions.state import PartitionState
from kclient.positions.strategy import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kclient.protocol.errors import INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED
from kclient.types import IsolationLevel, OffsetAndTimestamp, PartitionInfo, TopicPartition

if TYPE_CHECKING:
    from kclient.generated.metadata_response import MetadataResponse, MetadataResponseTopic

log = logging.getLogger("kclient.consumer")

TELLING_SECONDS: Final = 0.5  # the look-up's own deadline knows which partitions are missing: it speaks first
FATAL_FOR_A_TOPIC = (TOPIC_AUTHORIZATION_FAILED, INVALID_TOPIC_EXCEPTION)


async def partitions_for(session: Session, topic: str, timeout: float) -> list[PartitionInfo]:
    """The partitions of one topic, none if it does not exist. Spec: B.2."""
    (name,) = checked_topics([topic])
    async with session.waits.limit(timeout, f"the partitions of {name}"):
        await session.start()
        answer = await session.cluster.describe_topics(
            [name], allow_auto_create=session.config.allow_auto_create_topics, timeout=timeout
        )
    return _partitions(answer, checking=True).get(name, [])


async def list_topics(session: Session, timeout: float) -> dict[str, list[PartitionInfo]]:
    """Every topic that this client may see, with its partitions. Spec: B.2."""
    async with session.waits.limit(timeout, "the list of topics"):
        await session.start()
        answer = await session.cluster.describe_topics(None, allow_auto_create=False, timeout=timeout)
    return _partitions(answer, checking=False)


async def offsets_for_times(
    session: Session, times: Mapping[TopicPartition, int], timeout: float
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """The first offset at or after each time; None where there is none. Spec: B.2, B.8."""
    for partition, timestamp in times.items():
        checked_partitions([partition])
        if isinstance(timestamp, bool) or not isinstance(timestamp, int) or timestamp < 0:
            raise ArgumentError(
                f"The time for {partition} is {timestamp!r}. Times are whole milliseconds since 1970 (UTC). "
                "Use beginning_offsets() or end_offsets() for the ends of the log."
            )
    found = await _ask(session, times, timeout)
    return {partition: found.get(partition) for partition in times}


async def beginning_offsets(
    session: Session, partitions: Iterable[TopicPartition], timeout: float
) -> dict[TopicPartition, int]:
    """The first offset of each partition."""
    return await _ends(session, partitions, EARLIEST_TIMESTAMP, timeout)


async def end_offsets(
    session: Session, partitions: Iterable[TopicPartition], timeout: float
) -> dict[TopicPartition, int]:
    """The offset behind the last record that may be read: high watermark, or last stable offset."""
    return await _ends(session, partitions, LATEST_TIMESTAMP, timeout)


def current_lag(session: Session, partition: TopicPartition) -> int | None:
    """Records behind what was handed out, None until both ends are known; then the end is asked for. Spec: B.2."""
    state = session.positions.state(partition)
    committed_only = _isolation(session) is IsolationLevel.READ_COMMITTED
    end = state.last_stable_offset if committed_only else state.high_watermark
    if end is None and not state.end_offset_requested and session.running:
        state.end_offset_requested = True
        session.flows.errand("look at the end of a partition", _learn_end(session, partition, state))
    position = session.positions.position(partition)
    if end is None or position is None:
        return None
    consumed = session.consumed().get(partition)
    return max(0, end - (consumed.offset if consumed is not None else position.offset))


async def _learn_end(session: Session, partition: TopicPartition, state: PartitionState) -> None:
    ends: dict[TopicPartition, int] = {}
    try:
        ends = await end_offsets(session, [partition], session.config.default_api_timeout_ms / 1000)
    except KclientError as error:
        log.debug("the end of %s is not known yet: %s", partition, error)
    finally:
        state.end_offset_requested = False
    if _isolation(session) is IsolationLevel.READ_COMMITTED:
        state.last_stable_offset = ends.get(partition, state.last_stable_offset)
    else:
        state.high_watermark = ends.get(partition, state.high_watermark)


async def _ends(
    session: Session, partitions: Iterable[TopicPartition], timestamp: int, timeout: float
) -> dict[TopicPartition, int]:
    chosen = checked_partitions(partitions)
    found = await _ask(session, dict.fromkeys(chosen, timestamp), timeout)
    return {tp: answer.offset for tp in chosen if (answer := found.get(tp)) is not None}


async def _ask(
    session: Session, times: Mapping[TopicPartition, int], timeout: float
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    if timeout == 0:
        session.flows.errand("lookup that nobody waits for", _ask_unheard(session, times))
        return {}
    deadline = session.runtime.now() + timeout
    async with session.waits.limit(timeout, "the first connection"):
        await session.start()
    left = deadline - session.runtime.now()
    backoff = Backoff.for_retries(session.config, session.runtime)
    async with session.waits.limit(left + TELLING_SECONDS, "the offsets"):
        return await list_offsets(session.cluster, times, _isolation(session), backoff=backoff, timeout=left)


async def _ask_unheard(session: Session, times: Mapping[TopicPartition, int]) -> None:
    try:
        await _ask(session, times, session.config.request_timeout_ms / 1000)
    except KclientError as error:
        log.debug("a lookup that nobody waited for failed: %s", error)


def _isolation(session: Session) -> IsolationLevel:
    return IsolationLevel[session.config.isolation_level.upper()]


def _partitions(answer: MetadataResponse, *, checking: bool) -> dict[str, list[PartitionInfo]]:
    found: dict[str, list[PartitionInfo]] = {}
    for topic in answer.topics:
        if checking and topic.error_code in FATAL_FOR_A_TOPIC:
            raise broker_error(topic.error_code, f"Describing topic {topic.name}", topic=topic.name)
        if topic.name and not topic.error_code:
            found[topic.name] = _infos(topic)
    return found


def _infos(topic: MetadataResponseTopic) -> list[PartitionInfo]:
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    return [
        PartitionInfo(
            topic.name or "",
            partition.partition_index,
            partition.leader_id if partition.leader_id >= 0 else None,
            tuple(partition.replica_nodes),
            tuple(partition.isr_nodes),
            tuple(partition.offline_replicas),
        )
        for partition in partitions
    ]
