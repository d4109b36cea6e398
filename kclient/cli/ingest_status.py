"""`kclient ingest status`: how far a checkpoint is, read from its plain JSON, without Spark.

With `-b` the ends of the logs are asked for, and the distance to them is the lag. Looking changes nothing.

Spec: SP-89.
"""

from __future__ import annotations

import json as json_form
import sys
from collections.abc import Mapping
from typing import Annotated, Any, Final

import attrs
from cyclopts import Parameter

from kclient.cli.exits import OK
from kclient.cli.options import Connection, WhereAsked, flag, option
from kclient.cli.program import program
from kclient.cli.table import printable, table
from kclient.errors import ArgumentError, ConfigError
from kclient.spark.jobs import sinks
from kclient.spark.jobs.checkpoint import Checkpoint, Position
from kclient.spark.jobs.job import Job
from kclient.types import TopicPartition

Offsets = Mapping[TopicPartition, int]

TITLES: Final = ("TOPIC", "PARTITION", "NEXT", "END", "LAG")
NOTHING: Final = "-"


@attrs.frozen
class Status:
    """What a checkpoint says, and the ends of the logs where they were asked for.

    `next` is where each partition goes on; one that has appeared since, at its beginning.
    """

    checkpoint: str
    job: Job
    position: Position
    rows: int | None  # a table's are not known here
    next: Offsets
    ends: Offsets | None

    @property
    def lag(self) -> int | None:
        """Offsets to read; None where the ends are not known."""
        if self.ends is None:
            return None
        return sum(max(0, end - self.next[tp]) for tp, end in self.ends.items())


def status(
    *,
    checkpoint: Annotated[str | None, option("the job's checkpoint (required)", "DIR")] = None,
    json: Annotated[bool, flag("one JSON object")] = False,
    connection: Annotated[WhereAsked, Parameter(name="*")] = WhereAsked(),  # noqa: B008 – frozen
) -> int:
    """Tell how far a job's checkpoint is, and with -b how far behind; without Spark, and beside a running job."""
    if checkpoint is None:
        raise ArgumentError(f"--checkpoint is missing. Type: {program()} ingest status --checkpoint DIR")
    found = _status(checkpoint, connection)
    sys.stdout.write(json_form.dumps(_fields(found)) + "\n" if json else _text(found))
    return OK


def _status(checkpoint: str, connection: Connection) -> Status:
    kept = Checkpoint(checkpoint)
    job, position = kept.job(), kept.position()
    if job is None or position is None:
        raise ConfigError(
            f"{checkpoint} holds no checkpoint of an ingest job: nothing has begun there. "
            "Give the directory that the job was given as --checkpoint."
        )
    begin, ends = position.start, None
    if connection.bootstrap_servers or connection.properties:
        begin, ends = _logs(connection, begin)
    return Status(str(checkpoint), job, position, sinks.rows(job), begin, ends)


def _logs(connection: Connection, begin: Offsets) -> tuple[Offsets, Offsets]:
    """Where each partition of these topics goes on, and where its log ends now."""
    from kclient.sync import Consumer

    connection.config()  # which tells what is wrong by the names of our options
    config, properties = connection.for_client()
    with Consumer(
        config=config, properties=properties, enable_auto_commit=False, **connection.servers()
    ) as consumer:
        topics = dict.fromkeys(tp.topic for tp in begin)
        there = [
            TopicPartition(topic, info.partition)
            for topic in topics
            for info in consumer.partitions_for(topic)
        ]
        new = consumer.beginning_offsets([tp for tp in there if tp not in begin])
        return {**begin, **new}, consumer.end_offsets(there)


def _text(found: Status) -> str:
    """The whole answer for people, with a line break at its end."""
    next_batch = found.position
    counted = NOTHING if found.rows is None else f"{found.rows:,}"
    head = (
        f"checkpoint {printable(found.checkpoint)}  next batch {next_batch.batch}"
        f"{' (begun before, runs again)' if next_batch.end is not None else ''}  "
        f"sink {printable(found.job.sink)}  rows {counted}  engine {found.job.engine}"
    )
    rows = [_row(tp, offset, found.ends) for tp, offset in sorted(found.next.items())]
    lines = [head, *table(TITLES, rows, right=TITLES[1:])] if rows else [head]
    lag = "not asked for: give -b HOST:PORT" if found.lag is None else f"{found.lag:,}"
    return "\n".join([*lines, f"total lag {lag}"]) + "\n"


def _row(tp: TopicPartition, offset: int, ends: Offsets | None) -> tuple[str, ...]:
    end = None if ends is None else ends.get(tp)
    shown = (NOTHING, NOTHING) if end is None else (f"{end:,}", f"{max(0, end - offset):,}")
    return (tp.topic, str(tp.partition), f"{offset:,}", *shown)


def _fields(found: Status) -> dict[str, Any]:
    """The same for machines."""
    return {
        "checkpoint": found.checkpoint,
        "cluster_id": found.job.cluster_id,
        "sink": found.job.sink,
        "engine": found.job.engine,
        "next_batch": found.position.batch,
        "again": found.position.end is not None,
        "rows": found.rows,
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
