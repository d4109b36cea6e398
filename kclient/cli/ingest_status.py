"""`kclient ingest status`: how far a checkpoint is, read from its plain JSON, without Spark.

With `-b` the ends of the logs are asked for: the distance to them is the lag, unknown where an end is missing.
Looking changes nothing.
"""

from __future__ import annotations

import asyncio
import json as json_form
import sys
from collections.abc import Mapping, Set
from typing import Annotated, Any, Final

import attrs
from cyclopts import Parameter

from kclient.cli import program
from kclient.cli.exit_codes import OK
from kclient.cli.options import ConnectionOptions, WhereAsked, check_catalog, flag, option
from kclient.cli.reporters import warnings_shown
from kclient.cli.table import table
from kclient.config import Config
from kclient.errors import ArgumentError, ConfigError
from kclient.network.cluster import Cluster
from kclient.runtime import Runtime
from kclient.spark.cluster_lookup import ClusterLookup
from kclient.spark.ingest import sinks
from kclient.spark.ingest.checkpoint import Checkpoint, Job, Position
from kclient.spark.ingest.resume import open_table
from kclient.spark.ingest.setting_values import expression
from kclient.spark.option_table import Pattern, Topics
from kclient.spark.ranges import LogBounds
from kclient.text import LONGEST_PATH, format_partitions, printable
from kclient.types import TopicPartition

Offsets = Mapping[TopicPartition, int]

TITLES: Final = ("TOPIC", "PARTITION", "NEXT", "END", "LAG")
NOTHING: Final = "-"
CLOSE_SECONDS: Final = 2.0


@attrs.frozen
class Status:
    """The state of a checkpoint, and the ends of the logs if they were requested.

    `next` is the next offset of each partition; the beginning for a partition that has appeared since.
    """

    checkpoint: str
    job: Job
    position: Position
    rows: int | None  # of a table only with --catalog, and all writers' together
    next: Offsets
    ends: Offsets | None
    table_batch: int | None = None  # the job's last batch in its table
    is_counted: bool = False  # whether the table was looked into

    @property
    def lag(self) -> int | None:
        """Return how many offsets are left to read; None unless they are known for every partition."""
        known = [lag for tp in self.next if (lag := self.lag_of(tp)) is not None]
        return sum(known) if len(known) == len(self.next) and self.ends is not None else None

    def lag_of(self, tp: TopicPartition) -> int | None:
        """Return the same for one partition; None if its log is gone or ends before the job's position."""
        end = None if self.ends is None else self.ends.get(tp)
        return None if end is None or end < self.next[tp] else end - self.next[tp]


@warnings_shown()
def status(
    *,
    checkpoint: Annotated[str | None, option("the job's checkpoint (required)", "DIR|URL")] = None,
    catalog: Annotated[
        str | None, option("look into the job's Iceberg table too, with these catalogs", "FILE")
    ] = None,
    json: Annotated[bool, flag("one JSON object")] = False,
    connection: Annotated[WhereAsked, Parameter(name="*")] = WhereAsked(),  # noqa: B008 – frozen
) -> int:
    """Show the progress of a job's checkpoint, and with -b its lag; needs no Spark, and works while the job runs."""
    if checkpoint is None:
        raise ArgumentError(f"--checkpoint is missing. Type: {program()} ingest status --checkpoint DIR")
    found = _status(checkpoint, catalog, connection)
    sys.stdout.write(json_form.dumps(_fields(found)) + "\n" if json else _text(found))
    return OK


def _status(checkpoint: str, catalog: str | None, connection: ConnectionOptions) -> Status:
    kept = Checkpoint(checkpoint)
    job, position = kept.job(), kept.position()
    if job is None or position is None:
        raise ConfigError(
            f"{checkpoint} holds no checkpoint of an ingest job: nothing has begun there. "
            "Give the directory that the job was given as --checkpoint."
        )
    begin, ends = position.start, None
    if connection.bootstrap_servers or connection.properties:
        config = connection.config(allow_auto_create_topics=False)
        cluster_id, bounds = asyncio.run(_logs(config, job, {tp.topic for tp in begin}))
        _check_same(checkpoint, job, cluster_id, bounds)
        begin = {**{tp: log.start for tp, log in bounds.items()}, **begin}
        ends = {tp: log.end for tp, log in bounds.items()}
    rows, batch = sinks.rows(job), None
    check_catalog(job.location, catalog)
    # To find a Delta table its place is all that is needed.
    is_counted = catalog is not None or job.location.kind == "delta"
    if is_counted:
        rows, batch = _in_table(job, catalog)
    return Status(str(checkpoint), job, position, rows, begin, ends, batch, is_counted)


def _in_table(job: Job, catalog: str | None) -> tuple[int | None, int | None]:
    """Return the rows of the job's table, and the job's last batch in it. Raises ConfigError, SinkError."""
    table = open_table(job.location, catalog)
    if (version := table.find()) is None:
        return None, None
    progress = table.progress(version, job.job)
    return table.rows(version), None if progress is None else progress.batch


async def _logs(
    config: Config, job: Job, known: Set[str]
) -> tuple[str | None, Mapping[TopicPartition, LogBounds]]:
    """Return the cluster's id, and the current log bounds of those topics of the job that the cluster has.

    `known` are the topics that it has started. It starts other matching topics with its next batch.
    """
    pattern = expression(job.topics)
    named = Topics(tuple(known if pattern else {*known, *job.topics}))
    runtime = Runtime()
    cluster = Cluster(config, runtime)
    cluster.set_topics(None if pattern else named.topics)
    try:
        await cluster.start()
        lookup = ClusterLookup(cluster, config, runtime)
        partitions = set(await lookup.existing(named, internal=True))
        if pattern:
            partitions.update(await lookup.existing(Pattern(pattern), internal=False))
        return cluster.metadata.cluster_id, await lookup.log_bounds(partitions)
    finally:
        await cluster.close(CLOSE_SECONDS)


def _check_same(
    checkpoint: str, job: Job, cluster_id: str | None, bounds: Mapping[TopicPartition, LogBounds]
) -> None:
    """Refuse the logs of another cluster, and of topics that only have the same names. Raises ConfigError."""
    ids = {tp.topic: log.topic_id.hex() for tp, log in bounds.items() if log.topic_id}
    if different := job.differences(attrs.evolve(job, cluster_id=cluster_id, topic_ids=ids)):
        raise ConfigError(
            f"The checkpoint {checkpoint} belongs to other logs than these: {'; '.join(different)}. A lag would say "
            "nothing. Give the job's own cluster with -b, or leave it out.",
            problems=tuple(different),
        )


def _text(found: Status) -> str:
    """Return the whole report as text, with a line break at its end."""
    next_batch = found.position
    head = (
        f"checkpoint {printable(found.checkpoint, LONGEST_PATH)}  next batch {next_batch.batch}"
        f"{' (begun before, runs again)' if next_batch.end is not None else ''}  "
        f"sink {printable(found.job.sink, LONGEST_PATH)}  rows {_counted(found)}  engine {found.job.engine}"
        f"{f'  job {printable(found.job.job)}' if found.job.location.is_lake else ''}"
        f"{'' if found.table_batch is None else f'  batch {found.table_batch} in the table'}"
    )
    rows = [_row(found, tp) for tp in sorted(found.next)]
    lines = [head, *table(TITLES, rows, right=TITLES[1:])] if rows else [head]
    return "\n".join([*lines, f"total lag {_total(found)}"]) + "\n"


def _counted(found: Status) -> str:
    """Return the rows of the sink, or why they are not known."""
    if found.rows is not None:
        return f"{found.rows:,}"
    if found.job.location.kind == "iceberg" and not found.is_counted:
        return f"{NOTHING} (give --catalog FILE to count them)"
    return NOTHING


def _total(found: Status) -> str:
    if found.ends is None:
        return "not asked for: give -b HOST:PORT"
    unknown = [tp for tp in found.next if found.lag_of(tp) is None]
    return (
        f"{found.lag:,}"
        if not unknown
        else f"unknown: no end at or after NEXT of {format_partitions(unknown)}"
    )


def _row(found: Status, tp: TopicPartition) -> tuple[str, ...]:
    end = None if found.ends is None else found.ends.get(tp)
    known = (NOTHING if number is None else f"{number:,}" for number in (end, found.lag_of(tp)))
    return (tp.topic, str(tp.partition), f"{found.next[tp]:,}", *known)


def _fields(found: Status) -> dict[str, Any]:
    """Return the fields of the JSON output."""
    return {
        "checkpoint": found.checkpoint,
        "cluster_id": found.job.cluster_id,
        "sink": found.job.sink,
        "engine": found.job.engine,
        "next_batch": found.position.batch,
        "again": found.position.end is not None,
        "rows": found.rows,
        "job": found.job.job,
        "table_batch": found.table_batch,
        "lag_records": found.lag,
        "partitions": [
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "next": offset,
                "end": None if found.ends is None else found.ends.get(tp),
            }
            for tp, offset in sorted(found.next.items())
        ],
    }
