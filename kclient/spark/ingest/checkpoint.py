"""The state that a job keeps between runs: which job it is, where it starts, and how far its batches are.

    kclient/job.json      the job: cluster, topics, sink, engine, format; any other job is refused
    kclient/start.json    where batch 0 starts, kept because `latest` moves
    kclient/schema.json   the schemas of decoded values, each with its first batch
    kclient/files.json    how many records make a file of the requested size
    offsets/7             the end of batch 7, written before it runs     Spark's own form and place, whatever
    commits/7             batch 7 is done                                the engine, so `status` reads all alike

A batch that has offsets but no commit runs again over the same offsets. All files are plain JSON, read and written
without Spark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs

from kclient.errors import ConfigError, SinkError
from kclient.spark.ingest.progress import CheckpointState
from kclient.spark.ingest.setting_values import Location, location, matches
from kclient.spark.offsets import dump_offsets, parse_offsets
from kclient.spark.sink.atomic_files import list_names, read_optional, reading, write_atomically
from kclient.types import TopicPartition

Offsets: TypeAlias = Mapping[TopicPartition, int]

VERSION: Final = "v1"
KEPT: Final = 100
"""Batches whose offsets are kept, as Spark keeps them."""

_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_METADATA: Final = '{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{}}'


@attrs.frozen
class Position:
    """Where the next batch begins. `end` is set if an earlier run has begun it: it must end there again."""

    batch: int
    start: Offsets
    end: Offsets | None = None

    @property
    def begun(self) -> bool:
        """Whether any batch was begun."""
        return self.batch > 0 or self.end is not None

    @property
    def state(self) -> CheckpointState:
        """The state to show to the user."""
        return CheckpointState("resume", self.batch, self.end is not None)


class Checkpoint:
    """The checkpoint in a directory. Every method may raise SinkError."""

    def __init__(self, directory: str | Path) -> None:
        self.path: Final = Path(directory)

    # --- the job, its schema and its file size

    @property
    def directory(self) -> Path:
        """The directory of the files that are not Spark's."""
        return self.path / "kclient"

    def job(self) -> Job | None:
        """Return the job of the checkpoint, None for a new one."""
        content = self._json(self.directory / "job.json")
        if content is None:
            return None
        try:
            form = None if self.schema() is None else "json"  # where a release before did not keep it
            return job_of({"format": form, **content})
        except (TypeError, ValueError) as exc:
            raise self._damaged(self.directory / "job.json", exc) from exc

    def claim(self, job: Job) -> None:
        """Make it this job's, before anything else is written."""
        self._write(self.directory / "job.json", json.dumps(attrs.asdict(job), indent=1))

    def schema(self) -> str | None:
        """Return the current schema of its values, None if none is frozen."""
        versions = self._json(self.directory / "schema.json")
        try:
            return None if versions is None else str(versions[-1]["schema"])
        except (IndexError, KeyError, TypeError) as exc:
            raise self._damaged(self.directory / "schema.json", exc) from exc

    def add_schema(self, schema: str, batch: int) -> None:
        """Keep another schema, which holds from this batch on."""
        versions = self._json(self.directory / "schema.json") or []
        self._write(
            self.directory / "schema.json",
            json.dumps([*versions, {"batch": batch, "schema": schema}], indent=1),
        )

    def file_rows(self, target_mb: int) -> int | None:
        """Return how many records a file of this size has, None if that is not known."""
        kept = self._json(self.directory / "files.json")
        try:
            return int(kept["rows"]) if kept is not None and kept["target_mb"] == target_mb else None
        except (KeyError, TypeError, ValueError) as exc:
            raise self._damaged(self.directory / "files.json", exc) from exc

    def store_file_rows(self, target_mb: int, rows: int) -> None:
        """Keep how many records a file is to have."""
        self._write(self.directory / "files.json", json.dumps({"target_mb": target_mb, "rows": rows}))

    # --- the position

    def position(self) -> Position | None:
        """Return where the next batch begins, None if no run has decided where to start."""
        begun, done = self._numbers("offsets"), self._numbers("commits")
        if not begun:
            start = self.first_start()
            return None if start is None else Position(0, start)
        last = begun[-1]
        if done and done[-1] >= last:
            return Position(last + 1, self.offsets(last))
        return Position(last, self.start_of(last), self.offsets(last))

    def first_start(self) -> Offsets | None:
        """Return where batch 0 starts, None if that is not decided yet."""
        content = self._json(self.directory / "start.json")
        return None if content is None else self._parsed(self.directory / "start.json", json.dumps(content))

    def offsets(self, batch: int) -> Offsets:
        """Return where a batch ends that was begun."""
        path = self.path / "offsets" / str(batch)
        try:
            with reading(path):
                version, _, *sources = path.read_text(encoding="utf-8").split("\n")
            if version != VERSION or len(sources) != 1:
                raise ValueError(f"{version[:20]!r} with {len(sources)} sources is not known")
        except ValueError as exc:
            raise self._damaged(path, exc) from exc
        return self._parsed(path, sources[0])

    def start_of(self, batch: int) -> Offsets:
        """Return where a batch begins that was begun."""
        if batch:
            return self.offsets(batch - 1)
        if (start := self.first_start()) is None:
            raise self._damaged(self.directory / "start.json", ValueError("it is missing"))
        return start

    def state_beside(self) -> CheckpointState:
        """Return its state to show to the user while something else lands beside its job."""
        position = self.position()
        return CheckpointState("new") if position is None else CheckpointState("beside", position.batch)

    # --- what happens to it

    def store_start(self, offsets: Offsets) -> None:
        """Keep where batch 0 starts."""
        self._write(self.directory / "start.json", dump_offsets(offsets))

    def begin(self, batch: int, end: Offsets) -> None:
        """Write where a batch will end, before it runs."""
        self._write(self.path / "offsets" / str(batch), f"{VERSION}\n{_METADATA}\n{dump_offsets(end)}")

    def commit(self, batch: int) -> None:
        """Write that a batch is done, and remove the oldest entries."""
        self._write(self.path / "commits" / str(batch), f'{VERSION}\n{{"nextBatchWatermarkMs":0}}')
        for kind in ("offsets", "commits"):
            for number in self._numbers(kind):
                if number <= batch - KEPT:
                    (self.path / kind / str(number)).unlink(missing_ok=True)

    def adopt(self, batch: int, end: Offsets, first: Offsets) -> None:
        """Go on after a batch that the sink holds as the job's last, whatever is kept here.

        A crash in between leaves a position that is not the sink's either, and the next run does this again.
        """
        for kind in ("commits", "offsets"):
            for number in self._numbers(kind):
                if number > batch:
                    (self.path / kind / str(number)).unlink(missing_ok=True)
        self.store_start(first)
        self.begin(batch, end)
        self.commit(batch)

    # --- how

    def _numbers(self, kind: str) -> list[int]:
        return sorted(int(name) for name in list_names(self.path / kind) if _NUMBER.fullmatch(name))

    def _json(self, path: Path) -> Any:
        try:
            text = read_optional(path)
            return None if text is None else json.loads(text)
        except ValueError as exc:
            raise self._damaged(path, exc) from exc

    def _parsed(self, path: Path, text: str) -> Offsets:
        try:
            return parse_offsets(text) if json.loads(text) else {}
        except ValueError as exc:
            raise self._damaged(path, exc) from exc

    def _write(self, path: Path, content: str) -> None:
        write_atomically(path, content.encode())

    def _damaged(self, path: Path, error: Exception) -> SinkError:
        return SinkError(
            f"The checkpoint's file {path} cannot be understood: {error}. It was damaged, or another program wrote it. "
            "Restore the checkpoint from a copy, or begin a new one with a sink of its own.",
            path=str(path),
        )


# --- the job that a checkpoint belongs to ----------------------------------------------------------------------------


_KINDS: Final[Mapping[str, Any]] = {
    "job": str,
    "cluster_id": str | None,
    "topics": list,
    "sink": str,
    "engine": str,
    "writer": str,
    "format": str | None,
    "topic_ids": dict,
}


@attrs.frozen(kw_only=True)
class Job:
    """The properties of a job that must not change between runs. `job` is a random id in its manifests.

    `format` is None in a checkpoint of a release that did not keep it.
    """

    job: str
    cluster_id: str | None
    topics: tuple[str, ...]
    sink: str
    engine: str
    writer: str
    format: str | None = None
    topic_ids: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def location(self) -> Location:
        """The sink."""
        return location(self.sink)

    def reads(self, topic: str) -> bool:
        """Return whether a topic is one of the job's, or would be once it exists."""
        return any(matches(name, topic) for name in self.topics)

    def differences(self, other: Job) -> list[str]:
        """Return what makes `other` another job, one sentence each. New topics and newly known ids do not count."""
        found = [
            f"its {what} {was!r}, not {now!r}"
            for what, was, now in (
                ("cluster id is", self.cluster_id, other.cluster_id),
                ("topics are", ",".join(sorted(self.topics)), ",".join(sorted(other.topics))),
                ("sink is", self.sink, other.sink),
            )
            if was != now
        ]
        recreated = [topic for topic, was in self.topic_ids.items() if other.topic_ids.get(topic, was) != was]
        return found + [f"topic {topic} was deleted and recreated since" for topic in recreated]


def job_of(content: Mapping[str, Any]) -> Job:
    """Parse the job of a checkpoint. Raises ValueError, TypeError if it is invalid."""
    kept = {"topic_ids": {}, **content}
    for name, kind in _KINDS.items():
        if not isinstance(kept.get(name), kind):
            raise ValueError(f"its {name} cannot be {kept.get(name)!r}")
    texts = (*kept["topics"], *kept["topic_ids"].values())
    if strange := [text for text in texts if not isinstance(text, str)]:
        raise ValueError(f"its topics cannot be {strange}")
    sink = str(location(kept["sink"]))  # which a release before kept with its `..`
    return Job(**{**kept, "topics": tuple(kept["topics"]), "sink": sink})


def check_same(path: Path, kept: Job, wanted: Job) -> None:
    """Refuse a checkpoint that belongs to something else. Raises ConfigError."""
    if different := kept.differences(wanted):
        raise ConfigError(
            f"The checkpoint {path} belongs to another job: {'; '.join(different)}. Going on would skip or repeat "
            "records. Give this job a checkpoint and a sink of its own.",
            problems=tuple(different),
        )


def check_kept(path: Path, kept: Job, given: Mapping[str, str]) -> None:
    """Refuse the same job done in another way than it began with: engine, writer, format. Raises ConfigError."""
    changed = {name: was for name, now in given.items() if (was := getattr(kept, name)) not in (None, now)}
    if changed:
        options = " ".join(f"--{name} {was}" for name, was in changed.items())
        different = [f"its {name} is {was!r}, not {given[name]!r}" for name, was in changed.items()]
        raise ConfigError(
            f"The job of the checkpoint {path} keeps to what it began with: {'; '.join(different)}. All that it lands "
            f"must fit together. Add {options}, or give another job a checkpoint and a sink of its own.",
            problems=tuple(different),
        )
