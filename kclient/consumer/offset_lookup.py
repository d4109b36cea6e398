"""Lookups that change nothing: topics and partitions, offsets by time, beginnings and ends, lag.

Lag: where the end of a partition is not known yet, one background task requests the ends of all partitions that were
asked for meanwhile, with one ListOffsets per leader, so that `current_lag` of a thousand partitions does not send a
thousand requests.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from kclient.config import Config
from kclient.consumer.arguments import checked_partitions, checked_topics
from kclient.consumer.assigned import AssignedPartitions
from kclient.consumer.tasks import BackgroundTasks, CallTimeouts, Lifecycle
from kclient.errors import ArgumentError, KclientError
from kclient.generated.metadata_response import MetadataResponse, MetadataResponseTopic
from kclient.log import get_logger
from kclient.network.backoff import Backoff
from kclient.network.cluster import Cluster
from kclient.network.errors import broker_error
from kclient.positions.list_offsets import list_offsets, list_offsets_once
from kclient.positions.state import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, PartitionState
from kclient.protocol.errors import INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED
from kclient.runtime import Runtime
from kclient.types import (
    Broker,
    IsolationLevel,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    PartitionInfo,
    TopicPartition,
)

log: Final = get_logger("kclient.consumer")

EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MILLISECOND: Final = datetime.timedelta(milliseconds=1)
Moment: TypeAlias = int | datetime.datetime | datetime.timedelta
"""A time: ms since 1970, a datetime with a time zone, or how long ago it was."""
# 2001 to 5138 in seconds; 12 January 1970 to March 1973 in ms.
LOOKS_LIKE_SECONDS: Final = range(10**9, 10**11)
GRACE_SECONDS: Final = 0.5  # the lookup's own deadline passes first: its error names the missing partitions
FATAL_FOR_A_TOPIC = (TOPIC_AUTHORIZATION_FAILED, INVALID_TOPIC_EXCEPTION)


class OffsetLookup:
    """The calls of one consumer that look up topics and offsets."""

    def __init__(
        self,
        config: Config,
        runtime: Runtime,
        cluster: Cluster,
        timeouts: CallTimeouts,
        lifecycle: Lifecycle,
        tasks: BackgroundTasks,
        lag: ConsumerLag,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._cluster = cluster
        self._timeouts = timeouts
        self._lifecycle = lifecycle
        self._tasks = tasks
        self._lag = lag

    # --- topics

    async def partitions_for(self, topic: str, timeout: float) -> list[PartitionInfo]:
        """Return the partitions of one topic, none if it does not exist."""
        (name,) = checked_topics([topic])
        async with self._timeouts.limit(timeout, f"the partitions of {name}"):
            await self._lifecycle.start()
            response = await self._cluster.describe_topics(
                [name], allow_auto_create=self._config.allow_auto_create_topics, timeout=timeout
            )
        return self._partitions(response, checking=True).get(name, [])

    async def list_topics(self, timeout: float) -> dict[str, list[PartitionInfo]]:
        """Return every topic that this client may see, with its partitions."""
        async with self._timeouts.limit(timeout, "the list of topics"):
            await self._lifecycle.start()
            response = await self._cluster.describe_topics(None, allow_auto_create=False, timeout=timeout)
        return self._partitions(response, checking=False)

    async def brokers(self, timeout: float) -> dict[int, Broker]:
        """Request the brokers of the cluster, and return them by id."""
        async with self._timeouts.limit(timeout, "the list of brokers"):
            await self._lifecycle.start()
            await self._cluster.describe_topics([], allow_auto_create=False, timeout=timeout)
        return dict(self._cluster.metadata.brokers)

    def _partitions(self, response: MetadataResponse, *, checking: bool) -> dict[str, list[PartitionInfo]]:
        """Return the partitions in a Metadata response, which the metadata cache holds already with its brokers."""
        found: dict[str, list[PartitionInfo]] = {}
        named = dict(self._cluster.metadata.brokers)
        for topic in response.topics:
            if checking and topic.error_code in FATAL_FOR_A_TOPIC:
                raise broker_error(topic.error_code, f"Describing topic {topic.name}", topic=topic.name)
            if topic.name and not topic.error_code:
                found[topic.name] = _infos(topic, named)
        return found

    # --- offsets

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, Moment], timeout: float
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first offset at or after each time, None if there is none."""
        now = self._runtime.wall_ms()
        wanted = {tp: _milliseconds(tp, when, now) for (tp, when) in _checked_times(times)}
        found = await self._list_offsets(wanted, timeout)
        return {partition: found.get(partition) for partition in wanted}

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        return await self._ends(partitions, EARLIEST_TIMESTAMP, timeout)

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last record that may be read: high watermark, or last stable offset."""
        return await self._ends(partitions, LATEST_TIMESTAMP, timeout)

    async def _ends(
        self, partitions: Iterable[TopicPartition], timestamp: int, timeout: float
    ) -> dict[TopicPartition, int]:
        chosen = checked_partitions(partitions)
        found = await self._list_offsets(dict.fromkeys(chosen, timestamp), timeout)
        return {tp: response.offset for tp in chosen if (response := found.get(tp)) is not None}

    async def _list_offsets(
        self, times: Mapping[TopicPartition, int], timeout: float
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Send ListOffsets to the leaders. With timeout 0 send it in the background and return nothing."""
        if timeout == 0:
            self._tasks.spawn("offset lookup", self._list_in_background(times))
            return {}
        deadline = self._runtime.now() + timeout
        async with self._timeouts.limit(timeout, "the first connection"):
            await self._lifecycle.start()
        left = deadline - self._runtime.now()
        backoff = Backoff.for_retries(self._config, self._runtime)
        async with self._timeouts.limit(left + GRACE_SECONDS, "the offsets"):
            found = await list_offsets(
                self._cluster, times, self._config.isolation, backoff=backoff, timeout=left
            )
        self._lag.learn_ends(
            {tp: at.offset for tp, at in found.items() if at is not None and times[tp] == LATEST_TIMESTAMP}
        )
        return found

    async def _list_in_background(self, times: Mapping[TopicPartition, int]) -> None:
        try:
            await self._list_offsets(times, self._config.request_timeout_ms / 1000)
        except KclientError as exc:
            log.debug("a background offset lookup failed: %s", exc)


class ConsumerLag:
    """The lag of each partition, and the partitions whose end is not known yet."""

    def __init__(
        self,
        config: Config,
        runtime: Runtime,
        cluster: Cluster,
        lifecycle: Lifecycle,
        assigned: AssignedPartitions,
        tasks: BackgroundTasks,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._cluster = cluster
        self._lifecycle = lifecycle
        self._assigned = assigned
        self._positions = assigned.positions
        self._tasks = tasks
        self._isolation = config.isolation
        self._unknown: dict[TopicPartition, PartitionState] = {}
        self._asked: dict[TopicPartition, PartitionState] = {}
        self._asking = False

    def current(self, partition: TopicPartition) -> int | None:
        """Return the number of records after those returned; None while an end is unknown, which is then requested."""
        state = self._positions.state(partition)
        end = self._end(state)
        if end is None:
            self._learn(partition, state)
        position = self._positions.position(partition)
        if end is None or position is None:
            return None
        here = OffsetAndMetadata(position.offset, position.offset_epoch)
        delivered = self._assigned.delivered
        consumed = here if state.topic_replaced else delivered.consumed({partition: here})[partition]
        return max(0, end - consumed.offset)

    def learn_ends(self, ends: Mapping[TopicPartition, int]) -> None:
        """Keep the ends that a lookup returned for assigned partitions, as Java does."""
        for partition, end in ends.items():
            if (state := self._positions.find(partition)) is not None:
                self._note(state, end)

    def _end(self, state: PartitionState) -> int | None:
        if self._isolation is IsolationLevel.READ_COMMITTED:
            return state.last_stable_offset
        return state.high_watermark

    def _learn(self, partition: TopicPartition, state: PartitionState) -> None:
        if not self._lifecycle.running or partition in self._asked:
            return
        self._unknown[partition] = state
        if not self._asking:
            self._asking = True
            self._tasks.spawn("look at the ends of partitions", self._ask())

    async def _ask(self) -> None:
        backoff = Backoff.for_retries(self._config, self._runtime)
        try:
            while self._unknown:
                # Partitions that are added while the request is in flight go into the next one.
                self._asked, self._unknown = self._unknown, {}
                answered = await self._ask_once()
                self._asked = {}
                if not answered:
                    await asyncio.sleep(backoff.next())
        except KclientError as exc:
            log.debug("the ends of partitions are not known yet: %s", exc)
        finally:
            self._asking, self._asked = False, {}

    async def _ask_once(self) -> bool:
        """Request the ends once. Return whether every partition was answered."""
        cluster, wanted = self._cluster, self._asked
        found = await list_offsets_once(cluster, dict.fromkeys(wanted, LATEST_TIMESTAMP), self._isolation)
        for partition, response in found.items():
            if response is not None:
                self._note(wanted[partition], response.offset)
        if len(found) < len(wanted):
            cluster.request_update("a partition whose end was asked for has no leader that answers")
        return len(found) == len(wanted)

    def _note(self, state: PartitionState, end: int) -> None:
        if self._isolation is IsolationLevel.READ_COMMITTED:
            state.last_stable_offset = end
        else:
            state.high_watermark = end


def _checked_times(times: Mapping[TopicPartition, Moment]) -> Iterator[tuple[TopicPartition, Moment]]:
    if not isinstance(times, Mapping):
        raise ArgumentError(f"Times are a mapping of TopicPartition to a time, not {times!r}.")
    for partition, when in times.items():
        (tp,) = checked_partitions([partition])
        yield tp, when


def _milliseconds(tp: TopicPartition, when: Moment, now_ms: int) -> int:
    """Return ms since 1970. Raise ArgumentError for a naive datetime, and for a number that looks like seconds."""
    if isinstance(when, datetime.timedelta):
        if when < datetime.timedelta(0):
            raise ArgumentError(
                f"The time for {tp} is {when!r}, which is in the future: a timedelta is an age, so "
                "timedelta(hours=1) is an hour ago."
            )
        when = max(0, now_ms - when // MILLISECOND)
    if isinstance(when, datetime.datetime):
        if when.tzinfo is None:
            raise ArgumentError(
                f"The time for {tp} is {when!r}, which has no time zone, so the moment is not defined. "
                "Give it one, as in datetime.now(timezone.utc)."
            )
        when = (when - EPOCH) // MILLISECOND
    if isinstance(when, bool) or not isinstance(when, int) or when < 0:
        raise ArgumentError(
            f"The time for {tp} is {when!r}. Times are whole milliseconds since 1970 (UTC), datetimes, or timedeltas. "
            "Use beginning_offsets() or end_offsets() for the ends of the log."
        )
    if when in LOOKS_LIKE_SECONDS:
        raise ArgumentError(
            f"The time for {tp} is {when}, which looks like seconds: as milliseconds it is in the early 1970s. "
            f"Pass milliseconds ({when * 1000}) or a datetime."
        )
    return when


def _infos(topic: MetadataResponseTopic, named: Mapping[int, Broker]) -> list[PartitionInfo]:
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    return [
        PartitionInfo(
            topic.name or "",
            partition.partition_index,
            partition.leader_id if partition.leader_id >= 0 else None,
            tuple(partition.replica_nodes),
            tuple(partition.isr_nodes),
            tuple(partition.offline_replicas),
            named,
        )
        for partition in partitions
    ]
