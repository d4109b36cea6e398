"""`--backfill`: offsets from `--start` to `--end` land once, beside the batches of a job and in the same layout.

The name of its manifest is a hash of the offsets: the same backfill finds it and does nothing. Offsets that count in
the sink already, or belong to the checkpoint's own job, are refused; without `--end` it ends where that job began.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import closing

import attrs

from kclient.bridge import run_blocking
from kclient.errors import SinkError
from kclient.runtime import Runtime
from kclient.spark.batch import plan_batch
from kclient.spark.client import DriverClient
from kclient.spark.ingest.batch_commit import BatchCommitter, BatchTimes, LandedBatch
from kclient.spark.ingest.checkpoint import Checkpoint, Offsets, check_kept, check_same
from kclient.spark.ingest.preflight import (
    ClusterSurvey,
    check_topics,
    measured_rows,
    survey,
    target_of,
    with_split,
)
from kclient.spark.ingest.progress import IngestListener, IngestPlan, IngestResult, PartitionPlan
from kclient.spark.ingest.schemas import check_extends
from kclient.spark.ingest.setting_values import LATEST
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.ingest.sinks import check_not_landed, check_sinks
from kclient.spark.ingest.stop_signals import StopRequest
from kclient.spark.ingest.worker_pool import WorkerPool
from kclient.spark.offsets import MAX_OFFSET, dump_offsets
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import OffsetRange, split
from kclient.spark.sink import manifest
from kclient.spark.sink.parquet import DirectTarget, WrittenRange


@attrs.frozen
class Backfill:
    """The ranges of a backfill, from `start` to `end` of each partition, split by `rows_per_file` if known."""

    ranges: tuple[OffsetRange, ...]
    start: Offsets
    end: Offsets
    rows_per_file: int | None = None

    @property
    def name(self) -> str:
        """The name of its manifest."""
        offsets = f"{dump_offsets(self.start)} {dump_offsets(self.end)}"
        return f"backfill-{hashlib.sha256(offsets.encode()).hexdigest()[:16]}"

    def plan(self, settings: IngestSettings) -> IngestPlan:
        """Return the plan to show to the user."""
        return IngestPlan(
            cluster_id=None,
            topics=tuple(dict.fromkeys(tp.topic for tp in self.start)),
            partitions=tuple(PartitionPlan(tp, start, self.end[tp]) for tp, start in self.start.items()),
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
    jobs_start = _jobs_start(Checkpoint(settings.checkpoint), ranges)
    if settings.end == LATEST:
        ranges = [attrs.evolve(part, end=min(part.end, jobs_start.get(part.tp, part.end))) for part in ranges]
    ranges = sorted(part for part in ranges if part.size)
    start, end = {part.tp: part.start for part in ranges}, {part.tp: part.end for part in ranges}
    pieces = split(ranges, options.min_partitions, options.max_records_per_partition)
    found = Backfill(tuple(pieces), start, end, rows)
    check_not_landed(settings.sink.where, found.start, found.end, found.name)
    _check_job(settings, found, jobs_start)
    return found


def run(
    settings: IngestSettings, listener: IngestListener, stop: StopRequest, locks: Sequence[int] = ()
) -> IngestResult:
    """Run a backfill; `locks` are held meanwhile. Raises as `run` of `ingest` does."""
    runtime = Runtime()
    began_ms = runtime.wall_ms()
    wanted = prepare(settings)
    stop.begin_work()
    listener.planned(wanted.plan(settings))
    job = Checkpoint(settings.checkpoint).job()
    dead = None if settings.dlq is None else settings.dlq.where
    committer = BatchCommitter(settings.sink.where, "backfill" if job is None else job.job, dead)
    if wanted.ranges and manifest.read(settings.sink.where, wanted.name) is None:
        written = _written(settings, wanted, locks)
        whole = committer.count(wanted.name, wanted.start, wanted.end, written)
        times = BatchTimes(duration_ms=max(0, runtime.wall_ms() - began_ms))
        listener.batch(committer.report(0, LandedBatch.of(whole, written), wanted.end, times))
    result = committer.result("drained", wanted.end, wanted.end)
    listener.finished(result)
    return result


def _check_layout(settings: IngestSettings) -> None:
    """Refuse what would not fit together with the files of the checkpoint's job. Raises ConfigError."""
    checkpoint = Checkpoint(settings.checkpoint)
    job, frozen = checkpoint.job(), checkpoint.schema()
    if job is not None:
        check_kept(checkpoint.where, job, {"format": settings.format})
    if settings.format == "json" and frozen is not None:
        check_extends(frozen, str(settings.schema), evolves=settings.evolves)


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


def _written(settings: IngestSettings, wanted: Backfill, locks: Sequence[int]) -> list[WrittenRange]:
    options = SourceOptions.parse(settings.batch_options())
    target = target_of(settings, options)
    if settings.engine == "spark":
        return _with_spark(settings, wanted, target)
    pool = WorkerPool(settings.parallelism or os.cpu_count() or 1, locks)
    try:
        return pool.write(wanted.ranges, options, target)
    finally:
        pool.close()


def _with_spark(settings: IngestSettings, wanted: Backfill, target: DirectTarget) -> list[WrittenRange]:
    from kclient.spark.ingest.spark_session import session_of, typed
    from kclient.spark.sink.sources import DIRECT_FORMAT, DirectSource, from_rows, options_of

    bounds = {"assign": _assigned(wanted), "startingOffsets": dump_offsets(wanted.start)}
    plain = {
        name: text
        for name, text in settings.batch_options(wanted.rows_per_file).items()
        if not name.startswith(("subscribe", "starting", "ending"))
    }
    options = {**plain, **bounds, "endingOffsets": dump_offsets(wanted.end)}
    with session_of(settings) as session:
        session.dataSource.register(DirectSource)
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
