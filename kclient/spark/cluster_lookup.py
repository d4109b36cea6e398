"""Look up partitions, log bounds and offsets at the brokers, and resolve where a read starts and ends.

earliest, −2          the log start offset          latest, −1       the log end offset
offsets               as given                      timestamps       the first record at or after each
group                 the committed offsets         not named        `startingOffsets.fallback`
"""

from __future__ import annotations

import asyncio
import difflib
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from kclient.config import Config
from kclient.errors import ConfigError, DeadlineError, KclientError, UnknownTopicError
from kclient.network.backoff import Backoff
from kclient.network.errors import broker_error
from kclient.positions.list_offsets import list_offsets
from kclient.protocol.errors import NONE, UNKNOWN_TOPIC_OR_PARTITION
from kclient.runtime import Runtime
from kclient.spark.offsets import EARLIEST, LATEST
from kclient.spark.option_table import Bound, Partitions, Pattern, Selection
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import LogBounds
from kclient.text import format_partitions
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.generated.metadata_response import MetadataResponseTopic
    from kclient.network.cluster import Cluster


class ClusterLookup:
    """Looks up partitions and offsets for one read. Every call ends within `default_api_timeout_ms`."""

    def __init__(self, cluster: Cluster, config: Config, runtime: Runtime) -> None:
        self._cluster = cluster
        self._config = config
        self._runtime = runtime
        self._timeout = config.default_api_timeout_ms / 1000

    async def partitions(self, selection: Selection, *, internal: bool) -> tuple[TopicPartition, ...]:
        """Return the chosen partitions, sorted. Raises UnknownTopicError, TopicAuthorizationError, ConfigError."""
        if isinstance(selection, Pattern):
            return await self._matching(re.compile(selection.expression), internal)
        if isinstance(selection, Partitions):
            existing = await self._of_topics(dict.fromkeys(tp.topic for tp in selection.partitions))
            if missing := [tp for tp in selection.partitions if tp not in existing]:
                raise ConfigError(
                    f"assign names {', '.join(map(str, missing))}, which the cluster does not have. The topic may have "
                    f"fewer partitions. There are {', '.join(map(str, existing))}; name some of these."
                )
            return selection.partitions
        return await self._of_topics(selection.names)

    async def existing(self, selection: Selection, *, internal: bool) -> tuple[TopicPartition, ...]:
        """Return the chosen partitions that exist now, sorted; a deleted topic has none."""
        if isinstance(selection, Pattern):
            return await self._matching(re.compile(selection.expression), internal)
        found = await self._of_topics(selection.topics, missing_ok=True)
        return (
            tuple(tp for tp in selection.partitions if tp in found)
            if isinstance(selection, Partitions)
            else found
        )

    async def committed(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | None]:
        """Return a group's committed offset of each partition, None without one. Raises GroupAuthorizationError, …"""
        from kclient.group.coordinator import Coordinator
        from kclient.group.offset_fetch import CommittedOffsets

        coordinator = Coordinator(self._cluster, group, self._config, self._runtime)
        committed = CommittedOffsets(coordinator, self._config, self._runtime)
        try:
            async with asyncio.timeout(self._timeout):
                found = await committed.fetch(tuple(partitions))
        except TimeoutError as exc:
            if isinstance(exc, KclientError):
                raise
            raise DeadlineError(
                f"Reading the committed offsets of group {group} took longer than {self._timeout:.3g} s. Its "
                "coordinator does not answer. Look at the brokers, or raise kafka.default.api.timeout.ms.",
                waiting_for="OffsetFetch",
                timeout=self._timeout,
            ) from exc
        finally:
            await coordinator.close()
        return {tp: None if at is None else at.offset for tp, at in found.items()}

    async def log_bounds(
        self, partitions: Iterable[TopicPartition], timeout_share: float = 1.0
    ) -> dict[TopicPartition, LogBounds]:
        """Return log start offset and end of each partition from its leader. `timeout_share` is a part of 1."""
        partitions = tuple(partitions)
        first, last = await asyncio.gather(  # one round trip instead of two
            self.offsets_at(dict.fromkeys(partitions, EARLIEST), timeout_share),
            self.offsets_at(dict.fromkeys(partitions, LATEST), timeout_share),
        )
        topic_id = self._cluster.metadata.topic_id
        return {tp: LogBounds(first[tp] or 0, last[tp] or 0, topic_id(tp.topic)) for tp in partitions}

    async def offsets_at(
        self, wanted: Mapping[TopicPartition, int], timeout_share: float = 1.0
    ) -> dict[TopicPartition, int | None]:
        """Return the first offset at or after each time (ms; −2 the log start, −1 the end), None if there is none."""
        config = self._config
        backoff = Backoff.for_retries(config, self._runtime)
        timeout = timeout_share * self._timeout
        found = await list_offsets(self._cluster, wanted, config.isolation, backoff=backoff, timeout=timeout)
        return {tp: None if response is None else response.offset for tp, response in found.items()}

    async def _matching(self, expression: re.Pattern[str], internal: bool) -> tuple[TopicPartition, ...]:
        return tuple(
            tp
            for topic in await self._describe(None)
            if topic.error_code == NONE and expression.search(topic.name or "")
            if internal or not topic.is_internal
            for tp in _partitions_of(topic)
        )

    async def _of_topics(
        self, names: Iterable[str], *, missing_ok: bool = False
    ) -> tuple[TopicPartition, ...]:
        found: list[TopicPartition] = []
        for topic in await self._describe(list(names)):
            if topic.error_code == UNKNOWN_TOPIC_OR_PARTITION:
                if missing_ok:
                    continue
                raise await self._unknown(topic.name or "")
            if topic.error_code != NONE:
                raise broker_error(topic.error_code, f"Looking up topic {topic.name}", topic=topic.name)
            found += _partitions_of(topic)
        return tuple(sorted(found))

    async def _describe(self, names: list[str] | None) -> list[MetadataResponseTopic]:
        response = await self._cluster.describe_topics(names, allow_auto_create=False, timeout=self._timeout)
        return sorted(response.topics, key=lambda topic: topic.name or "")

    async def _unknown(self, name: str) -> UnknownTopicError:
        existing = [topic.name or "" for topic in await self._describe(None) if topic.error_code == NONE]
        near = difflib.get_close_matches(name, existing, n=1)
        hint = f"Did you mean {near[0]}?" if near else "Create it, or correct the name."
        return UnknownTopicError(
            f"Topic {name} does not exist in this cluster. It is misspelt, or was deleted. {hint}",
            topic=name,
            nearest=near[0] if near else None,
        )


def _partitions_of(topic: MetadataResponseTopic) -> list[TopicPartition]:
    return sorted(
        TopicPartition(topic.name or "", partition.partition_index) for partition in topic.partitions
    )


# --- where a read starts and ends ------------------------------------------------------------------------------------


Bounds: TypeAlias = Mapping[TopicPartition, LogBounds]
Offsets: TypeAlias = dict[TopicPartition, int]

WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}


async def resolve_start(lookup: ClusterLookup, options: SourceOptions, bounds: Bounds) -> Offsets:
    """Return the first offset to read of each partition in `bounds`.

    Raises ConfigError if the options name none for one.
    """
    bound, unnamed = options.start, WORDS.get(options.start_fallback)
    if bound.group:
        committed = await lookup.committed(options.group or "", bounds)
        return _filled(bound, {tp: at for tp, at in committed.items() if at is not None}, bounds, unnamed)
    return await _resolve(lookup, bound, bounds, unnamed, WORDS.get(options.late_start))


async def resolve_end(lookup: ClusterLookup, options: SourceOptions, bounds: Bounds) -> Offsets:
    """Return the end offset (exclusive) of each partition in `bounds`; no record at a time means the log's end."""
    unnamed = None if options.start_fallback == "error" else LATEST
    return await _resolve(lookup, options.end, bounds, unnamed, LATEST)


async def _resolve(
    lookup: ClusterLookup, bound: Bound, bounds: Bounds, unnamed: int | None, too_late: int | None
) -> Offsets:
    if bound.offset is not None:
        return {tp: _placed(bound.offset, log) for tp, log in bounds.items()}
    if bound.offsets is not None:
        return _filled(bound, bound.offsets, bounds, unnamed)
    if bound.timestamps is None:
        times = dict.fromkeys(bounds, bound.timestamp or 0)
    else:
        _require_known(bound, bound.timestamps, bounds)
        times = dict(bound.timestamps)
    return _filled(bound, await _at_times(lookup, bound, times, too_late), bounds, unnamed)


async def _at_times(lookup: ClusterLookup, bound: Bound, times: Offsets, too_late: int | None) -> Offsets:
    """Return the offset at each time (ms), or `too_late` for a time after the newest record."""
    found = await lookup.offsets_at(times)
    for tp, offset in found.items():
        if offset is None and too_late is None:
            raise ConfigError(
                f"{bound.option}: {tp} has no record at or after {times[tp]} (ms since 1970): its newest record is "
                "older, or it is empty. Choose an earlier time, or set startingOffsetsByTimestampStrategy to latest."
            )
    return {tp: offset if offset is not None else too_late or LATEST for tp, offset in found.items()}


def _filled(
    bound: Bound, offsets: Mapping[TopicPartition, int], bounds: Bounds, unnamed: int | None
) -> Offsets:
    """Return an offset for exactly the partitions in `bounds`. Raises ConfigError if one is missing or unknown."""
    _require_known(bound, offsets, bounds)
    missing = [tp for tp in bounds if tp not in offsets]
    if missing and unnamed is None:
        lacking = "=group finds no commit for" if bound.group else " does not name"
        remedy = "Commit there first" if bound.group else "Name them too"
        raise ConfigError(
            f"{bound.option}{lacking} {format_partitions(missing)}. Every partition needs an offset. {remedy}, or set "
            "startingOffsets.fallback to earliest or latest."
        )
    return {tp: _placed(offsets.get(tp, unnamed or 0), log) for tp, log in bounds.items()}


def _placed(offset: int, log: LogBounds) -> int:
    return {EARLIEST: log.start, LATEST: log.end}.get(offset, offset)


def _require_known(bound: Bound, named: Mapping[TopicPartition, int], bounds: Bounds) -> None:
    unknown = [tp for tp in named if tp not in bounds]
    if unknown:
        raise ConfigError(
            f"{bound.option} names {format_partitions(unknown)}, which this query does not read. "
            f"It reads {format_partitions(bounds)}; name these."
        )
