"""Commit a batch with its manifest and report it: the same for every engine.

files of all ranges have their final names → the manifest is written: the batch counts → the checkpoint's commit
                                           or the table's commit has them               → the group's commit
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from kclient.errors import SinkError
from kclient.runtime import Runtime
from kclient.spark.ingest.progress import BatchProgress, Ended, IngestResult
from kclient.spark.sink import manifest, tables
from kclient.spark.sink.manifest import Manifest
from kclient.spark.sink.parquet import WrittenRange
from kclient.spark.sink.tables import Table, TableCommit
from kclient.types import TopicPartition

Offsets = Mapping[TopicPartition, int]

SUMMED: Final = ("rows", "bytes", "files", "bad_records")
STEP_TIMES: Final = ("fetch_ms", "decode_ms", "write_ms")


@attrs.frozen(kw_only=True)
class BatchTimes:
    """How long a batch took, in milliseconds."""

    duration_ms: int
    commit_ms: int | None = None


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

    `dead` is the directory of dead letters, None without one; it has manifests in both cases.
    """

    sink: str
    job: str
    dead: str | None = None
    table: Table[Any] | None = None
    runtime: Runtime = attrs.field(factory=Runtime)
    _began_ms: int = attrs.field(init=False, default=0)
    _sums: Counter[str] = attrs.field(init=False, factory=Counter)

    def __attrs_post_init__(self) -> None:
        self._began_ms = self.runtime.wall_ms()

    def committed_manifest(self, batch: int, end: Offsets) -> Manifest | None:
        """Return the manifest of a batch that an earlier run has committed, if any.

        Raises SinkError if its end differs. A table is asked when the batch is committed.
        """
        if self.table is not None:
            return None
        found = manifest.read(self.sink, manifest.batch_name(batch))
        # Batch numbers start at 0 in every checkpoint, so an equal name alone does not mean the same batch.
        if found is not None and (found.job != self.job or found.end != end):
            raise SinkError(
                f"{self.sink} has a manifest of batch {batch} that is not this checkpoint's batch {batch}. One of the "
                "two was restored from a copy, or another job wrote it. Start again with a new checkpoint and sink.",
                path=self.sink,
            )
        return found

    def count(self, name: str, start: Offsets, end: Offsets, ranges: Sequence[WrittenRange]) -> Manifest:
        """Commit a batch with its manifest, after that of its dead letters. Raises SinkError.

        A killed run may have written a manifest with more dead letters, so it is replaced even if none are left.
        """
        whole = Manifest(
            job=self.job,
            name=name,
            start=_batch_start(start, ranges),
            end=end,
            files=tuple(file for part in ranges for file in part.files),
            dead_letters=tuple(file for part in ranges for file in part.dead_letters),
            nulled=sum(part.nulled for part in ranges),
        )
        # The dead letters first: once the sink's manifest is there, no later run writes this batch again.
        if self.dead is not None and (whole.dead_letters or manifest.read(self.dead, name) is not None):
            manifest.write(
                self.dead, attrs.evolve(whole, files=whole.dead_letters, dead_letters=(), nulled=0)
            )
        if self.table is None:
            manifest.write(self.sink, whole)
        else:
            tables.commit(self.table, table_commit(whole), self.runtime)
        return whole

    def report(self, batch: int, landed: LandedBatch, latest: Offsets, times: BatchTimes) -> BatchProgress:
        """Return the progress of a batch that counts, and add it to the totals."""
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
            commit_ms=times.commit_ms,
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


def table_commit(whole: Manifest) -> TableCommit:
    """Return a batch as a table takes it."""
    return TableCommit(
        job=whole.job, batch=int(whole.name), start=whole.start, end=whole.end, files=whole.files
    )


def _batch_start(start: Offsets, ranges: Sequence[WrittenRange]) -> Offsets:
    """Return where a batch begins, partitions included that are new in it."""
    first: dict[TopicPartition, int] = {}
    for part in ranges:
        first.setdefault(part.range.tp, part.range.start)
    return {**first, **start}
