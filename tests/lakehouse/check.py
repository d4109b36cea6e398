"""The invariants of a table, looked at in each of its versions, and of the whole run at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import attrs

from kclient.types import TopicPartition
from tests.lakehouse.storage import DataFiles, Version
from tests.lakehouse.topic import Topic, records


class Violation(NamedTuple):
    """An invariant that did not hold, and what was seen."""

    invariant: str
    text: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.text}"


@attrs.define(eq=False)
class TableWatch:
    """Looks at each version. While `taken_back` is set the table lacks rows, which is nobody's fault."""

    files: DataFiles
    topic: Topic
    taken_back: bool = False
    violations: dict[str, Violation] = attrs.field(factory=dict)
    committed: dict[str, object] = attrs.field(factory=dict)
    _snapshot: int = 0

    def report(self, invariant: str, text: str) -> None:
        """Note what was violated, the first time only."""
        self.violations.setdefault(invariant, Violation(invariant, text))

    def version(self, version: Version) -> None:
        """Check a new version."""
        self._check_files(version)
        newest = max((kept.snapshot for kept in version.jobs.values()), default=0)
        if not self.taken_back:
            self._check_rows(version)
        elif newest > self._snapshot:
            self.report("I-46", f"version {version.number}: the job went on although rows were taken back")
        self._snapshot = newest

    def _check_files(self, version: Version) -> None:
        """I-48: the files that a version names are there, and each as it was when it was named first."""
        for path in version.files:
            if path.startswith("other/"):
                continue
            content = self.files.objects.get(path)
            if content is None:
                self.report("I-48", f"version {version.number} names {path}, which is not there")
            elif self.committed.setdefault(path, content) is not content:
                self.report("I-48", f"{path} was written again after version {version.number} had named it")

    def _check_rows(self, version: Version) -> None:
        """I-46: each record before the progress is in one file, once. I-47: none is at or after it."""
        kept = next(iter(version.jobs.values()), None)
        ends, first = ({}, {}) if kept is None else (kept.progress.offsets, kept.progress.first)
        found = self._rows(version)
        for tp in found.keys() | ends.keys():
            offsets, wanted = sorted(found.get(tp, ())), records(first.get(tp, 0), ends.get(tp, 0))
            if offsets != wanted:
                self._explain(f"version {version.number}, {tp}", offsets, wanted)

    def _explain(self, where: str, offsets: list[int], wanted: list[int]) -> None:
        there, expected = set(offsets), set(wanted)
        if twice := sorted(offset for offset, count in Counter(offsets).items() if count > 1):
            self.report("I-46", f"{where}: {len(twice)} rows are there twice: {twice[:3]}")
        if missing := sorted(expected - there):
            self.report("I-46", f"{where}: {len(missing)} rows are missing: {missing[:3]}")
        if beyond := sorted(there - expected):
            self.report("I-47", f"{where}: {len(beyond)} rows are not of committed offsets: {beyond[:3]}")

    def _rows(self, version: Version) -> dict[TopicPartition, list[int]]:
        """Return the offsets of all rows of the topic, by partition."""
        found: dict[TopicPartition, list[int]] = {}
        for path in version.files:
            if (file := self.files.objects.get(path)) is not None:
                found.setdefault(file.partition, []).extend(file.offsets)
        return found

    def reported(
        self, run: str, batch: int, end: Mapping[TopicPartition, int], reached: Mapping[TopicPartition, int]
    ) -> None:
        """I-51: a batch that is reported as done is in the table."""
        if short := {tp: offset for tp, offset in end.items() if reached.get(tp, 0) < offset}:
            self.report(
                "I-51", f"{run} has reported batch {batch}, of which {len(short)} partitions are not there"
            )

    def fenced(self, run: str, life: tuple[float, float], moved: Sequence[tuple[float, str]]) -> None:
        """I-52: a run is refused because of another one only where another one has committed in its life."""
        if not any(life[0] <= time <= life[1] and writer != run for time, writer in moved):
            self.report("I-52", f"{run} was refused because of another run, and was alone")

    def end(self, version: Version | None, *, ended_by_recreation: bool) -> None:
        """I-49: at the end all records are there, unless their topic is another one."""
        if version is None:
            self.report("I-49", "nothing was ever committed")
            return
        if ended_by_recreation:
            self._check_recreated(version)
            return
        found = self._rows(version)
        for tp, end in self.topic.ends.items():
            if missing := sorted(set(records(0, end)) - set(found.get(tp, ()))):
                self.report("I-49", f"{tp}: {len(missing)} records never landed: {missing[:3]}")

    def _check_recreated(self, version: Version) -> None:
        """I-50: no record of a topic that was created again under the offsets of the one before."""
        paths = (path for path in version.files if path in self.files.objects)
        found = {self.files.objects[path].incarnation for path in paths}
        if self.topic.incarnation in found:
            self.report("I-50", f"the table has rows of topics {sorted(found)}, all of one name")
