"""One process that runs the job: the real preflight, loop, checkpoint, file names and commit, on simulated services."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, cast
from unittest import mock

import attrs
import pyarrow as pa

from kclient.errors import DataLossError
from kclient.records.arrow import SCHEMA
from kclient.spark.client import DriverClient
from kclient.spark.ingest import (
    batch_commit,
    checkpoint,
    engine_direct,
    preflight,
    resume,
    run_epoch,
    sink_claims,
)
from kclient.spark.ingest.engine_direct import _DirectEngine
from kclient.spark.ingest.preflight import Prepared
from kclient.spark.ingest.progress import BatchProgress, IngestPlan, IngestResult
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.ingest.stop_signals import StopRequest
from kclient.spark.ingest.worker_pool import BatchWork
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink import manifest, parquet
from kclient.spark.sink.parquet import DirectTarget, WrittenRange, write_batches
from kclient.spark.sink.store import ObjectStore
from kclient.types import TopicPartition
from tests.lakehouse.scheduler import SimulatedRuntime, Task
from tests.lakehouse.storage import SimulatedFile, SimulatedTable
from tests.lakehouse.topic import TOPIC, TopicClient, records

if TYPE_CHECKING:
    from tests.lakehouse.world import World

SINKS: Final = {"table": "iceberg:lake.db.flights", "manifests": "parquet:s3://lake/rows"}
MAX_PER_TRIGGER: Final = 60
TRIGGER_SECONDS: Final = 2
WRITE_SECONDS: Final = 0.2
WRITES_AHEAD: Final = 0.6
"""How probable it is that one more range of the next batch is written first."""


@attrs.define(eq=False)
class Process:
    """A process: its checkpoint's URL, its client, and its task."""

    world: World
    name: str
    checkpoint: str
    runtime: SimulatedRuntime
    client: TopicClient
    table: SimulatedTable
    stop: StopRequest = attrs.field(factory=StopRequest)
    task: Task = attrs.field(init=False)
    writing: OffsetRange | None = None
    sleeps_writing: float = 0.0
    """How long the machine sleeps once a file of the next batch is there."""

    def main(self) -> None:
        """Run the job until it is asked to stop. Raises what ends a run."""
        settings = IngestSettings.parse(
            {
                "bootstrap": "broker:9092",
                "topics": TOPIC,
                "sink": SINKS[self.world.plan.sink],
                "checkpoint": self.checkpoint,
                "engine": "direct",
                "parallelism": 1,
                "trigger": "availableNow" if self.world.plan.drains else f"{TRIGGER_SECONDS}s",
                "max_per_trigger": MAX_PER_TRIGGER,
                "options": {"fetchOffset.numRetries": "0"},
            }
        )
        with engine_direct.engine(settings, ()) as engine:
            prepared = preflight.prepare(settings, cast(DriverClient, self.client), self.runtime)
            self.planned(prepared.plan)
            engine(prepared, self, self.stop)

    # --- the listener of the run

    def planned(self, plan: IngestPlan) -> None:
        """Take the plan."""

    def batch(self, progress: BatchProgress) -> None:
        """Look whether a batch that is reported as done has been committed."""
        self.world.watch.reported(self.name, progress.batch, progress.end, self.table.catalog.reached)

    def finished(self, result: IngestResult) -> None:
        """Take the result."""

    # --- what the run works with

    def begin(self, ranges: Sequence[OffsetRange], options: SourceOptions, target: DirectTarget) -> BatchWork:
        """Begin nothing yet."""
        return BatchWork(ranges, options, target, deque(range(len(ranges))))

    def finish(
        self, work: BatchWork, begin_next: Callable[[], BatchWork | None] = lambda: None
    ) -> list[WrittenRange]:
        """Write ranges one after another, some of the next batch before the last of this one, as two workers would."""
        while len(work.waiting) > 1:
            self._write(work)
        following = begin_next()
        while following is not None and following.waiting and self.runtime.rng.random() < WRITES_AHEAD:
            self._write(following)
        while work.waiting:
            self._write(work)
        return [work.results[index] for index in range(len(work.ranges))]

    def _write(self, work: BatchWork) -> None:
        index = work.waiting.popleft()
        wanted = work.ranges[index]
        self.runtime.pause(self.runtime.rng.uniform(0.0, WRITE_SECONDS))
        self.writing = wanted
        work.results[index] = write_batches(wanted, self._read(wanted, work.target), work.target)
        if self.sleeps_writing:
            self.world.scheduler.freeze(self.task, self.runtime.now() + self.sleeps_writing)
            self.sleeps_writing = 0.0
            self.runtime.pause(0.0)

    def start(self, ranges: int) -> None:
        """Start no workers."""

    def close(self) -> None:
        """End no workers."""

    def file(self, path: str) -> SimulatedFile:
        """Return the file of the range that is written."""
        wanted, incarnation = cast(OffsetRange, self.writing), self.world.topic.incarnation
        return SimulatedFile(self.world.files, self.runtime, path, incarnation, wanted.tp, self.name)

    def _read(self, wanted: OffsetRange, target: DirectTarget) -> Iterator[pa.RecordBatch]:
        topic = self.world.topic
        if wanted.topic_id != topic.id or wanted.end > topic.ends[wanted.tp]:
            raise DataLossError(f"{wanted.tp} was recreated", kind="TOPIC_RECREATED", partitions=(wanted.tp,))
        offsets = records(wanted.start, wanted.end)
        if offsets:
            yield _rows(offsets, target.layout.read())


def _rows(offsets: Sequence[int], names: Sequence[str]) -> pa.RecordBatch:
    """Return what is read of records, of which only the offsets matter."""
    columns: list[Any] = []
    for name in names:
        kind = SCHEMA.field(name).type
        known = {"offset": offsets, "timestamp": [0] * len(offsets)}.get(name)
        columns.append(
            pa.nulls(len(offsets), kind) if known is None else pa.array(known, pa.int64()).cast(kind)
        )
    return pa.RecordBatch.from_arrays(columns, names=list(names))


async def _no_size(*_: Any) -> None:
    """Samples of records are not simulated."""


@contextmanager
def simulated(current: Callable[[], Process]) -> Iterator[None]:
    """Put the services of the process that runs in the places of real ones."""

    class Engine(_DirectEngine):
        def __init__(self, prepared: Prepared, pool: Any, listener: Any, stop: StopRequest) -> None:
            super().__init__(prepared, pool, listener, stop)
            process = current()
            self._runtime = process.runtime
            self._committer.runtime = process.runtime

    def store_of(url: str, options: Any = None) -> ObjectStore:
        return current().world.bucket.store(url)

    places: list[tuple[Any, str, Any]] = [
        (engine_direct, "_DirectEngine", Engine),
        (engine_direct, "WorkerPool", lambda size, locks: current()),
        (engine_direct, "POLL_SECONDS", TRIGGER_SECONDS),
        (batch_commit, "Runtime", lambda: current().runtime),
        (parquet, "Runtime", lambda: current().runtime),
        (parquet, "_output_of", lambda root, name: name),
        (parquet, "ParquetFile", lambda path, schema, codec: current().file(path)),
        (preflight, "_size", _no_size),
        (resume, "open_table", lambda where, catalog: current().table),
        *((module, "store_of", store_of) for module in (checkpoint, run_epoch, sink_claims, manifest)),
    ]
    with ExitStack() as stack:
        for owner, name, value in places:
            stack.enter_context(mock.patch.object(owner, name, value))
        yield


def partitions(count: int) -> list[TopicPartition]:
    """Return the first partitions of the topic."""
    return [TopicPartition(TOPIC, partition) for partition in range(count)]
