"""The driver's part of a batch: which ranges to read. One cluster is opened, asked and closed.

    which partitions → where each log begins and ends → start and end of each → what of it is still there → split

Spec: SP-36, SP-49, SP-55, SP-57.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final

from kclient.errors import ConfigError, KclientError, UnknownTopicError
from kclient.network.cluster import Cluster
from kclient.runtime import Runtime
from kclient.spark.choices import Bound
from kclient.spark.lookup import Lookup
from kclient.spark.options import SourceOptions
from kclient.spark.plan import Loss, OffsetRange, report, split, within_log
from kclient.types import TopicPartition

log = logging.getLogger("kclient.spark")

CLOSE_SECONDS: Final = 5.0

Offsets = Mapping[TopicPartition, int]


async def plan_batch(options: SourceOptions, runtime: Runtime | None = None) -> list[OffsetRange]:
    """The ranges that a batch reads, in order. Raises DataLossError, UnknownTopicError, ConfigError, ConnectError, …

    What may pass by itself is tried again `fetchOffset.numRetries` times.
    """
    runtime = runtime or Runtime()
    config = options.config("driver")
    cluster = Cluster(config, runtime)
    cluster.set_topics(options.selection.topics)
    try:
        await cluster.start()
        lookup = Lookup(cluster, config, runtime)
        for retries_left in reversed(range(options.offset_retries + 1)):
            try:
                return await _plan(lookup, options)
            except KclientError as failure:
                if not retries_left or not (failure.retriable or isinstance(failure, UnknownTopicError)):
                    raise
                log.info("planning failed, %d retries left: %s", retries_left, failure)
            await asyncio.sleep(options.offset_retry_interval_ms / 1000)
        return []
    finally:
        await cluster.close(CLOSE_SECONDS)


async def _plan(lookup: Lookup, options: SourceOptions) -> list[OffsetRange]:
    partitions = await lookup.partitions(options.selection, internal=options.include_internal_topics)
    bounds = await lookup.log_bounds(partitions)
    first = {tp: log.start for tp, log in bounds.items()}
    last = {tp: log.end for tp, log in bounds.items()}
    unnamed_are_fine = options.start_fallback == "earliest"
    for bound in (options.start, options.end):
        _check_named(bound, partitions, unnamed_are_fine)
    starts = await _resolve(lookup, options.start, first, last if options.late_start == "latest" else None)
    ends = await _resolve(lookup, options.end, last, last)
    kept: list[OffsetRange] = []
    losses: list[Loss] = []
    for tp in partitions:
        wanted = OffsetRange(*tp, starts[tp], ends[tp], bounds[tp].topic_id)
        readable, lost = within_log(wanted, bounds[tp])
        losses += lost
        kept += [] if readable is None else [readable]
    report(losses, fail=options.fail_on_data_loss)
    return split(kept, options.min_partitions, options.max_records_per_partition)


async def _resolve(lookup: Lookup, bound: Bound, edge: Offsets, too_late: Offsets | None) -> Offsets:
    """The offset of each partition: `edge` where the bound gives none, `too_late` where no record is at its time."""
    if bound.offset is not None:
        return edge
    if bound.offsets is not None:
        given = bound.offsets
        return {tp: given[tp] if given.get(tp, -1) >= 0 else offset for tp, offset in edge.items()}
    times = dict.fromkeys(edge, bound.timestamp) if bound.timestamps is None else bound.timestamps
    found = await lookup.offsets_at({tp: time for tp, time in times.items() if time is not None})
    resolved = dict(edge)
    for tp, offset in found.items():
        if offset is None and too_late is None:
            raise ConfigError(
                f"{bound.option}: {tp} has no record at or after {times[tp]} (ms since 1970). The time is after its "
                "newest record. Choose an earlier one, or set startingOffsetsByTimestampStrategy to latest."
            )
        resolved[tp] = (too_late or edge)[tp] if offset is None else offset
    return resolved


def _check_named(bound: Bound, partitions: Sequence[TopicPartition], unnamed_are_fine: bool) -> None:
    """JSON must name every partition and no other one. Raises ConfigError."""
    if bound.named is None:
        return
    unknown = [tp for tp in bound.named if tp not in partitions]
    unnamed = [tp for tp in partitions if tp not in bound.named]
    if unknown:
        raise ConfigError(
            f"{bound.option} names {', '.join(map(str, unknown))}, which this query does not read. "
            f"It reads {', '.join(map(str, partitions))}; name these."
        )
    if unnamed and not unnamed_are_fine:
        raise ConfigError(
            f"{bound.option} does not name {', '.join(map(str, unnamed))}. Every partition needs an offset. "
            "Name them too, or set startingOffsets.fallback to earliest."
        )
