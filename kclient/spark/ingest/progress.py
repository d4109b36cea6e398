"""The events of an ingest job: its plan, the progress of each batch, and its result.

Rates and lags are computed here once, so that a terminal, a file of JSON lines and Prometheus agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

import attrs

from kclient.types import TopicPartition

Ended = Literal["drained", "stopped"]
"""All that was there has landed, or a signal asked to stop and the batch at work was finished."""


@attrs.frozen
class PartitionPlan:
    """One partition: where this run starts, where the log ends now, and the estimated bytes between."""

    partition: TopicPartition
    start: int
    end: int
    backlog_bytes: int | None = None

    @property
    def backlog(self) -> int:
        """The number of offsets between start and end: an upper bound of the number of records."""
        return max(0, self.end - self.start)


@attrs.frozen
class CheckpointState:
    """The state of the checkpoint. `next_batch` is the number of the next batch; `again` if it was begun before.

    State `beside` is for backfills and replays, which land beside the checkpoint's job and do not move it.
    """

    state: Literal["new", "resume", "beside"]
    next_batch: int = 0
    again: bool = False

    def __str__(self) -> str:
        if self.state == "new":
            return "new"
        if self.state == "beside":
            return f"stays before batch {self.next_batch}"
        return f"resume at batch {self.next_batch}" + (" (begun before, runs again)" if self.again else "")


@attrs.frozen(kw_only=True)
class IngestPlan:
    """What a job is about to do."""

    cluster_id: str | None
    topics: tuple[str, ...]
    partitions: tuple[PartitionPlan, ...]
    tasks: int
    sink: str
    engine: str
    trigger: str
    checkpoint: CheckpointState
    group: str | None = None

    @property
    def backlog_rows(self) -> int:
        return sum(partition.backlog for partition in self.partitions)

    @property
    def backlog_bytes(self) -> int | None:
        """An estimate from samples of each partition; None without samples."""
        known = [part.backlog_bytes for part in self.partitions if part.backlog]
        return None if None in known else sum(size or 0 for size in known)


@attrs.frozen(kw_only=True)
class BatchProgress:
    """One batch that counts now. Times are milliseconds; fetch, decode and write are summed over all tasks."""

    batch: int
    rows: int
    bytes: int
    files: int
    bad_records: int
    duration_ms: int
    fetch_ms: int | None
    decode_ms: int | None
    write_ms: int | None
    commit_ms: int | None
    start: Mapping[TopicPartition, int]
    end: Mapping[TopicPartition, int]
    latest: Mapping[TopicPartition, int]
    lag_seconds: float | None = None

    @property
    def lag(self) -> dict[TopicPartition, int]:
        """The offsets between the end of the batch and the end of each log, as last seen."""
        return {tp: max(0, end - self.end.get(tp, 0)) for tp, end in self.latest.items()}

    @property
    def lag_records(self) -> int:
        return sum(self.lag.values())

    @property
    def rows_per_second(self) -> float:
        return self.rows * 1000 / max(1, self.duration_ms)

    @property
    def bytes_per_second(self) -> float:
        """Bytes of the written files per second."""
        return self.bytes * 1000 / max(1, self.duration_ms)


@attrs.frozen(kw_only=True)
class IngestResult:
    """How a run ended. Counts are of this run; `committed` is whether the group has the last offsets."""

    ended: Ended
    batches: int
    rows: int
    bytes: int
    files: int
    bad_records: int
    seconds: float
    end: Mapping[TopicPartition, int]
    lag_records: int
    committed: bool | None = None
    signal: int | None = None


class IngestListener(Protocol):
    """Receives the events of a job, on the thread that runs it, in this order: planned, batch…, finished."""

    def planned(self, plan: IngestPlan) -> None: ...

    def batch(self, progress: BatchProgress) -> None: ...

    def finished(self, result: IngestResult) -> None: ...


class SilentListener:
    """An IngestListener that ignores every event."""

    def planned(self, plan: IngestPlan) -> None:
        """Ignore the event."""

    def batch(self, progress: BatchProgress) -> None:
        """Ignore the event."""

    def finished(self, result: IngestResult) -> None:
        """Ignore the event: `run` returns the result."""
