"""A table and its data files in memory, with the faults of a catalog and of an object store.

A version is an object that never changes; a commit swaps the newest one, if it is still that which the commit names.
Like Iceberg the table keeps the progress of jobs as properties: a rollback takes rows away and leaves them, and the
snapshot that a job's progress names shows whether its rows are there.

    fault of one commit     the table does                         the caller hears
    conflict                another writer's commit first          TableConflict
    refused                 nothing                                500 at once
    lost                    the commit                             nothing, until it stops waiting
    dies                    the commit                             nothing: the process is killed right after it
    late                    the commit, long after that            nothing, until it stops waiting
    slow                    the commit, after a while              the answer
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import pyarrow as pa

from kclient.errors import SinkError
from kclient.spark.sink.manifest import Garbage
from kclient.spark.sink.partitions import Part, PartKey, TableFiles, grouped
from kclient.spark.sink.tables import (
    GARBAGE_AGE_MS,
    TableCommit,
    TableConflict,
    TableProgress,
    TableUnavailable,
    load_with_retries,
    next_progress,
    owner,
)
from kclient.types import TopicPartition
from tests.lakehouse.scheduler import Scheduler, SimulatedRuntime

FAULTS: Final = ("conflict", "refused", "lost", "late", "slow")
TIMEOUT: Final = 30.0
SLOW: Final = 20.0
LATEST: Final = 400.0
ANSWER: Final = 0.02
ROOT: Final = "s3://lake/flights"


# --- data files ------------------------------------------------------------------------------------------------------


@attrs.frozen
class DataFile:
    """The rows of one file: a topic as it was then, a partition and offsets. `writer` is the run that wrote it."""

    incarnation: int
    partition: TopicPartition
    offsets: tuple[int, ...]
    writer: str
    written: float


@attrs.define(eq=False)
class DataFiles:
    """The data files below the table."""

    objects: dict[str, DataFile] = attrs.field(factory=dict)

    def put(self, path: str, content: DataFile) -> None:
        """Write a file, as an object store does: whole, and in place of one with this name."""
        self.objects[path] = content


@attrs.frozen
class Halves:
    """Two partitions of the table: rows of even and of odd offsets."""

    def split(self, rows: pa.RecordBatch) -> Iterator[Part]:
        """Yield the rows of each."""
        odd = pa.array([offset % 2 for offset in rows.column("_offset").to_pylist()], pa.int8())
        for values, some in grouped(rows, [odd]):
            yield Part(PartKey(f"odd={values[0]}", values), some)


# --- versions --------------------------------------------------------------------------------------------------------


@attrs.frozen
class JobProperty:
    """A job's progress, the snapshot that was committed with it, and the process that has done that."""

    progress: TableProgress
    snapshot: int
    writer: str


@attrs.frozen
class Version:
    """One version. `snapshots` are those that it consists of and that have not expired, the oldest first."""

    number: int = 0
    files: tuple[str, ...] = ()
    jobs: dict[str, JobProperty] = attrs.field(factory=dict)
    snapshots: tuple[int, ...] = ()


@attrs.define(eq=False)
class Catalog:
    """The table's newest version, who may change it, and how its service fails.

    `watch` is called with each new version. Each entry of `faults` happens to one commit, in order; after them they are
    drawn with the probability `failing`. Until `down_until` there is no service at all.
    """

    scheduler: Scheduler
    rng: random.Random
    watch: Callable[[Version], None]
    newest: Version | None = None
    failing: float = 0.0
    down_until: float = 0.0
    faults: list[str] = attrs.field(factory=list)
    history: list[Version] = attrs.field(factory=list)
    reached: dict[TopicPartition, int] = attrs.field(factory=dict)
    """The highest offsets that the job has ever committed."""
    moved: list[tuple[float, str]] = attrs.field(factory=list)
    """When the job's progress was changed, and by which process; by `""`, where the table was put back."""

    @property
    def is_down(self) -> bool:
        """Whether the service is out of reach."""
        return self.scheduler.now < self.down_until

    def set(self, version: Version) -> None:
        """Make a version the newest."""
        self.newest = version
        self.history.append(version)
        self.watch(version)

    def swap(self, base: Version, wanted: TableCommit, writer: str) -> None:
        """Commit on one version. Raises TableConflict if it is not the newest."""
        newest = self.newest
        if newest is not base:
            raise TableConflict(f"version {getattr(newest, 'number', None)} is newer than {base.number}")
        before = base.jobs.get(wanted.job)
        progress = next_progress(None if before is None else before.progress, wanted)
        number = self._next_number()
        self.moved.append((self.scheduler.now, writer))
        self.reached = {tp: max(end, self.reached.get(tp, 0)) for tp, end in progress.offsets.items()}
        self.set(
            Version(
                number,
                (*base.files, *(file.path for file in wanted.files)),
                {**base.jobs, wanted.job: JobProperty(progress, number, writer)},
                (*base.snapshots, number),
            )
        )

    def add_manifest(
        self, batch: int, offsets: Mapping[str, Mapping[TopicPartition, int]], files: tuple[str, ...]
    ) -> None:
        """Make a version of all manifests, of which one more was written."""
        base = self.newest or Version()
        kept = base.jobs.get("manifests")
        commit = TableCommit(job="manifests", batch=batch, start=offsets["start"], end=offsets["end"])
        progress = next_progress(None if kept is None else kept.progress, commit)
        self.reached = {tp: max(end, self.reached.get(tp, 0)) for tp, end in progress.offsets.items()}
        jobs = {"manifests": JobProperty(progress, base.number + 1, "")}
        self.set(Version(base.number + 1, (*base.files, *files), jobs, (*base.snapshots, base.number + 1)))

    def append(self) -> None:
        """Let another program append a file of rows that are no record's."""
        if (base := self.newest) is not None:
            number = self._next_number()
            files = (*base.files, f"other/{number}")
            self.set(attrs.evolve(base, number=number, files=files, snapshots=(*base.snapshots, number)))

    def rewrite(self, files: DataFiles) -> None:
        """Let a compaction put one file in place of all that a partition of the topic has, under a new name."""
        if (base := self.newest) is None:
            return
        number = self._next_number()
        merged: dict[tuple[int, TopicPartition], list[int]] = {}
        for path in base.files:
            if (file := files.objects.get(path)) is not None:
                merged.setdefault((file.incarnation, file.partition), []).extend(file.offsets)
        names = [path for path in base.files if path not in files.objects]
        for index, ((incarnation, partition), offsets) in enumerate(sorted(merged.items())):
            names.append(f"compacted/{number}-{index}")
            now = self.scheduler.now
            files.objects[names[-1]] = DataFile(incarnation, partition, tuple(offsets), "compaction", now)
        self.set(attrs.evolve(base, number=number, files=tuple(names), snapshots=(*base.snapshots, number)))

    def expire(self) -> None:
        """Let all snapshots but the newest expire."""
        if (base := self.newest) is not None:
            number = self._next_number()
            self.set(attrs.evolve(base, number=number, snapshots=base.snapshots[-1:]))

    def roll_back(self, back: int) -> Version | None:
        """Take back some versions: rows and snapshots, not properties.

        Return the version before if rows of the job are gone, None if others' only.
        """
        before = self.newest
        if before is None or len(self.history) <= back:
            return None
        old = self.history[-1 - back]
        if not old.snapshots or old.snapshots[-1] not in before.snapshots:
            return None  # there is nothing, or the history of before the table was put back
        self.moved.append((self.scheduler.now, ""))
        self.set(Version(self._next_number(), old.files, before.jobs, old.snapshots))
        return before if any(kept.snapshot not in old.snapshots for kept in before.jobs.values()) else None

    def bring_back(self, version: Version) -> None:
        """Undo a rollback: make a version of before current again."""
        self.moved.append((self.scheduler.now, ""))
        self.set(attrs.evolve(version, number=self._next_number()))

    def restore(self, back: int) -> None:
        """Put the table back to a copy, with rows, properties and all, if the job is in it with its rows."""
        old = self.history[-1 - back] if len(self.history) > back else Version()
        if old.jobs and all(kept.snapshot in old.snapshots for kept in old.jobs.values()):
            self.moved.append((self.scheduler.now, ""))
            self.set(attrs.evolve(old, number=self._next_number()))

    def remove_garbage(self, files: DataFiles) -> None:
        """Let `gc` remove the files that no version has named, and that are as old as it wants them."""
        named = {path for version in self.history for path in version.files}
        oldest = self.scheduler.now - GARBAGE_AGE_MS / 1000
        for path in [path for path, file in files.objects.items() if file.written <= oldest]:
            if path not in named:
                del files.objects[path]

    def _next_number(self) -> int:
        return max((version.number for version in self.history), default=0) + 1


# --- the table as one process sees it --------------------------------------------------------------------------------


@attrs.define(eq=False)
class SimulatedTable:
    """`tables.LakeTable` for one process. Each request takes time, and fails as the catalog says."""

    catalog: Catalog
    runtime: SimulatedRuntime
    writer: str
    name: str = "lake.db.flights"

    def load(self) -> Version:
        """Return the newest version, which `prepare` has created."""
        found = self._ask()
        if found is None:
            raise SinkError("lake.db.flights does not exist. Create it.", path=self.name)
        return found

    def find(self) -> Version | None:
        """Return the newest version, None if there is none."""
        self.runtime.pause(self._latency())
        if self.catalog.newest is None and not self.catalog.is_down:
            return None
        return load_with_retries(self, self.runtime)

    def progress(self, version: Version, job: str) -> TableProgress | None:
        """Return where a job stands. Raises SinkError if its rows were taken back."""
        kept = version.jobs.get(job)
        if kept is None:
            return None
        gone = kept.snapshot not in version.snapshots
        if gone and (not version.snapshots or version.snapshots[0] < kept.snapshot):
            raise SinkError(f"Rows of the job {job} were taken back. Bring them back.", path=self.name)
        return kept.progress

    def family(self, version: Version, job: str) -> dict[str, TableProgress]:
        """Return where a job and what landed beside it stood."""
        return {name: kept.progress for name, kept in version.jobs.items() if owner(name) == job}

    def try_commit(self, base: Version, commit: TableCommit) -> None:
        """Commit, under the fault that comes next."""
        catalog = self.catalog
        fault = self._next_fault()
        self.runtime.pause(SLOW if fault == "slow" else self._latency())
        if catalog.is_down:
            self._time_out("no connection")
        if fault == "refused":
            raise TableUnavailable("500")
        if fault == "late":
            catalog.scheduler.at(catalog.scheduler.now + self._delay(), lambda: self._arrive(base, commit))
            self._time_out("timed out")
        if fault == "conflict":
            catalog.append()
        if fault == "lost":
            self._arrive(base, commit)
            self._time_out("connection reset")
        catalog.swap(base, commit, self.writer)
        if fault == "dies":
            catalog.scheduler.die()
        self.runtime.pause(ANSWER)

    def check(self, columns: pa.Schema, keys: Sequence[str], *, evolves: bool) -> None:
        """Accept any columns."""
        self.runtime.pause(self._latency())

    def prepare(self, columns: pa.Schema, keys: Sequence[str], *, evolves: bool) -> TableFiles:
        """Create the table if it is not there."""
        self.runtime.pause(self._latency())
        if self.catalog.newest is None:
            self.catalog.set(Version())
        return TableFiles(ROOT, "0" * 16, columns, Halves())

    def rows(self, version: Version) -> int | None:
        """Return that it is unknown."""
        return None

    def coordinates(self, version: Version, topics: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Yield nothing: the invariants read the files themselves."""
        return iter(())

    def garbage(self, before_ms: int) -> list[Garbage]:
        """Return none."""
        return []

    def remove(self, found: Iterable[Garbage]) -> None:
        """Do nothing."""

    def _ask(self) -> Version | None:
        self.runtime.pause(self._latency())
        if self.catalog.is_down:
            self._time_out("no connection")
        if self.runtime.rng.random() < self.catalog.failing / 4:
            raise TableUnavailable("503")
        return self.catalog.newest

    def _next_fault(self) -> str:
        catalog = self.catalog
        if catalog.faults:
            return catalog.faults.pop(0)
        return catalog.rng.choice(FAULTS) if catalog.rng.random() < catalog.failing else ""

    def _arrive(self, base: Version, commit: TableCommit) -> None:
        """Commit whose answer nobody hears."""
        if self.catalog.newest is base:
            self.catalog.swap(base, commit, self.writer)

    def _time_out(self, text: str) -> Any:
        self.runtime.pause(self.runtime.rng.choice((0.1, TIMEOUT)))
        raise TableUnavailable(text)

    def _delay(self) -> float:
        """How late a commit comes: before the caller has stopped waiting, or up to minutes after that."""
        return self.catalog.rng.choice((1.0, TIMEOUT, TIMEOUT + 1.0, self.catalog.rng.uniform(0, LATEST)))

    def _latency(self) -> float:
        return self.runtime.rng.uniform(0.01, 0.2)


# --- what takes the place of a Parquet file --------------------------------------------------------------------------


@attrs.define(eq=False)
class SimulatedFile:
    """`parquet.ParquetFile`, whose rows are offsets."""

    files: DataFiles
    runtime: SimulatedRuntime
    path: str
    incarnation: int
    partition: TopicPartition
    writer: str
    offsets: list[int] = attrs.field(factory=list)

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.offsets)

    @property
    def bytes(self) -> int:
        """Its size."""
        return 100 * len(self.offsets)

    def add(self, batch: pa.RecordBatch) -> None:
        """Write rows."""
        self.offsets += batch.column("_offset").to_pylist()

    def finish(self) -> None:
        """Let it appear, as an upload does at its end."""
        self.runtime.pause(0.05)
        offsets, now = tuple(self.offsets), self.runtime.now()
        self.files.put(self.path, DataFile(self.incarnation, self.partition, offsets, self.writer, now))

    def footer(self) -> Any:
        """Return no statistics."""
        return b""

    def publish(self) -> None:
        """Do nothing: it is there."""

    def discard(self) -> None:
        """Give it up."""
