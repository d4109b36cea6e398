"""Plan the ranges of a batch on the driver: open a cluster, ask it, close it.

partitions → log start and end of each → start and end offsets → what is still in the log → filters → split
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import attrs

from kclient.errors import KclientError, UnknownTopicError
from kclient.log import get_logger
from kclient.network.cluster import Cluster
from kclient.runtime import Runtime
from kclient.spark.cluster_lookup import ClusterLookup, resolve_end, resolve_start
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import (
    EVERYTHING,
    Bounds,
    OffsetRange,
    Offsets,
    RangeFilter,
    ending_before,
    ranges_between,
    report,
    split,
)

log: Final = get_logger("kclient.spark")

CLOSE_SECONDS: Final = 5.0


async def plan_batch(
    options: SourceOptions, narrowing: RangeFilter = EVERYTHING, runtime: Runtime | None = None
) -> list[OffsetRange]:
    """Plan the ranges that a batch reads, in order.

    Raises DataLossError, UnknownTopicError, ConfigError, ConnectError, …

    Retriable errors are retried `fetchOffset.numRetries` times.
    """
    runtime = runtime or Runtime()
    config = options.config("driver")
    cluster = Cluster(config, runtime)
    cluster.set_topics(options.selection.topics)
    try:
        await cluster.start()
        lookup = ClusterLookup(cluster, config, runtime)
        for retries_left in reversed(range(options.offset_retries + 1)):
            try:
                return await _plan(lookup, options, narrowing)
            except KclientError as exc:
                if not retries_left or not (exc.retriable or isinstance(exc, UnknownTopicError)):
                    raise
                log.info("planning failed, %d retries left: %s", retries_left, exc)
            await asyncio.sleep(options.offset_retry_interval_ms / 1000)
        return []
    finally:
        await cluster.close(CLOSE_SECONDS)


async def _plan(lookup: ClusterLookup, options: SourceOptions, narrowing: RangeFilter) -> list[OffsetRange]:
    partitions = await lookup.partitions(options.selection, internal=options.include_internal_topics)
    bounds = await lookup.log_bounds(partitions)
    starts = await resolve_start(lookup, options, bounds)
    ends = await resolve_end(lookup, options, bounds)
    needed = {tp: max(starts[tp], ends[tp]) for tp in partitions}
    ranges, losses = ranges_between(starts, ends, await _fresh_bounds(lookup, options, needed, bounds))
    report(losses, fail=options.fail_on_data_loss)
    wanted = await _skip_older(lookup, narrowing.of(ranges), narrowing.since_ms)
    return split(wanted, options.min_partitions, options.max_records_per_partition)


async def _fresh_bounds(
    lookup: ClusterLookup, options: SourceOptions, needed: Offsets, bounds: Bounds
) -> Bounds:
    """Look up the bounds again while a log ends before a needed offset: the response may be stale."""
    for _ in range(options.offset_retries):
        short = ending_before(needed, bounds)
        if not short:
            break
        await asyncio.sleep(options.offset_retry_interval_ms / 1000)
        bounds = {**bounds, **await lookup.log_bounds(short)}
    return bounds


async def _skip_older(
    lookup: ClusterLookup, ranges: Sequence[OffsetRange], since_ms: int | None
) -> Sequence[OffsetRange]:
    """Return the ranges without the records before the first one at or after a time: all of these are older."""
    if since_ms is None or not ranges:
        return ranges
    first = await lookup.offsets_at({one.tp: since_ms for one in ranges})
    later = [attrs.evolve(one, start=max(one.start, _or(first[one.tp], one.end))) for one in ranges]
    return [one for one in later if one.size]


def _or(offset: int | None, otherwise: int) -> int:
    return otherwise if offset is None else offset
