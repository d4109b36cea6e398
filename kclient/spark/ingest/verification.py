"""Prove what a job and its backfills have landed in a table: read the table itself, and ask the logs about its gaps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, Final, TypeVar

import attrs
import pyarrow as pa

from kclient.errors import ConfigError
from kclient.spark.client import DriverClient
from kclient.spark.executor import read_range
from kclient.spark.ingest.preflight import cluster_id_of
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import LogBounds, OffsetRange
from kclient.spark.sink.tables import LakeTable, TableProgress, load_with_retries, retried
from kclient.spark.sink.verify import Explained, Span, VerifiedPartition, explain, verified
from kclient.text import printable
from kclient.types import TopicPartition

V = TypeVar("V")
LISTED: Final = 5
"""Jobs of a table that an error names."""


def verify(
    table: LakeTable[Any], job: str, logs: SourceOptions | None = None, cluster_id: str | None = None
) -> list[VerifiedPartition]:
    """Return what a job and its backfills have landed in a table, with its duplicates and gaps.

    `logs` are the options of the source for the job's cluster, whose id is `cluster_id` where that is known: with them
    each gap is looked up there. Raises ConfigError if the table does not know the job, or not these logs, SinkError,
    and what reading a range raises.
    """
    version = load_with_retries(table)
    claimed = landed(table, version, job)
    family = table.family(version, job)
    if not family:
        raise ConfigError(
            f"{table.name} holds nothing of the job {job}, {_others(table.jobs(version))}. Give the --checkpoint or "
            "the --job that landed there."
        )
    topics = {tp.topic for tp in claimed}
    found = retried(table.name, lambda: verified(table.coordinates(version, topics), claimed))
    if logs is None or not (gaps := [each.tp for each in found if each.gaps]):
        return found
    asked, bounds = _bounds(logs, gaps)
    _check_same(table.name, family.values(), cluster_id in (None, asked), bounds)
    return [_explained_by(each, bounds.get(each.tp), logs) if each.gaps else each for each in found]


def _others(jobs: Collection[str]) -> str:
    """Return the jobs of a table as a part of a sentence."""
    if not jobs:
        return "nor of any other job"
    more = f" and {len(jobs) - LISTED} more" if len(jobs) > LISTED else ""
    return f"but of {', '.join(map(printable, sorted(jobs)[:LISTED]))}{more}"


def landed(table: LakeTable[V], version: V, job: str) -> dict[TopicPartition, list[Span]]:
    """Return the offsets that a job and its backfills have landed in a version. Raises SinkError."""
    table.progress(version, job)  # raises if rows of the job were taken back
    claimed: dict[TopicPartition, list[Span]] = {}
    for progress in table.family(version, job).values():
        for tp, end in progress.offsets.items():
            claimed.setdefault(tp, []).append(Span(progress.first.get(tp, 0), end))
    return claimed


def _check_same(
    name: str,
    landed_by: Iterable[TableProgress],
    is_cluster: bool,
    bounds: Mapping[TopicPartition, LogBounds],
) -> None:
    """Refuse the logs of another cluster, and of topics that only have the same names. Raises ConfigError."""
    ids = {tp.topic: log.topic_id.hex() for tp, log in bounds.items() if log.topic_id}
    recreated = {topic for progress in landed_by for topic in progress.recreated(ids)}
    different = [f"topic {topic} is another one, or was recreated since" for topic in sorted(recreated)]
    if not is_cluster:
        different.append("the cluster id is another")
    if different:
        raise ConfigError(
            f"The rows of {name} are of other logs than these: {'; '.join(different)}. These logs say nothing of its "
            "gaps. Give the job's own cluster with -b, or leave it out to list the gaps alone.",
            problems=tuple(different),
        )


def _explained_by(found: VerifiedPartition, log: LogBounds | None, logs: SourceOptions) -> VerifiedPartition:
    if log is None:  # the partition is gone
        return attrs.evolve(found, explained=Explained(unknown=found.gaps))

    def read(span: Span) -> Iterator[pa.Array]:
        wanted = OffsetRange(*found.tp, *span)
        return (batch.column("offset") for batch in read_range(wanted, logs, ("offset",)))

    return explain(found, Span(log.start, log.end), read)


def _bounds(
    logs: SourceOptions, partitions: list[TopicPartition]
) -> tuple[str | None, Mapping[TopicPartition, LogBounds]]:
    """Return the id of the cluster, and the bounds of those partitions that it has."""
    with closing(DriverClient(logs)) as client:
        client.connect()
        cluster_id = client.call(cluster_id_of)
        there = client.call(lambda handle: handle.lookup.existing(logs.selection, internal=True))
        asked = [tp for tp in partitions if tp in there]
        return cluster_id, client.call(lambda handle: handle.lookup.log_bounds(asked))
