"""Check a job before it runs: ask the cluster, read the checkpoint, and compare both.

    settings → survey of the cluster → the checkpoint's job and position, or new ones → plan

Writes nothing, so `--dry-run` ends after it. `Prepared.claim` is the first write.

`--target-file-mb`: the number of records for a file of that size follows from the size of the rows of the last batch;
the first run samples the topics. The number is kept beside the checkpoint, so that a batch which runs again is split as
before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs

from kclient.errors import ConfigError, KclientError, UnknownTopicError
from kclient.runtime import Runtime
from kclient.spark.client import ClusterHandle, DriverClient
from kclient.spark.cluster_lookup import resolve_start
from kclient.spark.decoding import BY_INGEST, decoder_of
from kclient.spark.executor import RangeFetcher
from kclient.spark.ingest import resume, schemas, sinks
from kclient.spark.ingest.batch_commit import BatchCommitter
from kclient.spark.ingest.checkpoint import Checkpoint, Job, Offsets, Position, check_kept, check_same
from kclient.spark.ingest.progress import (
    CheckpointState,
    IngestListener,
    IngestPlan,
    IngestResult,
    PartitionPlan,
)
from kclient.spark.ingest.run_epoch import RunEpoch
from kclient.spark.ingest.setting_values import StartPosition, matches
from kclient.spark.ingest.settings import INFER, IngestSettings
from kclient.spark.ingest.stop_signals import StopRequest
from kclient.spark.offsets import MAX_OFFSET
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import LogBounds, OffsetRange, fatal_losses, prorate, split
from kclient.spark.sink.parquet import DirectTarget
from kclient.spark.sink.row_layout import RowLayout
from kclient.spark.sink.tables import LakeTable, TableProgress, default_job
from kclient.types import TopicPartition


@attrs.frozen(kw_only=True)
class Prepared:
    """Everything that an engine needs.

    `table` is what the job commits into, None for a sink of another kind; `adopted` is where it stands there, if the
    checkpoint says something else. `min_rows` is for how many a batch waits, None if it does not.
    """

    settings: IngestSettings
    client: DriverClient
    checkpoint: Checkpoint
    job: Job
    position: Position
    options: SourceOptions
    target: DirectTarget
    plan: IngestPlan
    epoch: RunEpoch
    table: LakeTable[Any] | None = None
    adopted: TableProgress | None = None
    min_rows: int | None = None

    def committer(self) -> BatchCommitter:
        """Return what makes the batches of a run count."""
        return BatchCommitter(
            self.settings.sink.where,
            self.job.job,
            self.target.dead,
            table=self.table,
            topic_ids=self.job.topic_ids,
            epoch=self.epoch,
        )

    def stream_options(self) -> dict[str, str]:
        """Return the options of the source for Spark, with the start of batch 0."""
        return self.settings.stream_options(self._first_start(), self.target.rows_per_file, self.min_rows)

    def _first_start(self) -> Offsets:
        """Return where the job began, or begins now. Raises SinkError."""
        return self.checkpoint.first_start() or self.position.start

    def claim(self) -> Prepared:
        """Make checkpoint and sink this job's; return the job with its table, which is there from now on.

        From here on the start is what was planned. Raises ConfigError, SinkError.
        """
        settings, rows = self.settings, self.target.rows_per_file
        self.epoch.claim(above=sinks.newest_epoch(settings.sink, settings.writer))
        self.checkpoint.claim(self.job)
        sinks.claim(settings.sink, settings.writer, self.job, self._first_start())
        sinks.claim_dead_letters(settings, self.job)
        if (known := self.adopted) is not None:
            self.checkpoint.adopt(known.batch, known.offsets, known.first)
        if self.plan.checkpoint.state == "new":
            self.checkpoint.store_start(self.position.start)
        if settings.format == "json" and settings.schema != INFER:
            schemas.freeze(self.checkpoint, str(settings.schema), self.position.batch)
        if settings.target_file_mb is not None and rows is not None:
            self.checkpoint.store_file_rows(settings.target_file_mb, rows)
        return self.with_table()

    def with_table(self) -> Prepared:
        """Return the job with the files of its table, created or extended for the columns of the rows.

        While the schema must still be inferred, the columns are not known. Raises ConfigError, SinkError.
        """
        if self.table is None or self.target.table is not None or self.settings.schema == INFER:
            return self
        columns, settings = self.target.layout.schema(), self.settings
        files = self.table.prepare(columns, settings.partition_by, evolves=settings.evolves)
        return attrs.evolve(self, target=attrs.evolve(self.target, root=files.root, table=files))


Engine = Callable[[Prepared, IngestListener, StopRequest], IngestResult]
"""Claims a job and runs it. Raises as `ingest.run` does."""


def prepare(settings: IngestSettings, client: DriverClient, runtime: Runtime | None = None) -> Prepared:
    """Ask the cluster and look at checkpoint and sink. `client` is one for `stream_options()` of the settings.

    Raises ConfigError, SinkError, UnknownTopicError, and what `survey` raises.
    """
    checkpoint = Checkpoint(settings.checkpoint)
    settings = schemas.with_frozen_schema(settings, checkpoint)
    kept, position = checkpoint.job(), checkpoint.position()
    table, adopted = resume.table_of(settings), None
    name = job_name(settings, lambda: client.call(cluster_id_of), kept, runtime or Runtime())
    if table is not None:
        position, adopted = resume.position_in(table, name, checkpoint, position)
    options = SourceOptions.parse(settings.stream_options(), "stream")
    # A checkpoint with a position decides the start; the options decide it only in the first run.
    found = survey(client, options, None if position is None else position.start)
    if position is None:
        check_topics(settings.topics, found)
        if settings.fail_on_data_loss:
            check_offsets(settings.start, found)
    elif not position.begun:
        check_kept_start(settings.start, position.start)
    job = _job(settings, found, name)
    if kept is not None:
        check_same(checkpoint.where, kept, job)
        check_kept(checkpoint.where, kept, _fixed_settings(settings, checkpoint))
        # Keep the ids of topics that are missing now: when they come back with another id, they were recreated.
        job = attrs.evolve(job, topic_ids={**kept.topic_ids, **job.topic_ids})
    if table is not None and adopted is not None:
        resume.check_not_recreated(table.name, name, adopted, job.topic_ids)
    sinks.check_sinks(settings, checkpoint, name)
    here = position or Position(0, found.start)
    if (settings.sink.kind, settings.writer) == ("parquet", "direct"):
        # As long as no start is stored, a backfill may have landed all of it.
        sinks.check_not_backfilled(settings.sink.where, _landed_from(found, checkpoint))
    if table is not None and position is None:  # each commit looks again
        resume.check_not_backfilled(table, name, _landed_from(found, checkpoint))
    rows = rows_per_file(settings, found, checkpoint, here)
    least = min_rows(settings, found, rows)
    given = settings.stream_options(checkpoint.first_start() or found.start, rows, least)
    options = with_split(settings, SourceOptions.parse(given, "stream"))
    target = target_of(settings, options, rows)
    if table is not None and settings.schema != INFER:
        evolves = settings.evolves
        table.check(target.layout.schema(), settings.partition_by, evolves=evolves)
    return Prepared(
        settings=settings,
        client=client,
        checkpoint=checkpoint,
        job=job,
        position=here,
        options=options,
        target=target,
        epoch=RunEpoch(settings.checkpoint, target.token),
        plan=_plan(settings, found, here, options, "new" if position is None else "resume"),
        table=table,
        adopted=adopted,
        min_rows=least,
    )


def with_settings(prepared: Prepared, settings: IngestSettings) -> Prepared:
    """Return the job with other settings, without another request to the cluster. Raises ConfigError."""
    changed = attrs.evolve(prepared, settings=settings)
    options = with_split(settings, SourceOptions.parse(changed.stream_options(), "stream"))
    return attrs.evolve(
        changed, options=options, target=target_of(settings, options, prepared.target.rows_per_file)
    )


def target_of(settings: IngestSettings, options: SourceOptions, rows: int | None = None) -> DirectTarget:
    """Return where and how ranges are written.

    Raises ConfigError for an invalid schema, ConnectError for its registry.
    """
    target = DirectTarget(
        root=settings.sink.where,
        layout=RowLayout(
            headers=settings.headers,
            decoder=decoder_of(options, BY_INGEST),
            rescue=settings.rescue,
            refuse_new=settings.on_new_field == "fail",
        ),
        codec=settings.codec,
        by_date=len(settings.partition_by) > 1,
        dead=None if settings.dlq is None else settings.dlq.where,
        rows_per_file=rows,
    )
    target.layout.schema()
    return target


def with_split(settings: IngestSettings, options: SourceOptions) -> SourceOptions:
    """Split ranges by the size of files if that is set, else into as many tasks as `parallelism`.

    From here on the options are those of a job, which lands no offsets that come again.
    """
    options = attrs.evolve(options, fatal_losses=fatal_losses(is_table=settings.sink.is_lake))
    by_size = settings.target_file_mb is not None and options.max_records_per_partition is not None
    return options if by_size else attrs.evolve(options, min_partitions=parallelism(settings))


def job_name(
    settings: IngestSettings, cluster_id: Callable[[], str | None], kept: Job | None, runtime: Runtime
) -> str:
    """Return the name of the job. In a table it is the user's, or one that a run without checkpoint finds again.

    Raises ConfigError for another name than the checkpoint's.
    """
    if kept is not None and settings.job not in (None, kept.job):
        raise ConfigError(
            f"The checkpoint {settings.checkpoint} belongs to the job {kept.job}, and --job says {settings.job}. Leave "
            "--job out, or give the other job a checkpoint of its own."
        )
    if kept is not None:
        return kept.job
    if not settings.sink.is_lake:
        return runtime.random_bytes(8).hex()
    return settings.job or default_job(cluster_id(), settings.topics, str(settings.sink))


async def cluster_id_of(handle: ClusterHandle) -> str | None:
    """Return the id of the cluster, None of a broker that has none."""
    return handle.cluster.metadata.cluster_id


def _job(settings: IngestSettings, found: ClusterSurvey, job: str) -> Job:
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


def _landed_from(found: ClusterSurvey, checkpoint: Checkpoint) -> Offsets:
    """Return from where on only the job lands records: at least its first start, even if a log was truncated."""
    first = checkpoint.first_start() or {}
    return {tp: max(offset, first.get(tp, 0)) for tp, offset in found.start.items()}


def _fixed_settings(settings: IngestSettings, checkpoint: Checkpoint) -> dict[str, str]:
    """Return the settings that may not change any more.

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
    settings: IngestSettings, found: ClusterSurvey, here: Position, options: SourceOptions, state: str
) -> IngestPlan:
    ends = {tp: log.end for tp, log in found.bounds.items()}
    limit = None if settings.trigger.kind == "once" else settings.max_per_trigger
    # A batch that was begun ends where it was to end; else the first one ends at the limit, as in `Stream.latest`.
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
    """Return into how many tasks a batch is split: the setting, or without Spark one for each core."""
    return settings.parallelism or ((os.cpu_count() or 1) if settings.engine == "direct" else None)


# --- looking up the cluster ----------------------------------------------------------------------------------------


SAMPLE_BYTES: Final = 65_536
SAMPLE_MS: Final = 5_000
MAX_LISTED: Final = 5
MAX_SAMPLES: Final = 32
"""With more partitions no sizes are estimated: that many requests would cost more than an estimate is worth."""


@attrs.frozen
class ClusterSurvey:
    """What the cluster answered. `start` is where each partition starts; `sizes` are estimated bytes of backlog."""

    cluster_id: str | None
    bounds: Mapping[TopicPartition, LogBounds]
    start: Mapping[TopicPartition, int]
    sizes: Mapping[TopicPartition, int]

    @property
    def topic_ids(self) -> dict[str, str]:
        """The id of each topic, if the cluster has ids."""
        return {tp.topic: log.topic_id.hex() for tp, log in self.bounds.items() if log.topic_id}


def survey(
    client: DriverClient, options: SourceOptions, start: Mapping[TopicPartition, int] | None
) -> ClusterSurvey:
    """Return what the cluster holds. `start` comes from a checkpoint; None means the start of the options.

    Partitions of the checkpoint that no longer exist are left out: the stream decides whether that is an error, as for
    any loss. Raises ConnectError, AuthorizationError, UnknownTopicError, ConfigError, DeadlineError.
    """
    return client.call(lambda handle: _survey(handle, options, start))


def check_topics(names: Iterable[str], found: ClusterSurvey) -> None:
    """Refuse to begin if a name has no topic: a checkpoint bound to a misspelt name would be useless.

    Raises UnknownTopicError.
    """
    topics = {tp.topic for tp in found.bounds}
    for name in names:
        if not any(matches(name, topic) for topic in topics):
            raise UnknownTopicError(
                f"No topic matches {name} in this cluster. It is misspelt, or has no topic yet. "
                "Correct --topics, or create one first.",
                topic=name,
            )


def check_offsets(given: StartPosition, found: ClusterSurvey) -> None:
    """Refuse to begin at offsets of a file that no log has: a checkpoint would keep them. Raises ConfigError."""
    logs = found.bounds
    wrong = [
        f"{tp} at {offset}, of {logs[tp].start} to {logs[tp].end}"
        for tp, offset in found.start.items()
        if given.offsets is not None and not logs[tp].start <= offset <= logs[tp].end
    ]
    if wrong:
        raise ConfigError(
            f"--start gives offsets that are not there: {'; '.join(wrong[:MAX_LISTED])}. The file is of other logs, or "
            "their records were deleted since. Correct it; with --accept-data-loss the job begins at what is nearest.",
            problems=tuple(wrong),
        )


def check_kept_start(given: StartPosition, kept: Mapping[TopicPartition, int]) -> None:
    """Refuse other offsets than those where a first run decided to begin. Raises ConfigError."""
    other = [
        f"{tp} at {kept.get(tp, 'its beginning')}, not {offset}"
        for tp, offset in (given.offsets or {}).items()
        if kept.get(tp) != offset
    ]
    if other:
        raise ConfigError(
            f"The job of this checkpoint does not begin at --start: {'; '.join(other[:MAX_LISTED])}. Its"
            " first run decided that. No batch has begun: give a new checkpoint, or leave --start out.",
            problems=tuple(other),
        )


async def _survey(
    handle: ClusterHandle, options: SourceOptions, start: Mapping[TopicPartition, int] | None
) -> ClusterSurvey:
    chosen = handle.lookup.partitions if start is None else handle.lookup.existing
    partitions = await chosen(options.selection, internal=options.include_internal_topics)
    bounds = await handle.lookup.log_bounds(partitions)
    if start is None:
        begins: Mapping[TopicPartition, int] = await resolve_start(handle.lookup, options, bounds)
    else:
        begins = {tp: start.get(tp, log.start) for tp, log in bounds.items()}
    waiting = [
        OffsetRange(*tp, max(begins[tp], log.start), log.end, log.topic_id) for tp, log in bounds.items()
    ]
    waiting = [wanted for wanted in waiting if wanted.size]
    sizes = {
        wanted.tp: await _size(handle, options, wanted) for wanted in waiting if len(waiting) <= MAX_SAMPLES
    }
    known = {tp: size for tp, size in sizes.items() if size is not None}
    return ClusterSurvey(handle.cluster.metadata.cluster_id, bounds, begins, known)


async def _size(handle: ClusterHandle, options: SourceOptions, wanted: OffsetRange) -> int | None:
    """Return the estimated bytes of a range, from its first records; None if they cannot be read now."""
    config = attrs.evolve(handle.config, max_partition_fetch_bytes=SAMPLE_BYTES)
    sampling = attrs.evolve(options, poll_timeout_ms=SAMPLE_MS, read_ahead=0)
    fetcher = RangeFetcher(handle.cluster, config, handle.runtime, wanted, sampling)
    try:
        fetched = await fetcher.next()
    except KclientError:
        return None
    finally:
        await fetcher.close()
    if fetched is None or fetched.next_offset is None:
        return None
    return len(fetched.data) * wanted.size // max(1, fetched.next_offset - fetched.position)


# --- how many records make a file ------------------------------------------------------------------------------------


MB: Final = 1_000_000


def rows_per_file(
    settings: IngestSettings, found: ClusterSurvey, checkpoint: Checkpoint, here: Position
) -> int | None:
    """Return None if no size was requested, or if the size of records is not known yet. Raise SinkError."""
    if settings.target_file_mb is None:
        return None
    kept = checkpoint.file_rows(settings.target_file_mb)
    if here.end is not None and kept is not None:
        return kept
    return measured_rows(settings, settings.target_file_mb, found) or kept


def min_rows(settings: IngestSettings, found: ClusterSurvey, rows: int | None) -> int | None:
    """Return for how many rows a batch waits up to `--max-latency`: those of one file of each partition.

    As long as the size of rows is not known, that is more than there ever are.
    """
    if settings.max_latency is None:
        return None
    wanted = MAX_OFFSET if rows is None else rows * max(1, len(found.bounds))
    return min(wanted, settings.max_per_trigger or MAX_OFFSET)


def measured_rows(settings: IngestSettings, target_mb: int, found: ClusterSurvey) -> int | None:
    """Return the rows per file, from the last batch or from samples. Raises SinkError."""
    size = sinks.last_written(settings.sink, settings.writer) or _sampled(found)
    return None if size is None else max(1, target_mb * MB * size[0] // max(1, size[1]))


def _sampled(found: ClusterSurvey) -> tuple[int, int] | None:
    """Return records and bytes of the sampled partitions, None without any."""
    rows = sum(max(0, found.bounds[tp].end - found.start[tp]) for tp in found.sizes)
    return (rows, sum(found.sizes.values())) if rows else None
