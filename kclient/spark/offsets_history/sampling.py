"""Look up at the leaders, once in every run, what the offsets topic lacks: where logs begin and end, and when the
records at committed offsets were written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from kclient.errors import KclientError
from kclient.spark.client import ClusterHandle
from kclient.spark.cluster_lookup import ClusterLookup
from kclient.spark.executor import RangeFetcher
from kclient.spark.offsets_history.rows import Row
from kclient.spark.option_table import Topics
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import OffsetRange
from kclient.types import TopicPartition

FETCH_BYTES: Final = 65_536
SAMPLE_MS: Final = 5_000
LOOKING_SECONDS: Final = 30.0
"""Records are looked up for this long in one run; the rest waits for the next run, for instance if a broker is down."""


@attrs.frozen
class Bounds:
    """Where a log begins and ends, and its last stable offset."""

    low: int
    high: int
    stable: int


async def watermarks(handle: ClusterHandle, topics: Iterable[str]) -> dict[TopicPartition, Bounds]:
    """Return the bounds of the partitions that still exist."""
    names = tuple(sorted(topics))
    if not names:
        return {}
    partitions = await handle.lookup.existing(Topics(names), internal=True)
    config = attrs.evolve(handle.config, isolation_level="read_uncommitted")
    all_records = ClusterLookup(handle.cluster, config, handle.runtime)
    stable, high = await asyncio.gather(
        handle.lookup.log_bounds(partitions), all_records.log_bounds(partitions)
    )
    return {tp: Bounds(high[tp].start, high[tp].end, stable[tp].end) for tp in partitions}


async def record_times(
    handle: ClusterHandle,
    options: SourceOptions,
    waiting: Mapping[TopicPartition, Iterable[int]],
    ends: Mapping[TopicPartition, Bounds],
) -> dict[tuple[TopicPartition, int], int | None]:
    """Return the timestamp of the first record at or after each offset that exists, None for a record without one."""
    asked = [
        OffsetRange(tp.topic, tp.partition, offset, ends[tp].stable)
        for tp, offsets in waiting.items()
        if tp in ends
        for offset in sorted(offsets)
        if offset < ends[tp].stable
    ]
    found: dict[tuple[TopicPartition, int], int | None] = {}
    deadline = handle.runtime.now() + LOOKING_SECONDS
    for one in asked:
        if handle.runtime.now() >= deadline:
            break
        written = await _first_record(handle, options, one)
        if written is not None:
            found[one.tp, one.start] = None if written < 0 else written
    return found


def watermark_rows(found: Mapping[TopicPartition, Bounds], sampled_ms: int) -> list[Row]:
    """Return the rows of `watermarks`."""
    return [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "low": bounds.low,
            "high": bounds.high,
            "lso": bounds.stable,
            "sampled_at": sampled_ms,
        }
        for tp, bounds in found.items()
    ]


def position_rows(found: Mapping[tuple[TopicPartition, int], int | None], sampled_ms: int) -> list[Row]:
    """Return the rows of `positions`."""
    return [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "offset": offset,
            "record_ts": written,
            "sampled_at": sampled_ms,
        }
        for (tp, offset), written in found.items()
    ]


async def _first_record(handle: ClusterHandle, options: SourceOptions, wanted: OffsetRange) -> int | None:
    """Return its timestamp, -1 if it has none; None if there is no record or no broker answers now."""
    config = attrs.evolve(handle.config, max_partition_fetch_bytes=FETCH_BYTES)
    sampling = attrs.evolve(options, poll_timeout_ms=SAMPLE_MS, read_ahead=0, fail_on_data_loss=False)
    fetcher = RangeFetcher(handle.cluster, config, handle.runtime, wanted, sampling)
    try:
        while (piece := await fetcher.next()) is not None:
            reader = fetcher.reader(piece)
            while not reader.exhausted:
                for run in reader.take(1).runs:
                    if len(run):
                        return run.timestamps[0]
        return None
    except KclientError:
        return None
    finally:
        await fetcher.close()
