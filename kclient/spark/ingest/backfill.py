"""`--backfill`: offsets from `--start` to `--end` land once, beside the batches of a job and in the same layout.

Offsets that count in the sink already, or belong to the checkpoint's own job, are refused; without `--end` it ends
where that job began. Its name is a hash of the offsets, and of the cluster and the topics that they belong to, so that
the same backfill finds what it has landed, and one of other records does not:

    parquet:DIR             _manifest/backfill-….json: one batch, and the next run does nothing
    parquet:s3://…          the same; it claims its offsets first, because it holds no lock (`sink_claims.py`)
    iceberg:NAME, delta:DIR the progress of JOB/backfill-… in the table: batches of --max-per-trigger, and the next run
                            goes on after the last one; the job beside it has a progress of its own
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from kclient.bridge import run_blocking
from kclient.errors import SinkError
from kclient.runtime import Runtime
from kclient.spark.batch import plan_batch
from kclient.spark.client import DriverClient
from kclient.spark.ingest import resume, sink_claims
from kclient.spark.ingest.batch_commit import BatchCommitter, BatchTimes, LandedBatch
from kclient.spark.ingest.checkpoint import Checkpoint, Offsets, check_kept, check_same
from kclient.spark.ingest.preflight import (
    ClusterSurvey,
    check_topics,
    job_name,
    measured_rows,
    survey,
    target_of,
    with_split,
)
from kclient.spark.ingest.progress import Ended, IngestListener, IngestPlan, IngestResult, PartitionPlan
from kclient.spark.ingest.schemas import check_extends
from kclient.spark.ingest.setting_values import LATEST
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.ingest.sink_claims import OffsetClaim
from kclient.spark.ingest.sinks import check_not_landed as check_not_landed_by_manifests
from kclient.spark.ingest.sinks import check_sinks
from kclient.spark.ingest.stop_signals import StopRequest
from kclient.spark.ingest.worker_pool import WorkerPool
from kclient.spark.offsets import MAX_OFFSET, dump_offsets
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import OffsetRange, prorate, split
from kclient.spark.sink.parquet import DirectTarget, WrittenRange
from kclient.spark.sink.tables import BESIDE, LakeTable, TableCommit, TableProgress, check_not_landed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Write: TypeAlias = Callable[["Backfill", DirectTarget], list[WrittenRange]]


@attrs.frozen
class Backfill:
    """A backfill, from `start` to `end` of each partition, cut into ranges as `options` say.

    `rows_per_file` is None if it is unknown. In a `table` it is a part of the job `owner`, and `done` is how far it
    came there.
    """

    start: Offsets
    end: Offsets
    options: SourceOptions
    rows_per_file: int | None = None
    owner: str = "backfill"
    topic_ids: Mapping[str, str] = attrs.field(factory=dict)
    table: LakeTable[Any] | None = None
    done: TableProgress | None = None
    cluster_id: str | None = None

    @property
    def name(self) -> str:
        """The name of its manifest."""
        ids = {topic: self.topic_ids.get(topic) for topic in sorted({tp.topic for tp in self.start})}
        read = json.dumps([self.cluster_id, ids, dump_offsets(self.start), dump_offsets(self.end)])
        return f"backfill-{hashlib.sha256(read.encode()).hexdigest()[:16]}"

    @property
    def job(self) -> str:
        """Its name in the table."""
        return f"{self.owner}{BESIDE}{self.name}"

    @property
    def next(self) -> Offsets:
        """Where it goes on."""
        return self.start if self.done is None else {**self.start, **self.done.offsets}

    @property
    def ranges(self) -> list[OffsetRange]:
        """What is left to read."""
        ids = {topic: bytes.fromhex(id_) for topic, id_ in self.topic_ids.items()}
        left = [
            OffsetRange(*tp, start, self.end[tp], ids.get(tp.topic))
            for tp, start in self.next.items()
            if start < self.end[tp]
        ]
        return split(sorted(left), self.options.min_partitions, self.options.max_records_per_partition)

    def piece(self, at: Offsets, limit: int | None) -> Backfill:
        """Return its next batch, of about so many offsets."""
        ends = {tp: end for tp, end in prorate(at, self.end, limit).items() if end > at[tp]}
        return attrs.evolve(self, start={tp: at[tp] for tp in ends}, end=ends, done=None)

    def plan(self, settings: IngestSettings) -> IngestPlan:
        """Return the plan to show to the user."""
        return IngestPlan(
            cluster_id=None,
            topics=tuple(dict.fromkeys(tp.topic for tp in self.start)),
            partitions=tuple(PartitionPlan(tp, start, self.end[tp]) for tp, start in self.next.items()),
            tasks=len(self.ranges),
            sink=str(settings.sink),
            engine=settings.engine,
            trigger="backfill",
            checkpoint=Checkpoint(settings.checkpoint).state_beside(),
        )


def prepare(settings: IngestSettings) -> Backfill:
    """Ask what there is.

    Raises ConfigError for another layout or other logs than the job's, SinkError for another job's sink and where
    records would count twice, UnknownTopicError for a name that no topic matches, and what planning a batch raises.
    """
    check_sinks(settings, Checkpoint(settings.checkpoint))
    _check_layout(settings)
    logs = _survey(settings)
    _check_logs(settings, logs)
    check_topics(settings.topics, logs)
    rows = None if settings.target_file_mb is None else measured_rows(settings, settings.target_file_mb, logs)
    options = with_split(settings, SourceOptions.parse(settings.batch_options(rows)))
    whole = attrs.evolve(options, min_partitions=None, max_records_per_partition=None)
    ranges = run_blocking(plan_batch(whole))
    found = _named(settings, logs, options, rows)
    jobs_start = {**_jobs_start(Checkpoint(settings.checkpoint), ranges), **_jobs_start_in_table(found)}
    if settings.end == LATEST:
        ranges = [attrs.evolve(part, end=min(part.end, jobs_start.get(part.tp, part.end))) for part in ranges]
    ranges = sorted(part for part in ranges if part.size)
    start, end = {part.tp: part.start for part in ranges}, {part.tp: part.end for part in ranges}
    found = attrs.evolve(found, start=start, end=end)
    if found.table is None:
        check_not_landed_by_manifests(settings.sink.where, found.start, found.end, found.name)
    _check_job(settings, found, jobs_start)
    return found if found.table is None else _in_table(settings, found, found.table)


def run(
    settings: IngestSettings, listener: IngestListener, stop: StopRequest, locks: Sequence[int] = ()
) -> IngestResult:
    """Run a backfill; `locks` are held meanwhile. Raises as `run` of `ingest` does."""
    runtime = Runtime()
    began_ms = runtime.wall_ms()
    wanted = prepare(settings)
    stop.begin_work()
    listener.planned(wanted.plan(settings))
    dead = None if settings.dlq is None else settings.dlq.where
    if wanted.table is not None:
        committer = BatchCommitter(settings.sink.where, wanted.job, dead, wanted.table, wanted.topic_ids)
        ended: Ended = "drained"
        if wanted.ranges:
            with _writer(settings, locks) as write:
                ended = _land(settings, wanted, write, committer, listener, stop)
        result = committer.result(ended, wanted.end, wanted.end, signal=stop.signal)
        listener.finished(result)
        return result
    committer = BatchCommitter(settings.sink.where, wanted.owner, dead)
    if wanted.ranges and not committer.has_landed(wanted.name):
        sink_claims.claim(settings.sink.where, OffsetClaim(wanted.name, wanted.start, wanted.end))
        with _writer(settings, locks) as write:
            written = write(wanted, _target(settings).of_manifest(wanted.name))
        whole = committer.count(wanted.name, wanted.start, wanted.end, written)
        times = BatchTimes(duration_ms=max(0, runtime.wall_ms() - began_ms))
        listener.batch(committer.report(0, LandedBatch.of(whole, written), wanted.end, times))
    result = committer.result("drained", wanted.end, wanted.end)
    listener.finished(result)
    return result


# --- into a table ----------------------------------------------------------------------------------------------------


def _named(
    settings: IngestSettings, logs: ClusterSurvey, options: SourceOptions, rows: int | None
) -> Backfill:
    """Return a backfill without offsets: whose it is, and where it lands. Raises ConfigError."""
    job = Checkpoint(settings.checkpoint).job()
    table = resume.table_of(settings)
    owner = "backfill" if job is None else job.job
    if table is not None:
        owner = job_name(settings, lambda: logs.cluster_id, job, Runtime())
    return Backfill({}, {}, options, rows, owner, logs.topic_ids, table, cluster_id=logs.cluster_id)


def _jobs_start_in_table(found: Backfill) -> Offsets:
    """Return from where on the job has landed partitions, by the table: also if its checkpoint is lost."""
    version = None if found.table is None else found.table.find()
    if found.table is None or version is None:
        return {}
    kept = found.table.family(version, found.owner).get(found.owner)
    return {} if kept is None else kept.first


def _in_table(settings: IngestSettings, found: Backfill, table: LakeTable[Any]) -> Backfill:
    """Return a backfill with its progress in the table. Raises ConfigError, SinkError."""
    columns, evolves = target_of(settings, found.options).layout.schema(), settings.evolves
    table.check(columns, settings.partition_by, evolves=evolves)
    version = table.find()
    if version is None:
        return found
    for name, progress in table.family(version, found.owner).items():
        resume.check_not_recreated(table.name, name, progress, found.topic_ids)
    done = table.progress(version, found.job)
    if done is None:
        check_not_landed(
            table, version, TableCommit(job=found.job, batch=0, start=found.start, end=found.end)
        )
    return attrs.evolve(found, done=done)


def _land(
    settings: IngestSettings,
    wanted: Backfill,
    write: Write,
    committer: BatchCommitter,
    listener: IngestListener,
    stop: StopRequest,
) -> Ended:
    """Land what is left of a backfill in its table, batch after batch."""
    runtime, target, at = Runtime(), _target(settings, wanted.table), dict(wanted.next)
    number = 0 if wanted.done is None else wanted.done.batch + 1
    while at != wanted.end:
        if stop:
            return "stopped"
        began_ms = runtime.wall_ms()
        piece = wanted.piece(at, settings.max_per_trigger)
        written = write(piece, target.of_manifest(piece.name))
        whole = committer.count(piece.name, piece.start, piece.end, written, began_ms, number)
        at |= piece.end
        number += 1
        times = BatchTimes(duration_ms=max(0, runtime.wall_ms() - began_ms))
        landed = LandedBatch.of(whole, written)
        listener.batch(committer.report(number - 1, attrs.evolve(landed, end=at), wanted.end, times))
    return "drained"


# --- what it may land ------------------------------------------------------------------------------------------------


def _check_layout(settings: IngestSettings) -> None:
    """Refuse what would not fit together with the files of the checkpoint's job. Raises ConfigError."""
    checkpoint = Checkpoint(settings.checkpoint)
    job, frozen = checkpoint.job(), checkpoint.schema()
    if job is not None:
        check_kept(checkpoint.where, job, {"format": settings.format})
    if settings.format == "json" and frozen is not None:
        check_extends(frozen, settings, job)


def _survey(settings: IngestSettings) -> ClusterSurvey:
    options = SourceOptions.parse(settings.stream_options(), "stream")
    with closing(DriverClient(options)) as client:
        client.connect()
        return survey(client, options, None)


def _check_logs(settings: IngestSettings, found: ClusterSurvey) -> None:
    """Refuse the logs of another cluster, and recreated topics; other topics may land beside the job's."""
    checkpoint = Checkpoint(settings.checkpoint)
    if (job := checkpoint.job()) is not None:
        now = attrs.evolve(job, cluster_id=found.cluster_id, topic_ids=found.topic_ids)
        check_same(checkpoint.where, job, now)


def _jobs_start(checkpoint: Checkpoint, ranges: Sequence[OffsetRange]) -> Offsets:
    """Return from where on the checkpoint's job lands these partitions; of later ones it reads all."""
    job, start = checkpoint.job(), checkpoint.first_start()
    if job is None or start is None:
        return {}
    return {part.tp: start.get(part.tp, 0) for part in ranges if part.tp in start or job.reads(part.topic)}


def _check_job(settings: IngestSettings, found: Backfill, jobs_start: Offsets) -> None:
    """Refuse offsets that the checkpoint's job lands, now or later: everything from its start on."""
    for tp, end in found.end.items():
        if end > jobs_start.get(tp, MAX_OFFSET):
            raise SinkError(
                f"The job of this checkpoint lands {tp} from {jobs_start[tp]} on, and the backfill would up to {end}. "
                "These records would count twice. Leave --end out: then it ends where the job began.",
                path=settings.sink.where,
            )


# --- how it is written -----------------------------------------------------------------------------------------------


def _target(settings: IngestSettings, table: LakeTable[Any] | None = None) -> DirectTarget:
    """Return where its files go; a table is there from now on. Raises ConfigError, SinkError."""
    target = target_of(settings, SourceOptions.parse(settings.batch_options()))
    if table is None:
        return target
    evolves = settings.evolves
    files = table.prepare(target.layout.schema(), settings.partition_by, evolves=evolves)
    return attrs.evolve(target, root=files.root, table=files)


@contextmanager
def _writer(settings: IngestSettings, locks: Sequence[int]) -> Iterator[Write]:
    """Return the engine's function that writes the ranges of a backfill, or of a batch of it."""
    if settings.engine == "spark":
        from kclient.spark.ingest.spark_session import session_of
        from kclient.spark.sink.sources import DirectSource

        with session_of(settings) as session:
            session.dataSource.register(DirectSource)
            yield partial(_with_spark, settings, session)
        return
    options = SourceOptions.parse(settings.batch_options())
    pool = WorkerPool(settings.parallelism or os.cpu_count() or 1, locks)
    try:
        yield lambda wanted, target: pool.write(wanted.ranges, options, target)
    finally:
        pool.close()


def _with_spark(
    settings: IngestSettings, session: SparkSession, wanted: Backfill, target: DirectTarget
) -> list[WrittenRange]:
    from kclient.spark.ingest.spark_session import typed
    from kclient.spark.sink.sources import DIRECT_FORMAT, from_rows, options_of

    bounds = {"assign": _assigned(wanted), "startingOffsets": dump_offsets(wanted.start)}
    plain = {
        name: text
        for name, text in settings.batch_options(wanted.rows_per_file).items()
        if not name.startswith(("subscribe", "starting", "ending"))
    }
    options = {**plain, **bounds, "endingOffsets": dump_offsets(wanted.end)}
    frame = session.read.format(DIRECT_FORMAT).options(**options_of(options, target.of_new_run())).load()
    try:
        return from_rows(row.asDict() for row in frame.collect())
    except Exception as exc:
        raise typed(exc) from exc


def _assigned(wanted: Backfill) -> str:
    topics: dict[str, list[int]] = {}
    for topic, partition in wanted.start:
        topics.setdefault(topic, []).append(partition)
    return json.dumps(topics)
