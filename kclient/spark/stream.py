"""The offsets of a stream from trigger to trigger: where it starts, how far it may read, which ranges lie between.

    initial ──▶ latest(start, limit) ──▶ ranges(start, end) ──▶ … ──▶ commit(end), one batch late
                   log ends, cut by         what is still in the
                   the limit                log, split into tasks

Runs in the driver's streaming process (C); only the ranges reach a task. A restart begins with `ranges` of the batch
that was not committed. Does not import pyspark.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from kclient.errors import UnknownTopicError
from kclient.log import get_logger
from kclient.spark.client import ClusterHandle, DriverClient
from kclient.spark.cluster_lookup import ClusterLookup, resolve_start
from kclient.spark.group_progress import GroupCommitter
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import (
    NO_LIMIT,
    Limit,
    LogBounds,
    Loss,
    OffsetRange,
    ending_before,
    must_wait,
    next_starts,
    prorate,
    ranges_between,
    report,
    split,
)
from kclient.text import format_names
from kclient.types import TopicPartition

log: Final = get_logger("kclient.spark")

Offsets = dict[TopicPartition, int]


class Stream:
    """The position of one query. Methods may raise DataLossError, ConnectError, AuthorizationError, DeadlineError."""

    def __init__(self, options: SourceOptions, client: DriverClient) -> None:
        self._options = options
        self._client = client
        self._logs = LogSnapshot(options)
        self._initial: Offsets | None = None
        self._last_end: Offsets | None = (
            None  # what `latest` returned last, from the bounds in `_logs` at that time
        )
        self._start_known = True  # whether `latest` was called with a start
        self._reported: dict[
            tuple[str, TopicPartition], None
        ] = {}  # losses reported since the last batch was planned
        self._last_batch_at: float | None = None
        self._group = GroupCommitter(client, options.commit_group) if options.commit_group else None

    @classmethod
    def open(cls, options: SourceOptions) -> Stream:
        """Return a stream with a client of its own, which connects on first use."""
        return cls(options, DriverClient(options))

    @property
    def limit(self) -> Limit:
        """The limit of the options. Under availableNow no batch waits for a minimum, or the query might never end."""
        options = self._options
        return Limit(
            options.max_offsets_per_trigger,
            options.min_offsets_per_trigger if self._logs.frozen is None else None,
            options.max_trigger_delay_ms / 1000,
        )

    @property
    def ends(self) -> Offsets:
        """The log ends seen last; sends no request."""
        return self._logs.ends

    def initial(self) -> Offsets:
        """Return where a new query begins, the same on every call. Raises UnknownTopicError, ConfigError too."""
        if self._initial is None:
            self._initial = self._client.call(self._resolve)
        return self._initial

    def freeze(self) -> None:
        """Read no further than the logs reach now, and no partition that appears from now on."""
        self._client.call(lambda handle: self._logs.refresh(handle.lookup, {}))
        self._logs.frozen = self._logs.ends

    def latest(self, start: Offsets | None, limit: Limit = NO_LIMIT) -> Offsets:
        """Return where the next batch ends: `start` itself while there is nothing, or too little, to read.

        `start` is None where Spark does not pass it (before 4.2): then there is no limit either, and `ranges` judges
        what is lost.
        """
        self._last_end = self._client.call(lambda handle: self._latest(handle, start, limit))
        if self._group is not None:
            self._group.renew()
        return self._last_end

    def ranges(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        """Return the ranges between the two, split into tasks; always the same for the same offsets."""
        if start == end:
            return []
        first, logs = start, self._logs
        if (
            end != self._last_end
        ):  # a batch that an earlier run has planned: the bounds seen now are not those of its plan
            self._reported.clear()
            self._client.call(lambda handle: logs.refresh(handle.lookup, end))
            self._warn_of_skipped(start, end)
        elif not self._start_known:  # Spark before 4.2: only now is it known from where the batch reads
            first = self._resume_positions(start, logs.seen)
            logs.recreated_topics()
        done = [
            tp for tp in end if end[tp] <= first.get(tp, -1)
        ]  # nothing to read, or a loss that was reported
        last = {tp: offset for tp, offset in end.items() if tp not in done}
        first = {tp: offset for tp, offset in first.items() if tp in last}
        ranges, losses = ranges_between(first, last, logs.seen, logs.topic_ids)
        self._report(losses)
        return split(ranges, self._options.min_partitions, self._options.max_records_per_partition)

    def commit(self, end: Offsets) -> None:
        """Mirror the end of a batch that is done to the options' group; never raises."""
        if self._group is not None:
            self._group.commit(end, self._options.commit_metadata or "")

    def close(self) -> None:
        """End the client."""
        self._client.close()

    # --- steps that run on the client's loop

    async def _resolve(self, handle: ClusterHandle) -> Offsets:
        bounds = await handle.lookup.log_bounds(await self._logs.partitions(handle.lookup))
        if self._logs.frozen is not None:  # records that came later belong to no batch of this run
            bounds = {
                tp: log._replace(end=self._logs.end_of(tp, log))
                for tp, log in bounds.items()
                if tp in self._logs.frozen
            }
        start = await resolve_start(handle.lookup, self._options, bounds)
        if self._options.start.timestamp is None and self._options.start.timestamps is None:
            return start
        return {tp: min(offset, bounds[tp].end) for tp, offset in start.items()}

    async def _latest(self, handle: ClusterHandle, start: Offsets | None, limit: Limit) -> Offsets:
        logs = self._logs
        # Without `start` there is nothing to compare a stale response of a lagging broker with, so ask twice.
        if start is None and not logs.seen:
            await logs.refresh(handle.lookup, {})
        await logs.refresh(handle.lookup, _further(start or {}, logs.ends))
        self._start_known = start is not None
        if start is None:
            return logs.ends
        logs.extend_frozen(start)
        bounds = logs.within_frozen(start)
        first = self._resume_positions(start, bounds)
        last = self._last(first, bounds)
        now = handle.runtime.now()
        waited = None if self._last_batch_at is None else now - self._last_batch_at
        if not self._reported and must_wait(first, last, limit, waited):
            return start
        end = prorate(first, last, limit.max_rows)
        if end != start:
            self._last_batch_at = now
        return end

    def _last(self, first: Offsets, bounds: Mapping[TopicPartition, LogBounds]) -> Offsets:
        """Return how far each partition can be read from `first` on.

        A recreated topic is read by the next batch, which begins at its log start. So the logged offsets of a batch
        describe what was read, also when it runs again.
        """
        recreated_topics = self._logs.recreated_topics()
        return {
            tp: at if tp.topic in recreated_topics else max(at, self._logs.end_of(tp, bounds[tp]))
            for tp, at in first.items()
        }

    def _resume_positions(self, start: Offsets, bounds: Mapping[TopicPartition, LogBounds]) -> Offsets:
        """Return where reading goes on, given the log bounds. Report what is lost, or raise DataLossError."""
        first, losses = next_starts(start, bounds, self._logs.topic_ids)
        self._reported.clear()
        self._report(losses)
        return first

    def _warn_of_skipped(self, start: Offsets, end: Offsets) -> None:
        """Warn if a run before died in the query's first batch, and `latest` or a group has moved on since."""
        skipped = [f"{tp} ({end[tp]} → {at})" for tp, at in start.items() if at > end.get(tp, at)]
        if start == self._initial and skipped:
            log.warning(
                "the first batch runs again, and startingOffsets has moved past its end: %s. What a run before was "
                "to read up to there is not read. To be sure of it give offsets in startingOffsets.",
                format_names(skipped),
            )

    def _report(self, losses: Iterable[Loss]) -> None:
        """Report each loss once, or raise DataLossError."""
        new = [loss for loss in losses if (loss.kind, loss.partition) not in self._reported]
        report(new, fail=self._options.fail_on_data_loss, fatal=self._options.fatal_losses)
        self._reported |= {(loss.kind, loss.partition): None for loss in new}


def _further(one: Offsets, other: Offsets) -> Offsets:
    return one | {tp: max(offset, one.get(tp, offset)) for tp, offset in other.items()}


# --- the logs as the stream knows them -------------------------------------------------------------------------------


TIMEOUT_SHARE: Final = 0.25
"""After this share of the timeout the partitions are looked up again: one may have been deleted."""


class LogSnapshot:
    """The logs of the chosen partitions. `frozen` holds ends beyond which nothing is read."""

    def __init__(self, options: SourceOptions) -> None:
        self.seen: dict[TopicPartition, LogBounds] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.frozen: Offsets | None = None
        self._options = options

    @property
    def ends(self) -> Offsets:
        """The log ends seen last; sends no request."""
        return {tp: log.end for tp, log in self.seen.items()}

    def within_frozen(self, also: Mapping[TopicPartition, int]) -> dict[TopicPartition, LogBounds]:
        """Return the bounds without partitions that appeared after the ends were frozen, except those in `also`."""
        frozen = self.frozen
        return {tp: log for tp, log in self.seen.items() if frozen is None or tp in frozen or tp in also}

    def end_of(self, tp: TopicPartition, log: LogBounds) -> int:
        """Return how far the partition may be read: to its end, or to its frozen end."""
        return log.end if self.frozen is None else min(log.end, self.frozen.get(tp, 0))

    async def partitions(self, lookup: ClusterLookup) -> tuple[TopicPartition, ...]:
        """Return the chosen partitions.

        Raises ConfigError, and UnknownTopicError if a topic is still missing after retries.
        """
        options, retries_left = self._options, self._options.offset_retries
        while True:
            try:
                return await lookup.partitions(options.selection, internal=options.include_internal_topics)
            except UnknownTopicError:
                if not retries_left:
                    raise
            retries_left -= 1
            await self._pause()

    async def refresh(self, lookup: ClusterLookup, known: Mapping[TopicPartition, int]) -> None:
        """Look up where the logs begin and end; retry while an end is below an offset in `known`."""
        options = self._options
        for retries_left in reversed(range(options.offset_retries + 1)):
            found = await lookup.existing(options.selection, internal=options.include_internal_topics)
            self.seen = await lookup.log_bounds(found, TIMEOUT_SHARE)
            if not retries_left or not self._is_stale(known):
                break
            await self._pause()
        if self.frozen is not None:  # a log that was cut has ended there; what is written now came later
            self.frozen = {tp: min(end, self.ends.get(tp, end)) for tp, end in self.frozen.items()}

    def extend_frozen(self, start: Mapping[TopicPartition, int]) -> None:
        """Replace frozen ends below `start`, or without a partition of it, by the ends seen now.

        They came from a lagging broker, because that much was read already.
        """
        if self.frozen is not None:
            self.frozen |= {
                tp: log.end for tp, log in self.seen.items() if self.frozen.get(tp, -1) < start.get(tp, -1)
            }

    def recreated_topics(self) -> list[str]:
        """Return the topics whose id has changed, and remember the new ids."""
        ids = {tp.topic: log.topic_id for tp, log in self.seen.items() if log.topic_id is not None}
        found = [topic for topic, id_ in ids.items() if id_ != self.topic_ids.get(topic, id_)]
        self.topic_ids = ids
        return found

    def _is_stale(self, known: Mapping[TopicPartition, int]) -> bool:
        ids = self.topic_ids
        return bool(ending_before(known, self.seen)) or any(
            tp not in self.seen or self.seen[tp].topic_id != ids.get(tp.topic, self.seen[tp].topic_id)
            for tp in known
        )

    async def _pause(self) -> None:
        await asyncio.sleep(self._options.offset_retry_interval_ms / 1000)
