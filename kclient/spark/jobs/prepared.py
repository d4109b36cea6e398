"""A job that is ready to run: the cluster was asked, the checkpoint read, and both agree.

    settings → survey of the cluster → the checkpoint's job and position, or new ones → plan

Nothing is written here, so `--dry-run` ends behind it.
"""

from __future__ import annotations

import os

import attrs

from kclient.runtime import Runtime
from kclient.spark.decoding import BY_INGEST, decoder_of
from kclient.spark.direct import DirectTarget
from kclient.spark.driver import Driver
from kclient.spark.jobs import schemas, sinks
from kclient.spark.jobs.checkpoint import Checkpoint, Offsets, Position
from kclient.spark.jobs.file_size import rows_per_file
from kclient.spark.jobs.job import Job, check_kept, check_same
from kclient.spark.jobs.progress import CheckpointState, IngestPlan, PartitionPlan
from kclient.spark.jobs.settings import INFER, IngestSettings
from kclient.spark.jobs.survey import Survey, check_kept_start, check_offsets, check_topics, survey
from kclient.spark.landing import Layout
from kclient.spark.limits import prorate
from kclient.spark.options import SourceOptions
from kclient.spark.plan import OffsetRange
from kclient.spark.splitting import split


@attrs.frozen(kw_only=True)
class Prepared:
    """Everything that an engine needs. `locks` are the descriptors of what is held while it runs."""

    settings: IngestSettings
    driver: Driver
    checkpoint: Checkpoint
    job: Job
    position: Position
    options: SourceOptions
    target: DirectTarget
    plan: IngestPlan
    locks: tuple[int, ...] = ()

    def stream_options(self) -> dict[str, str]:
        """The options of the source as Spark takes them, from where batch 0 started."""
        start = self.checkpoint.first_start() or self.position.start
        return self.settings.stream_options(start, self.target.rows_per_file)

    def claim(self) -> None:
        """Make checkpoint and sink this job's. From here on the start is what was planned. Raises SinkError."""
        settings, rows = self.settings, self.target.rows_per_file
        self.checkpoint.claim(self.job)
        sinks.claim(settings.sink, settings.writer, self.job)
        if self.plan.checkpoint.state == "new":
            self.checkpoint.starts_at(self.position.start)
        if settings.format == "json" and settings.schema != INFER:
            schemas.freeze(self.checkpoint, str(settings.schema), self.position.batch)
        if settings.target_file_mb is not None and rows is not None:
            self.checkpoint.has_file_rows(settings.target_file_mb, rows)


def prepare(settings: IngestSettings, driver: Driver, runtime: Runtime | None = None) -> Prepared:
    """Ask the cluster and look at checkpoint and sink. `driver` is for `stream_options()` of the settings.

    Raises ConfigError, SinkError, UnknownTopicError, and what `survey` raises.
    """
    checkpoint = Checkpoint(settings.checkpoint)
    settings = schemas.settled(settings, checkpoint)
    kept, position = checkpoint.job(), checkpoint.position()
    options = SourceOptions.parse(settings.stream_options(), "stream")
    found = survey(driver, options, None if position is None else position.start)
    if position is None:
        check_topics(settings.topics, found)
        if settings.fail_on_data_loss:
            check_offsets(settings.start, found)
    elif not position.begun:
        check_kept_start(settings.start, position.start)
    job = _job(settings, found, (runtime or Runtime()).random_bytes(8).hex() if kept is None else kept.job)
    if kept is not None:
        check_same(checkpoint.path, kept, job)
        check_kept(checkpoint.path, kept, _settled(settings, checkpoint))
        job = attrs.evolve(job, topic_ids={**kept.topic_ids, **job.topic_ids})
    sinks.check_sinks(settings, checkpoint)
    here = position or Position(0, found.start)
    if settings.writer == "direct":  # until a start is kept, a backfill may land it all
        sinks.check_not_backfilled(settings.sink.where, _from(found, checkpoint))
    rows = rows_per_file(settings, found, checkpoint, here)
    given = settings.stream_options(checkpoint.first_start() or found.start, rows)
    options = cut(settings, SourceOptions.parse(given, "stream"))
    return Prepared(
        settings=settings,
        driver=driver,
        checkpoint=checkpoint,
        job=job,
        position=here,
        options=options,
        target=target_of(settings, options, rows),
        plan=_plan(settings, found, here, options, "new" if position is None else "resume"),
    )


def with_settings(prepared: Prepared, settings: IngestSettings) -> Prepared:
    """The same job with other settings, which ask nothing new of the cluster. Raises ConfigError."""
    changed = attrs.evolve(prepared, settings=settings)
    options = cut(settings, SourceOptions.parse(changed.stream_options(), "stream"))
    return attrs.evolve(
        changed, options=options, target=target_of(settings, options, prepared.target.rows_per_file)
    )


def target_of(settings: IngestSettings, options: SourceOptions, rows: int | None = None) -> DirectTarget:
    """Where and how ranges land. Raises ConfigError for a schema that cannot be, ConnectError for its registry."""
    target = DirectTarget(
        root=settings.sink.where,
        layout=Layout(
            headers=settings.headers, decoder=decoder_of(options, BY_INGEST), rescue=settings.rescue
        ),
        codec=settings.codec,
        by_date=len(settings.partition_by) > 1,
        dead=None if settings.dlq is None else settings.dlq.where,
        rows_per_file=rows,
    )
    target.layout.schema()
    return target


def cut(settings: IngestSettings, options: SourceOptions) -> SourceOptions:
    """Ranges by the size of files where that was asked for, else into as many pieces as there is work for."""
    by_size = settings.target_file_mb is not None and options.max_records_per_partition is not None
    return options if by_size else attrs.evolve(options, min_partitions=parallelism(settings))


def _job(settings: IngestSettings, found: Survey, job: str) -> Job:
    return Job(
        job=job,
        cluster_id=found.cluster_id,
        topics=settings.topics,
        sink=str(settings.sink),
        engine=settings.engine,
        writer=settings.writer,
        format=settings.format,
        topic_ids=found.topic_ids,
    )


def _from(found: Survey, checkpoint: Checkpoint) -> Offsets:
    """From where on the job lands what no backfill may: never below its first start, also where a log was cut since."""
    first = checkpoint.first_start() or {}
    return {tp: max(offset, first.get(tp, 0)) for tp, offset in found.start.items()}


def _settled(settings: IngestSettings, checkpoint: Checkpoint) -> dict[str, str]:
    """What may not change any more.

    Before the first batch has begun, another engine or writer may do it: the one that was chosen may not run here.
    Before anything has landed, the format may be corrected.
    """
    position = checkpoint.position()
    begun = position is not None and position.begun
    return {
        **({"engine": settings.engine, "writer": settings.writer} if begun else {}),
        **({"format": settings.format} if sinks.has_landed(checkpoint) else {}),
    }


def _plan(
    settings: IngestSettings, found: Survey, here: Position, options: SourceOptions, state: str
) -> IngestPlan:
    ends = {tp: log.end for tp, log in found.bounds.items()}
    limit = None if settings.trigger.kind == "once" else settings.max_per_trigger
    first = here.end or prorate(found.start, ends, limit)
    tasks = split(
        [OffsetRange(*tp, found.start.get(tp, end), end) for tp, end in first.items()],
        options.min_partitions,
        options.max_records_per_partition,
    )
    return IngestPlan(
        cluster_id=found.cluster_id,
        topics=tuple(dict.fromkeys(tp.topic for tp in found.bounds)),
        partitions=tuple(
            PartitionPlan(tp, found.start[tp], end, found.sizes.get(tp)) for tp, end in sorted(ends.items())
        ),
        tasks=len(tasks),
        sink=str(settings.sink),
        engine=settings.engine,
        trigger=str(settings.trigger),
        checkpoint=CheckpointState("new") if state == "new" else here.state,
        group=settings.group,
    )


def parallelism(settings: IngestSettings) -> int | None:
    """Into how many pieces a batch is cut: as told, and without Spark at least one for each core."""
    return settings.parallelism or ((os.cpu_count() or 1) if settings.engine == "direct" else None)
