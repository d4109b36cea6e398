"""Where a read begins and ends, as the options say it: a word, offsets, times, or what a group has committed.

earliest, −2          where the log begins          latest, −1       where it ends
offsets               as they are                   times            the first record at or after each
group                 the group's commits           unnamed          `startingOffsets.fallback`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from kclient.errors import ConfigError
from kclient.spark.choices import Bound
from kclient.spark.lookup import Lookup
from kclient.spark.offsets import EARLIEST, LATEST
from kclient.spark.options import SourceOptions
from kclient.spark.plan import LogBounds
from kclient.text import format_partitions
from kclient.types import TopicPartition

Bounds: TypeAlias = Mapping[TopicPartition, LogBounds]
Offsets: TypeAlias = dict[TopicPartition, int]

WORDS: Final = {"earliest": EARLIEST, "latest": LATEST}


async def resolve_start(lookup: Lookup, options: SourceOptions, bounds: Bounds) -> Offsets:
    """The first offset to read of each partition in `bounds`. Raises ConfigError where the options leave it open."""
    bound, unnamed = options.start, WORDS.get(options.start_fallback)
    if bound.group:
        committed = await lookup.committed(options.group or "", bounds)
        return _filled(bound, {tp: at for tp, at in committed.items() if at is not None}, bounds, unnamed)
    return await _resolve(lookup, bound, bounds, unnamed, WORDS.get(options.late_start))


async def resolve_end(lookup: Lookup, options: SourceOptions, bounds: Bounds) -> Offsets:
    """The offset behind the last to read of each partition in `bounds`; no record at a time means the log's end."""
    unnamed = None if options.start_fallback == "error" else LATEST
    return await _resolve(lookup, options.end, bounds, unnamed, LATEST)


async def _resolve(
    lookup: Lookup, bound: Bound, bounds: Bounds, unnamed: int | None, too_late: int | None
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


async def _at_times(lookup: Lookup, bound: Bound, times: Offsets, too_late: int | None) -> Offsets:
    """The offset at each time, or the word that stands for a time behind the newest record."""
    found = await lookup.offsets_at(times)
    for tp, offset in found.items():
        if offset is None and too_late is None:
            raise ConfigError(
                f"{bound.option}: {tp} has no record at or after {times[tp]} (ms since 1970). The time is after its "
                "newest record. Choose an earlier one, or set startingOffsetsByTimestampStrategy to latest."
            )
    return {tp: offset if offset is not None else too_late or LATEST for tp, offset in found.items()}


def _filled(
    bound: Bound, offsets: Mapping[TopicPartition, int], bounds: Bounds, unnamed: int | None
) -> Offsets:
    """An offset for every partition and for no other one. Raises ConfigError."""
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
