"""Commit a batch with its manifest and report it: the same for every engine.

files of all ranges have their final names → the manifest is written: the batch counts → the checkpoint's commit
                                           or the table's commit has them               → the group's commit

In a directory, whose lock excludes other runs, the manifest of the dead letters comes first. In an object store the
sink's manifest is created once and decides for both; that of the dead letters follows from it, so that it is the same
whoever writes it, and a run that finds a batch committed writes it again.

| the batch has a manifest of | this run |
|---|---|
| an earlier run of the job | takes it: the batch counts, and the files of this run do not |
| a newer run | is fenced |
| another job, or another end | is refused: the checkpoint is not that of the sink |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from kclient.errors import SinkError
from kclient.runtime import Runtime
from kclient.spark.ingest.progress import BatchProgress, Ended, IngestResult
from kclient.spark.ingest.run_epoch import RunEpoch, fenced
from kclient.spark.sink import manifest, tables
from kclient.spark.sink.manifest import Manifest
from kclient.spark.sink.parquet import WrittenRange
from kclient.spark.sink.store import is_remote
from kclient.spark.sink.tables import Table, TableCommit
from kclient.types import TopicPartition

Offsets = Mapping[TopicPartition, int]

SUMMED: Final = ("rows", "bytes", "files", "bad_records")
STEP_TIMES: Final = ("fetch_ms", "decode_ms", "write_ms")


@attrs.frozen(kw_only=True)
class BatchTimes:
    """How long a batch took, in milliseconds. `noted_ms` is what followed its commit: checkpoint and group."""

    duration_ms: int
    noted_ms: int | None = None


@attrs.frozen(kw_only=True)
class LandedBatch:
    """What a batch has written. Milliseconds are summed over all tasks, None if they are unknown."""

    start: Offsets
    end: Offsets
    rows: int
    bytes: int
    files: int
    bad_records: int = 0
    newest_ms: int | None = None
    fetch_ms: int | None = None
    decode_ms: int | None = None
    write_ms: int | None = None

    @classmethod
    def of(cls, whole: Manifest, ranges: Sequence[WrittenRange]) -> LandedBatch:
        """Combine its manifest with the results of the tasks of this run."""
        return cls(
            start=whole.start,
            end=whole.end,
            rows=whole.rows,
            bytes=whole.bytes,
            files=len(whole.files),
            bad_records=whole.bad_records,
            newest_ms=max((file.last_ms for file in whole.files if file.last_ms is not None), default=None),
            **{name: sum(getattr(part, name) for part in ranges) for name in STEP_TIMES},
        )


@attrs.define
class BatchCommitter:
    """Makes the batches of one run count: by manifests, or in the commits of a table.

    `dead` is the place of dead letters, None without one; it has manifests in both cases. `topic_ids` are kept in a
    table. `epoch` is None for a run that has none: a backfill, a replay.
    """

    sink: str
    job: str
    dead: str | None = None
    table: Table[Any] | None = None
    topic_ids: Mapping[str, str] = attrs.field(factory=dict)
    epoch: RunEpoch | None = None
    runtime: Runtime = attrs.field(factory=Runtime)
    _began_ms: int = attrs.field(init=False, default=0)
    _counting_ms: dict[str, int] = attrs.field(
        init=False, factory=dict
    )  # of batches that are not reported yet
    _sums: Counter[str] = attrs.field(init=False, factory=Counter)

    def __attrs_post_init__(self) -> None:
        self._began_ms = self.runtime.wall_ms()

    def committed_manifest(self, batch: int, end: Offsets) -> Manifest | None:
        """Return the manifest of a batch that an earlier run has committed, if any.

        Raises SinkError if its end differs, or if a newer run has committed it. A table is asked when the batch is
        committed.
        """
        if self.table is not None:
            return None
        found = manifest.read(self.sink, manifest.batch_name(batch))
        if found is not None:
            self._check_same(found, manifest.batch_name(batch), end)
            self._finish(found)
        return found

    def has_landed(self, name: str) -> bool:
        """Return whether an earlier run has landed what has this name, a backfill or a replay. Raises SinkError."""
        found = manifest.read(self.sink, name)
        if found is not None:
            self._finish(found)
        return found is not None

    def _finish(self, found: Manifest) -> None:
        """In an object store write the dead letters' manifest again: an earlier run may have been killed before it."""
        if is_remote(self.sink):
            self._store_dead(found)

    def count(
        self,
        name: str,
        start: Offsets,
        end: Offsets,
        ranges: Sequence[WrittenRange],
        began_ms: int | None = None,
        batch: int | None = None,
    ) -> Manifest:
        """Commit a batch with its manifest, and that of its dead letters. Return what counts. Raises SinkError.

        `began_ms` is when the first of its files was begun, and `batch` its number where its name is none: a table asks
        for both.
        """
        whole = Manifest(
            job=self.job,
            name=name,
            start=_batch_start(start, ranges),
            end=end,
            files=tuple(file for part in ranges for file in part.files),
            dead_letters=tuple(file for part in ranges for file in part.dead_letters),
            nulled=sum(part.nulled for part in ranges),
            epoch=0 if self.epoch is None else self.epoch.number,
        )
        by_create = self.table is None and is_remote(self.sink)
        begun_ms = self.runtime.wall_ms()
        counts = self._create(whole) if by_create else self._write(whole, began_ms, batch)
        self._counting_ms[name if batch is None else manifest.batch_name(batch)] = max(
            0, self.runtime.wall_ms() - begun_ms
        )
        return counts

    def _write(self, whole: Manifest, began_ms: int | None, batch: int | None = None) -> Manifest:
        """Write the manifests where a lock excludes other runs, or commit to the table, which decides by itself."""
        if self.epoch is not None:
            self.epoch.check()
        # The dead letters first: once the sink's manifest is there, no later run writes this batch again. A killed run
        # may have written a manifest with more dead letters, so it is replaced even if none are left.
        if whole.dead_letters or (self.dead is not None and manifest.read(self.dead, whole.name) is not None):
            if self.table is not None:  # a run that it refuses must not replace what a newer one has kept
                tables.check(self.table, table_commit(whole, began_ms, self.topic_ids, batch), self.runtime)
            self._store_dead(whole, also_none=True)
        if self.table is None:
            manifest.write(self.sink, whole)
        else:
            tables.commit(self.table, table_commit(whole, began_ms, self.topic_ids, batch), self.runtime)
        return whole

    def _create(self, whole: Manifest) -> Manifest:
        """Create the manifest where other runs may create it too, and return the one that counts."""
        if self.epoch is not None:
            self.epoch.check()
        whole = attrs.evolve(whole, is_final=True)
        if not manifest.create(self.sink, whole):
            found = manifest.read(self.sink, whole.name)
            if found is None:
                raise SinkError(
                    f"{self.sink} had a manifest {whole.name} a moment ago, and has none now. Somebody deletes its "
                    "objects. Stop that, and start again: nothing counts twice.",
                    path=self.sink,
                )
            self._check_same(found, whole.name, whole.end)
            whole = found
        self._store_dead(whole)
        return whole

    def _check_same(self, found: Manifest, name: str, end: Offsets) -> None:
        """Raise SinkError for a manifest that is not of this job's batch, or of a newer run."""
        # Batch numbers start at 0 in every checkpoint, so an equal name alone does not mean the same batch.
        if found.job != self.job or found.end != end:
            batch = f"batch {int(name)}" if name.isdigit() else name
            raise SinkError(
                f"{self.sink} has a manifest of {batch} that is not this checkpoint's {batch}. One of the "
                "two was restored from a copy, or another job wrote it. Start again with a new checkpoint and sink.",
                path=self.sink,
            )
        if self.epoch is not None and found.epoch > self.epoch.number:
            raise fenced(self.sink)

    def _store_dead(self, whole: Manifest, *, also_none: bool = False) -> None:
        """Write the manifest of a batch's dead letters."""
        if self.dead is not None and (whole.dead_letters or also_none):
            dead = attrs.evolve(whole, files=whole.dead_letters, dead_letters=(), nulled=0)
            manifest.write(self.dead, dead)

    def report(self, batch: int, landed: LandedBatch, latest: Offsets, times: BatchTimes) -> BatchProgress:
        """Return the progress of a batch that counts, and add it to the totals."""
        steps = [self._counting_ms.pop(manifest.batch_name(batch), None), times.noted_ms]
        known = [step for step in steps if step is not None]
        progress = BatchProgress(
            batch=batch,
            rows=landed.rows,
            bytes=landed.bytes,
            files=landed.files,
            bad_records=landed.bad_records,
            duration_ms=times.duration_ms,
            fetch_ms=landed.fetch_ms,
            decode_ms=landed.decode_ms,
            write_ms=landed.write_ms,
            commit_ms=sum(known) if known else None,
            start=landed.start,
            end=landed.end,
            latest=latest,
            lag_seconds=self._lag_seconds(landed, latest),
        )
        self._sums.update(batches=1, **{name: getattr(progress, name) for name in SUMMED})
        return progress

    def result(
        self,
        ended: Ended,
        end: Offsets,
        latest: Offsets,
        *,
        committed: bool | None = None,
        signal: int | None = None,
    ) -> IngestResult:
        """Return the totals of the run."""
        return IngestResult(
            ended=ended,
            **{name: self._sums[name] for name in ("batches", *SUMMED)},
            seconds=max(0, self.runtime.wall_ms() - self._began_ms) / 1000,
            end=end,
            lag_records=sum(max(0, offset - end.get(tp, 0)) for tp, offset in latest.items()),
            committed=committed,
            signal=signal,
        )

    def _lag_seconds(self, landed: LandedBatch, latest: Offsets) -> float | None:
        """Return the seconds since the newest written record, 0 without a backlog, None if unknown."""
        if all(landed.end.get(tp, 0) >= offset for tp, offset in latest.items()):
            return 0.0
        return None if landed.newest_ms is None else max(0, self.runtime.wall_ms() - landed.newest_ms) / 1000


def table_commit(
    whole: Manifest,
    began_ms: int | None = None,
    topic_ids: Mapping[str, str] | None = None,
    batch: int | None = None,
) -> TableCommit:
    """Return a batch as a table takes it."""
    ids = topic_ids or {}
    return TableCommit(
        job=whole.job,
        batch=int(whole.name) if batch is None else batch,
        start=whole.start,
        end=whole.end,
        files=whole.files,
        topics={tp.topic: tables.topic_mark(ids[tp.topic]) for tp in whole.end if tp.topic in ids},
        began_ms=began_ms,
    )


def _batch_start(start: Offsets, ranges: Sequence[WrittenRange]) -> Offsets:
    """Return where a batch begins, partitions included that are new in it."""
    first: dict[TopicPartition, int] = {}
    for part in ranges:
        first.setdefault(part.range.tp, part.range.start)
    return {**first, **start}
