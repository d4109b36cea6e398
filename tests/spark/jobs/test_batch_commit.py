"""Committing a batch with dead letters into a table."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from kclient.errors import SinkError
from kclient.runtime import Runtime
from kclient.spark.ingest.batch_commit import BatchCommitter, BatchTimes, LandedBatch
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink import manifest
from kclient.spark.sink.manifest import WrittenFile
from kclient.spark.sink.parquet import WrittenRange
from kclient.spark.sink.tables import TableCommit
from kclient.types import TopicPartition
from tests.spark.memory_table import MemoryTable, PausedRuntime, Version

TP = TopicPartition("flights", 0)
NAME = manifest.batch_name(0)


def committer(table: MemoryTable, dead: Path) -> BatchCommitter:
    return BatchCommitter("t", "j", str(dead), table=table, runtime=PausedRuntime.seeded(1))


def written(end: int, run: str) -> list[WrittenRange]:
    """A range with one row and one dead letter."""
    files = [
        WrittenFile(path=f"{kind}-{run}", topic="flights", partition=0, start=0, end=end, rows=1, bytes=1)
        for kind in ("row", "dead")
    ]
    return [WrittenRange(range=OffsetRange(*TP, 0, end), files=(files[0],), dead_letters=(files[1],))]


def dead_letters(dead: Path) -> list[str]:
    whole = manifest.read(dead, NAME)
    return [] if whole is None else [file.path for file in whole.files]


def test_dead_letters_are_kept_before_the_batch_counts(tmp_path: Path) -> None:
    table = MemoryTable()
    committer(table, tmp_path).count(NAME, {}, {TP: 20}, written(20, "run"))
    assert (len(table.newest.files), dead_letters(tmp_path)) == (1, ["dead-run"])


def test_a_run_that_the_table_refuses_leaves_the_dead_letters_of_the_newer_one(tmp_path: Path) -> None:
    table = MemoryTable()
    committer(table, tmp_path).count(NAME, {}, {TP: 25}, written(25, "newer"))
    with pytest.raises(SinkError, match="Another run of the job j has gone on"):
        committer(table, tmp_path).count(NAME, {}, {TP: 20}, written(20, "zombie"))
    assert dead_letters(tmp_path) == ["dead-newer"]


def test_a_batch_that_is_there_already_keeps_dead_letters_of_the_same_records(tmp_path: Path) -> None:
    table = MemoryTable()
    committer(table, tmp_path).count(NAME, {}, {TP: 25}, written(25, "killed"))
    committer(table, tmp_path).count(NAME, {}, {TP: 25}, written(25, "again"))
    assert (len(table.newest.files), dead_letters(tmp_path)) == (1, ["dead-again"])


@attrs.define
class Clock:
    """Milliseconds since 1970, which pass where a test says so."""

    now_ms: int = 1_000_000

    def __call__(self) -> float:
        return self.now_ms / 1000


class SlowTable(MemoryTable):
    """A table whose catalog takes 700 ms for a commit."""

    clock: Clock

    def try_commit(self, base: Version, commit: TableCommit) -> None:
        self.clock.now_ms += 700
        super().try_commit(base, commit)


@pytest.mark.parametrize(("noted_ms", "commit_ms"), [(20, 720), (None, 700)])
def test_the_time_of_a_commit_is_that_of_the_table_and_of_what_notes_it(
    noted_ms: int | None, commit_ms: int
) -> None:
    clock = Clock()
    table = SlowTable()
    table.clock = clock
    committer = BatchCommitter("t", "j", table=table, runtime=Runtime(wall_clock=clock))
    ranges = written(20, "run")
    whole = committer.count(NAME, {}, {TP: 20}, ranges)
    landed = LandedBatch.of(whole, ranges)
    assert (
        committer.report(0, landed, {TP: 20}, BatchTimes(duration_ms=800, noted_ms=noted_ms)).commit_ms
        == commit_ms
    )
    # A batch that an earlier run has committed.
    assert (
        committer.report(1, landed, {TP: 20}, BatchTimes(duration_ms=800, noted_ms=noted_ms)).commit_ms
        == noted_ms
    )
