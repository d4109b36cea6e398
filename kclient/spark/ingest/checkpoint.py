"""The state that a job keeps between runs: which job it is, where it starts, and how far its batches are.

    kclient/job.json      the job: cluster, topics, sink, engine, format; any other job is refused
    kclient/start.json    where batch 0 starts, kept because `latest` moves
    kclient/schema.json   the schemas of decoded values, each with its first batch
    kclient/files.json    how many records make a file of the requested size
    offsets/7             the end of batch 7, written before it runs     Spark's own form and place, whatever
    commits/7             batch 7 is done                                the engine, so `status` reads all alike

A batch that has offsets but no commit runs again over the same offsets. All files are plain JSON, read and written
without Spark.

A checkpoint is a directory, which a run locks, or lies in an object store. There the job, its start and the end of each
batch are created once: two runs at once agree on what was first (`run_epoch.py`).
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs

from kclient.errors import ConfigError, SinkError
from kclient.runtime import Runtime
from kclient.spark.ingest.progress import CheckpointState
from kclient.spark.ingest.setting_values import Location, location, matches
from kclient.spark.offsets import dump_offsets, parse_offsets
from kclient.spark.sink.store import is_remote, store_of
from kclient.types import TopicPartition

Offsets: TypeAlias = Mapping[TopicPartition, int]

VERSION: Final = "v1"
KEPT: Final = 100
"""Batches whose offsets are kept, as Spark keeps them."""

JOB: Final = "kclient/job.json"
START: Final = "kclient/start.json"
SCHEMA: Final = "kclient/schema.json"
FILES: Final = "kclient/files.json"
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
    """The checkpoint in a directory, or at the URL of an object store. Every method may raise SinkError."""

    def __init__(self, where: str | Path) -> None:
        self.where: Final = str(where)
        self._store: Final = store_of(where)
        self._is_shared: Final = is_remote(where)

    # --- the job, its schema and its file size

    @property
    def path(self) -> Path:
        """The directory, of a checkpoint that is in one."""
        return Path(self.where)

    def job(self) -> Job | None:
        """Return the job of the checkpoint, None for a new one."""
        content = self._json(JOB)
        if content is None:
            return None
        try:
            form = None if self.schema() is None else "json"  # where a release before did not keep it
            return job_of({"format": form, **content})
        except (TypeError, ValueError) as exc:
            raise self._damaged(JOB, exc) from exc

    def claim(self, job: Job) -> None:
        """Make it this job's, before anything else is written."""
        content, kept = json.dumps(attrs.asdict(job), indent=1), self.job()
        is_ours = self._create(JOB, content) if kept is None else kept.job == job.job
        if kept is not None and is_ours:
            self._write(JOB, content)  # with the ids of more topics
        if not is_ours:
            raise SinkError(
                f"Another run has made the checkpoint {self.where} its own meanwhile: the job was started twice. Start "
                "it in one place only; started again now it goes on with what the other one has begun.",
                path=self.where,
            )

    def schema(self) -> str | None:
        """Return the current schema of its values, None if none is frozen."""
        versions = self._json(SCHEMA)
        try:
            return None if versions is None else str(versions[-1]["schema"])
        except (IndexError, KeyError, TypeError) as exc:
            raise self._damaged(SCHEMA, exc) from exc

    def add_schema(self, schema: str, batch: int) -> None:
        """Keep another schema, which holds from this batch on."""
        versions = self._json(SCHEMA) or []
        self._write(
            SCHEMA,
            json.dumps([*versions, {"batch": batch, "schema": schema}], indent=1),
        )

    def file_rows(self, target_mb: int) -> int | None:
        """Return how many records a file of this size has, None if that is not known."""
        kept = self._json(FILES)
        try:
            return int(kept["rows"]) if kept is not None and kept["target_mb"] == target_mb else None
        except (KeyError, TypeError, ValueError) as exc:
            raise self._damaged(FILES, exc) from exc

    def store_file_rows(self, target_mb: int, rows: int) -> None:
        """Keep how many records a file is to have."""
        self._write(FILES, json.dumps({"target_mb": target_mb, "rows": rows}))

    # --- the position

    def position(self) -> Position | None:
        """Return where the next batch begins, None if no run has decided where to start."""
        done = self._numbers("commits")
        begun = self._begun(done)
        if not begun:
            start = self.first_start()
            return None if start is None else Position(0, start)
        last = begun[-1]
        if done and done[-1] >= last:
            return Position(last + 1, self.offsets(last))
        return Position(last, self.start_of(last), self.offsets(last))

    def _begun(self, done: Collection[int]) -> list[int]:
        """Return the batches that were begun.

        In an object store without those of which neither start nor commit is there: a run of before the checkpoint was
        lost, or put back to a copy, may begin such a one.
        """
        begun = self._numbers("offsets")
        known = {-1, *begun}
        return [number for number in begun if not self._is_shared or number - 1 in known or number in done]

    def first_start(self) -> Offsets | None:
        """Return where batch 0 starts, None if that is not decided yet."""
        content = self._json(START)
        return None if content is None else self._parsed(START, json.dumps(content))

    def offsets(self, batch: int) -> Offsets:
        """Return where a batch ends that was begun."""
        path = f"offsets/{batch}"
        try:
            if (content := self._store.read(path)) is None:
                raise ValueError("it is missing")
            version, _, *sources = content.decode().split("\n")
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
            raise self._damaged(START, ValueError("it is missing"))
        return start

    def state_beside(self) -> CheckpointState:
        """Return its state to show to the user while something else lands beside its job."""
        position = self.position()
        return CheckpointState("new") if position is None else CheckpointState("beside", position.batch)

    # --- what happens to it

    def store_start(self, offsets: Offsets) -> None:
        """Keep where batch 0 starts."""
        if not self._create(START, dump_offsets(offsets)):
            raise SinkError(
                f"Another run has decided where the job of {self.where} starts meanwhile: the job was started twice. "
                "Start it in one place only; started again now it begins where the other one did.",
                path=self.where,
            )

    def begin(self, batch: int, end: Offsets) -> Offsets:
        """Write where a batch will end, before it runs. Return where it ends if another run has begun it already."""
        created = self._create(f"offsets/{batch}", _offsets_file(end))
        return end if created else self.offsets(batch)

    def commit(self, batch: int) -> None:
        """Write that a batch is done, and remove the oldest entries."""
        self._write(f"commits/{batch}", f'{VERSION}\n{{"nextBatchWatermarkMs":0}}')
        for kind in ("offsets", "commits"):
            for number in self._numbers(kind):
                if number <= batch - KEPT:
                    self._store.delete(f"{kind}/{number}")

    def adopt(self, batch: int, end: Offsets, first: Offsets) -> None:
        """Go on after a batch that the sink holds as the job's last, whatever is kept here.

        A crash in between leaves a position that can be read and is not the sink's, and the next run does this again:
        of what is ahead the newest goes first, so that each batch keeps its start; and the commit comes before the
        offsets, so that none of them looks like a batch that was begun.
        """
        for kind in ("commits", "offsets"):
            for number in reversed(self._numbers(kind)):
                if number > batch:
                    self._store.delete(f"{kind}/{number}")
        self._write(START, dump_offsets(first))
        self._adopt_for_spark()
        self.commit(batch)
        # Spark wants the end of the batch before the last one as well.
        for number in (batch - 1, batch) if batch else (batch,):
            self._write(f"offsets/{number}", _offsets_file(end))

    def restore(self, position: Position, first: Offsets) -> None:
        """Fill an empty checkpoint, so that a query of Spark goes on at this position."""
        if position.batch:
            self.adopt(position.batch - 1, position.start, first)
        else:
            self._adopt_for_spark()
            self.store_start(first)
        if position.end is not None:
            self.begin(position.batch, position.end)

    def _adopt_for_spark(self) -> None:
        """Write the id of a query, which Spark wants beside its logs, and take away its checksums of older files."""
        if self._store.read("metadata") is None:
            query = uuid.UUID(bytes=Runtime().random_bytes(16), version=4)
            self._write("metadata", json.dumps({"id": str(query)}))
        if not self._is_shared:
            for kind in ("commits", "offsets"):
                for sums in (self.path / kind).glob(".*.crc"):
                    sums.unlink(missing_ok=True)

    # --- how

    def _numbers(self, kind: str) -> list[int]:
        names = (found.key.removeprefix(f"{kind}/") for found in self._store.list(kind))
        return sorted(int(name) for name in names if _NUMBER.fullmatch(name))

    def _json(self, key: str) -> Any:
        try:
            content = self._store.read(key)
            return None if content is None else json.loads(content)
        except (ValueError, RecursionError) as exc:
            raise self._damaged(key, exc) from exc

    def _parsed(self, key: str, text: str) -> Offsets:
        try:
            return parse_offsets(text) if json.loads(text) else {}
        except (ValueError, RecursionError) as exc:
            raise self._damaged(key, exc) from exc

    def _write(self, key: str, content: str) -> None:
        self._store.put(key, content.encode())

    def _create(self, key: str, content: str) -> bool:
        """Write what only one run may decide. Return False if another one has; in a directory a lock excludes that."""
        if self._is_shared:
            return self._store.put_if_absent(key, content.encode())
        self._write(key, content)
        return True

    def _damaged(self, key: str, error: Exception) -> SinkError:
        place = self._store.place(key)
        return SinkError(
            f"The checkpoint's file {place} cannot be understood: {error}. It was damaged, or another program wrote "
            "it. Restore the checkpoint from a copy, or begin a new one with a sink of its own.",
            path=place,
        )


def _offsets_file(end: Offsets) -> str:
    """Return the content of a file in `offsets`, in Spark's form."""
    return f"{VERSION}\n{_METADATA}\n{dump_offsets(end)}"


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


def check_same(where: str, kept: Job, wanted: Job) -> None:
    """Refuse a checkpoint that belongs to something else. Raises ConfigError."""
    if different := kept.differences(wanted):
        raise ConfigError(
            f"The checkpoint {where} belongs to another job: {'; '.join(different)}. Going on would skip or repeat "
            "records. Give this job a checkpoint and a sink of its own.",
            problems=tuple(different),
        )


def check_kept(where: str, kept: Job, given: Mapping[str, str]) -> None:
    """Refuse the same job done in another way than it began with: engine, writer, format. Raises ConfigError."""
    changed = {name: was for name, now in given.items() if (was := getattr(kept, name)) not in (None, now)}
    if changed:
        options = " ".join(f"--{name} {was}" for name, was in changed.items())
        different = [f"its {name} is {was!r}, not {given[name]!r}" for name, was in changed.items()]
        raise ConfigError(
            f"The job of the checkpoint {where} keeps to what it began with: {'; '.join(different)}. All that it lands "
            f"must fit together. Add {options}, or give another job a checkpoint and a sink of its own.",
            problems=tuple(different),
        )
