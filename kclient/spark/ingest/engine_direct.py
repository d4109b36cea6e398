"""Ingest on one machine without Spark: the same stream of offsets, files, manifest and checkpoint.

    end = latest(start)                    how far the logs go, cut by the limit
    checkpoint: offsets/n = end            from here on batch n ends there, in every run
    files of every range                   hidden, then under names of their range and batch
    manifest n                             the batch counts
    checkpoint: commits/n                  it is done
    group                                  a mirror, for tools that show lag

After a crash the same batch runs again over the same offsets: before its manifest it writes the same names, after it
there is nothing left to do. So each record counts once.

Where no two attempts write the same name (tables, object stores), a worker without a range of this batch begins with
the next one: while the last ranges are written, and while the batch is committed. A crash then leaves files that count
nowhere, as one in the middle of a batch does: the offsets are in the checkpoint only once this batch is done.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Final

import attrs

from kclient.errors import KclientError
from kclient.runtime import Runtime
from kclient.spark.group_progress import GroupCommitter
from kclient.spark.ingest.batch_commit import BatchTimes, LandedBatch
from kclient.spark.ingest.checkpoint import Offsets
from kclient.spark.ingest.preflight import Engine, Prepared
from kclient.spark.ingest.progress import Ended, IngestListener, IngestResult
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.ingest.stop_signals import StopRequest
from kclient.spark.ingest.worker_pool import BatchWork, WorkerPool
from kclient.spark.ranges import NO_LIMIT, Limit
from kclient.spark.sink.manifest import batch_name
from kclient.spark.stream import Stream

POLL_SECONDS: Final = 0.1
EARLY_WORKERS: Final = 2
"""How many workers of a table start before the plan says for how many there is work: if there is none, in vain."""


@contextmanager
def engine(settings: IngestSettings, locks: Sequence[int]) -> Iterator[Engine]:
    """Yield what runs the job of these settings. The first workers of a table start now, to import while it is planned.

    `locks` are the descriptors of the locks that are held meanwhile.
    """
    with closing(WorkerPool(settings.parallelism or os.cpu_count() or 1, locks)) as pool:
        if settings.sink.is_lake and not settings.backfill:
            pool.start(EARLY_WORKERS)
        yield partial(_run, pool)


def _run(pool: WorkerPool, prepared: Prepared, listener: IngestListener, stop: StopRequest) -> IngestResult:
    """Claim the job, and run batch after batch until the logs are drained or a signal asks to stop.

    Raises as `ingest.run` does.
    """
    pool.start(prepared.plan.tasks)
    return _DirectEngine(prepared.claim(), pool, listener, stop).run()


@attrs.frozen
class _BegunBatch:
    """A batch with whose files the workers have begun."""

    end: Offsets
    work: BatchWork
    began_ms: int


class _DirectEngine:
    """One run."""

    def __init__(
        self, prepared: Prepared, pool: WorkerPool, listener: IngestListener, stop: StopRequest
    ) -> None:
        settings = prepared.settings
        self._pool = pool
        self._prepared = prepared
        self._trigger = settings.trigger
        self._checkpoint = prepared.checkpoint
        self._stream = Stream(prepared.options, prepared.client)
        self._committer = prepared.committer()
        self._group = None if settings.group is None else GroupCommitter(prepared.client, settings.group)
        self._runtime = Runtime()
        self._listener = listener
        self._stop = stop
        self._ahead: _BegunBatch | None = None

    def run(self) -> IngestResult:
        if self._trigger.kind == "availableNow":
            self._stream.freeze()
        position = self._prepared.position
        batch, start = position.batch, position.start
        if position.end is not None:  # an earlier run began this batch: read the same offsets again
            self._land(batch, start, position.end)
            batch, start = batch + 1, position.end
        while not self._stop or self._ahead is not None:
            began = self._now
            end = self._stream.latest(dict(start), self._limit) if self._ahead is None else self._ahead.end
            if end != start:
                # Written before the batch runs: a run after a crash must read the same offsets again.
                self._prepared.epoch.check()
                end = self._checkpoint.begin(batch, end)
                self._land(batch, start, end)
                batch, start, end = batch + 1, end, start
            if self._trigger.kind == "once" or (self._trigger.kind == "availableNow" and end == start):
                return self._result("drained", start)
            self._wait_for_trigger(began)
        return self._result("stopped", start)

    @property
    def _limit(self) -> Limit:
        """The limit of a batch; the trigger `once` has none."""
        return NO_LIMIT if self._trigger.kind == "once" else self._stream.limit

    def _land(self, batch: int, start: Offsets, end: Offsets) -> None:
        """Write a batch that the checkpoint has begun, commit it, and report it."""
        began_ms = self._runtime.wall_ms()
        ahead, self._ahead = self._ahead, None
        whole, written = self._committer.committed_manifest(batch, end), []
        if ahead is not None and (whole is not None or ahead.end != end):  # another run has decided the batch
            self._pool.finish(ahead.work)
            ahead = None
        if whole is None:
            begun = self._begin(batch, start, end) if ahead is None else ahead
            written = self._pool.finish(begun.work, partial(self._begin_next, batch + 1, end))
            whole = self._committer.count(batch_name(batch), start, end, written, begun.began_ms)
        counted_ms = self._runtime.wall_ms()
        self._checkpoint.commit(batch)
        self._mirror(end)
        now_ms = self._runtime.wall_ms()
        times = BatchTimes(duration_ms=max(0, now_ms - began_ms), noted_ms=max(0, now_ms - counted_ms))
        self._listener.batch(
            self._committer.report(batch, LandedBatch.of(whole, written), self._stream.ends, times)
        )

    def _begin(self, batch: int, start: Offsets, end: Offsets) -> _BegunBatch:
        """Have the workers begin with the files of a batch."""
        began_ms = self._runtime.wall_ms()
        ranges = self._stream.ranges(dict(start), dict(end))
        target = self._prepared.target.of_batch(batch)
        return _BegunBatch(end, self._pool.begin(ranges, self._prepared.options, target), began_ms)

    def _begin_next(self, batch: int, start: Offsets) -> BatchWork | None:
        """Have the workers begin with the next batch, if it need not wait for the commit of this one."""
        if self._stop or self._trigger.kind != "availableNow" or not self._prepared.target.has_unique_names:
            return None
        try:
            end = self._stream.latest(dict(start), self._limit)
            if end != start:
                self._ahead = self._begin(batch, start, end)
        except KclientError:  # this batch is committed first: then the next look meets it again
            return None
        return None if self._ahead is None else self._ahead.work

    def _mirror(self, end: Offsets) -> bool | None:
        """Commit to the group, if there is one."""
        return None if self._group is None else self._group.commit(end)

    def _result(self, ended: Ended, end: Offsets) -> IngestResult:
        """Return the result. Commit once more: the run before may have been killed just before its own last commit."""
        return self._committer.result(
            ended, end, self._stream.ends, committed=self._mirror(end), signal=self._stop.signal
        )

    @property
    def _now(self) -> float:
        """Monotonic seconds: with a wall clock that is set back, a trigger would wait for as long."""
        return self._prepared.client.now()

    def _wait_for_trigger(self, began: float) -> None:
        """Wait for the next trigger; a signal ends the waiting."""
        if self._group is not None:
            self._group.renew()
        while not self._stop and self._now - began < self._trigger.interval_ms / 1000:
            self._runtime.pause(POLL_SECONDS)
