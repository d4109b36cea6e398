"""Bugs of jobs that land in a table, M-161 to M-180: one for each rule that makes their rows count once."""

from __future__ import annotations

from typing import Any

from kclient.runtime import Runtime
from kclient.spark.ingest import resume
from kclient.spark.ingest.checkpoint import Checkpoint, Job, Offsets, Position, _offsets_file
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink import manifest, tables
from kclient.spark.sink.manifest import Manifest
from kclient.spark.sink.parquet import DirectTarget, RangeFiles
from kclient.spark.sink.tables import (
    COMMIT_TRIES,
    Table,
    TableCommit,
    TableConflict,
    TableProgress,
    TableUnavailable,
)
from tests.lakehouse import connect_bugs, world
from tests.lakehouse.storage import Catalog, JobProperty, SimulatedTable, Version
from tests.lakehouse.topic import Topic
from tests.simulation.mutants.table import Look, Patch, Symptoms, mutant

Commit = TableCommit


def landed(seed: int) -> Symptoms:
    """A job under the plan of a seed."""
    return [(violation.invariant, str(violation)) for violation in world.run_seed(seed).violations]


def planned(name: str) -> Look:
    """A job under the plan of a bug that Connect's sink had."""

    def look(seed: int) -> Symptoms:
        verdict = world.run_plan(seed, connect_bugs.PLANS[name])
        return [(violation.invariant, str(violation)) for violation in verdict.violations]

    return look


def _tried(
    table: Table[Any], wanted: Commit, runtime: Runtime, *, looked_up: bool = True, read_once: bool = False
) -> bool:
    """What `tables.commit` does, without one of its rules."""
    first: list[TableProgress | None] = []
    unknown = False
    for _ in range(COMMIT_TRIES):
        try:
            base = table.load()
            first.append(table.progress(base, wanted.job))
            found = first[0] if read_once else first[-1]
            if tables._is_committed(found, wanted) and (looked_up or not unknown):
                return False
            tables._check_follows(table.name, found, wanted)
            table.try_commit(base, wanted)
            return True
        except TableConflict:
            runtime.pause(1.0)
        except TableUnavailable:
            unknown = True
            runtime.pause(1.0)
    raise tables.SinkError("the tries are used up", path=table.name)


@mutant("M-161", "I-46", look=landed)
def progress_read_once(patch: Patch) -> None:
    """Try again on the newest version, and do not look at the job's progress in it (pyiceberg's own retries)."""

    def commit(table: Table[Any], wanted: Commit, runtime: Runtime | None = None) -> bool:
        return _tried(table, wanted, runtime or Runtime(), read_once=True)

    patch.put(tables, "commit", commit)


@mutant("M-162", "I-52", look=planned("unanswered"))
def lost_answer_not_looked_up(patch: Patch) -> None:
    """Take a commit whose answer was lost for one that was not done."""

    def commit(table: Table[Any], wanted: Commit, runtime: Runtime | None = None) -> bool:
        return _tried(table, wanted, runtime or Runtime(), looked_up=False)

    patch.put(tables, "commit", commit)


@mutant("M-163", "I-46", look=landed)
def offsets_not_compared(patch: Patch) -> None:
    """Commit a batch wherever the job stands in the table."""
    patch.put(tables, "_is_committed", lambda found, wanted: False)
    patch.put(tables, "_check_follows", lambda name, found, wanted: None)


@mutant("M-164", "I-46", "I-47", look=landed)
def no_compare_and_swap(patch: Patch) -> None:
    """Commit on whatever version is the newest by then."""

    def swap(self: Catalog, base: Version, wanted: Commit, writer: str) -> None:
        before(self, self.newest or base, wanted, writer)

    def arrive(self: SimulatedTable, base: Version, wanted: Commit) -> None:
        self.catalog.swap(base, wanted, self.writer)

    before = patch.put(Catalog, "swap", swap)
    patch.put(SimulatedTable, "_arrive", arrive)


@mutant("M-165", "I-49", "I-52", look=landed)
def checkpoint_believed(patch: Patch) -> None:
    """Go on where the checkpoint says, and never ask the table at a start."""

    def position_in(
        table: Any, job: str, checkpoint: Checkpoint, position: Position | None
    ) -> tuple[Position | None, TableProgress | None]:
        return position, None

    patch.put(resume, "position_in", position_in)


@mutant("M-166", "I-48", look=landed)
def names_without_token(patch: Patch) -> None:
    """Name a file after its range alone, so that another run writes the same name."""

    def files(self: DirectTarget, wanted: OffsetRange, runtime: Runtime) -> RangeFiles:
        return RangeFiles(wanted, self.root, self.codec, self.suffix, "run")

    patch.put(DirectTarget, "files", files)


@mutant("M-167", "I-51", look=planned("#17637"))
def number_is_enough(patch: Patch) -> None:
    """Take a batch for committed if the table has one of its number, wherever that one ends."""

    def is_committed(found: TableProgress | None, wanted: Commit) -> bool:
        return found is not None and found.batch == wanted.batch

    patch.put(tables, "_is_committed", is_committed)


@mutant("M-168", "I-51", look=landed)
def silence_is_success(patch: Patch) -> None:
    """Take a commit without an answer for one that was done."""

    def commit(table: Table[Any], wanted: Commit, runtime: Runtime | None = None) -> bool:
        try:
            base = table.load()
            tables._check_follows(table.name, table.progress(base, wanted.job), wanted)
            table.try_commit(base, wanted)
        except TableUnavailable:
            return True
        except TableConflict:
            return before(table, wanted, runtime)
        return True

    before = patch.put(tables, "commit", commit)


@mutant("M-169", "I-46", "I-47", look=landed)
def progress_in_a_commit_of_its_own(patch: Patch) -> None:
    """Commit the files first, and the offsets after that."""

    def swap(self: Catalog, base: Version, wanted: Commit, writer: str) -> None:
        if self.newest is not base:
            before(self, base, wanted, writer)  # raises
        files = (*base.files, *(file.path for file in wanted.files))
        self.set(Version(self._next_number(), files, base.jobs, base.snapshots))
        before(self, self.newest or base, TableCommit(
            job=wanted.job, batch=wanted.batch, start=wanted.start, end=wanted.end
        ), writer)  # fmt: skip

    before = patch.put(Catalog, "swap", swap)


@mutant("M-170", "I-50", look=planned("recreated"))
def recreation_not_seen(patch: Patch) -> None:
    """Do not compare the ids of topics: read a topic that was created again from where the one before was."""

    def differences(self: Job, other: Job) -> list[str]:
        return [text for text in before(self, other) if "recreated" not in text]

    before = patch.put(Job, "differences", differences)
    patch.put(Topic, "id", property(lambda self: b"the same id"))


@mutant("M-171", "I-46", look=planned("restored"))
def batch_numbers_are_enough(patch: Patch) -> None:
    """Let a batch follow on one whose number is lower by one, wherever that one has ended."""

    def check_follows(name: str, found: TableProgress | None, wanted: Commit) -> None:
        if found is not None and found.batch + 1 != wanted.batch:
            before(name, found, wanted)

    before = patch.put(tables, "_check_follows", check_follows)


@mutant("M-172", "I-51", look=planned("#13752"))
def given_up_in_silence(patch: Patch) -> None:
    """Go on with the next batch once the tries are used up (#13752)."""

    def commit(table: Table[Any], wanted: Commit, runtime: Runtime | None = None) -> bool:
        try:
            return before(table, wanted, runtime)
        except tables.SinkError as exc:
            if "tries" in str(exc):
                return True
            raise

    before = patch.put(tables, "commit", commit)


@mutant("M-173", "I-46", look=planned("#16282"))
def table_never_asked(patch: Patch) -> None:
    """Believe the checkpoint alone, at the start and at each commit (#16282, #17340)."""
    checkpoint_believed(patch)
    offsets_not_compared(patch)


@mutant("M-174", "I-46", look=landed)
def rollback_not_seen(patch: Patch) -> None:
    """Go on where a table says that was rolled back."""

    def progress(self: SimulatedTable, version: Version, job: str) -> TableProgress | None:
        kept: JobProperty | None = version.jobs.get(job)
        return None if kept is None else kept.progress

    patch.put(SimulatedTable, "progress", progress)


@mutant("M-175", "I-48", seed=11, look=planned("manifests"))
def manifest_replaced(patch: Patch) -> None:
    """Write a manifest in place of one that another run has written."""

    def create(sink: Any, whole: Manifest) -> bool:
        manifest.write(sink, whole)
        return True

    patch.put(manifest, "create", create)


@mutant("M-176", "I-49", seed=2, look=planned("manifests"))
def end_of_a_batch_replaced(patch: Patch) -> None:
    """Let each of two runs decide for itself where a batch ends."""

    def begin(self: Checkpoint, batch: int, end: Offsets) -> Offsets:
        self._write(f"offsets/{batch}", _offsets_file(end))
        return end

    patch.put(Checkpoint, "begin", begin)


@mutant("M-177", "I-46", "I-47", look=planned("restored"))
def end_of_another_history_kept(patch: Patch) -> None:
    """End a batch where a run of before the table was put back has begun it, also before its start."""
    patch.put(tables, "_check_goes_on", lambda name, found, wanted: None)
    patch.put(resume, "_goes_on", lambda position: True)


@mutant("M-178", "I-49", seed=2, look=planned("restored"))
def refused_end_tried_forever(patch: Patch) -> None:
    """Refuse such an end, and begin the batch with it again in each run that follows."""
    patch.put(resume, "_goes_on", lambda position: True)


@mutant("M-179", "I-48", look=planned("slept"))
def age_of_files_ignored(patch: Patch) -> None:
    """Commit files whatever their age: they may have been removed as garbage."""
    patch.put(tables, "_check_age", lambda name, wanted, now_ms: None)


@mutant("M-180", "I-50", look=planned("recreated unseen"))
def recreation_not_seen_in_the_table(patch: Patch) -> None:
    """Do not compare the ids of topics with those in the table: without a checkpoint no other place has them."""
    patch.put(resume, "check_not_recreated", lambda name, job, progress, topic_ids: None)
