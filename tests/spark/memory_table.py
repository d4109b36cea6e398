"""A table in memory with the faults of real ones: other writers, lost answers, late ones, and services that fail."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kclient.runtime import Runtime
from kclient.spark.sink.manifest import WrittenFile
from kclient.spark.sink.tables import (
    TableCommit,
    TableConflict,
    TableProgress,
    TableUnavailable,
    next_progress,
    owner,
)


@attrs.frozen
class Version:
    """One version: its number, its files, and the progress of each job in it."""

    number: int = 0
    files: tuple[WrittenFile, ...] = ()
    jobs: dict[str, TableProgress] = attrs.field(factory=dict)


@attrs.define
class MemoryTable:
    """A table whose versions are objects. Each entry of `faults` happens to one `try_commit`, in order.

    conflict     another writer commits first
    lost         the commit is done, its answer is not delivered
    refused      a failing service: nothing is done
    late         no answer, and the commit arrives only before the next one
    (a function) it is called before the commit is done
    """

    faults: list[str | Callable[[], object]] = attrs.field(factory=list)
    failing_loads: int = 0
    newest: Version = attrs.field(factory=Version)
    name: str = "memory"
    loads: int = 0
    _late: list[Callable[[], None]] = attrs.field(factory=list)

    def load(self) -> Version:
        self.loads += 1
        if self.failing_loads:
            self.failing_loads -= 1
            raise TableUnavailable("503")
        return self.newest

    def progress(self, version: Version, job: str) -> TableProgress | None:
        return version.jobs.get(job)

    def family(self, version: Version, job: str) -> dict[str, TableProgress]:
        return {name: progress for name, progress in version.jobs.items() if owner(name) == job}

    def try_commit(self, base: Version, commit: TableCommit) -> None:
        fault = self.faults.pop(0) if self.faults else ""
        for arrive in self._late:
            arrive()
        self._late.clear()
        if fault == "late":
            self._late.append(lambda: self._swap_or_ignore(base, commit))
            raise TableUnavailable("timed out")
        if fault == "refused":
            raise TableUnavailable("500")
        if fault == "conflict":
            self.newest = attrs.evolve(self.newest, number=self.newest.number + 1)
        if callable(fault):
            fault()
        self._swap(base, commit)
        if fault == "lost":
            raise TableUnavailable("connection reset")

    def _swap_or_ignore(self, base: Version, commit: TableCommit) -> None:
        if base is self.newest:
            self._swap(base, commit)

    def _swap(self, base: Version, commit: TableCommit) -> None:
        if base is not self.newest:
            raise TableConflict(f"version {self.newest.number} is newer")
        progress = next_progress(base.jobs.get(commit.job), commit)
        self.newest = Version(
            base.number + 1, (*base.files, *commit.files), {**base.jobs, commit.job: progress}
        )


@attrs.define
class PausedRuntime(Runtime):
    """A runtime that notes pauses in place of making them."""

    pauses: list[float] = attrs.field(factory=list)

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
