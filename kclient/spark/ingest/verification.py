"""Prove what a job and its backfills have landed in a table: read the table itself, and ask the logs about its gaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, TypeVar

import attrs
import pyarrow as pa

from kclient.errors import ConfigError
from kclient.spark.client import DriverClient
from kclient.spark.executor import read_range
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import LogBounds, OffsetRange
from kclient.spark.sink.tables import LakeTable, load_with_retries, retried
from kclient.spark.sink.verify import Explained, Span, VerifiedPartition, explain, verified
from kclient.types import TopicPartition

V = TypeVar("V")


def verify(table: LakeTable[Any], job: str, logs: SourceOptions | None = None) -> list[VerifiedPartition]:
    """Return what a job and its backfills have landed in a table, with its duplicates and gaps.

    `logs` are the options of the source for the job's cluster: with them each gap is looked up there. Raises
    ConfigError if the table does not know the job, SinkError, and what reading a range raises.
    """
    version = load_with_retries(table)
    claimed = landed(table, version, job)
    if not table.family(version, job):
        raise ConfigError(
            f"{table.name} holds nothing of the job {job}. Give the --checkpoint or the --job that landed there."
        )
    topics = {tp.topic for tp in claimed}
    found = retried(table.name, lambda: verified(table.coordinates(version, topics), claimed))
    return found if logs is None else _explained(found, logs)


def landed(table: LakeTable[V], version: V, job: str) -> dict[TopicPartition, list[Span]]:
    """Return the offsets that a job and its backfills have landed in a version. Raises SinkError."""
    table.progress(version, job)  # raises if rows of the job were taken back
    claimed: dict[TopicPartition, list[Span]] = {}
    for progress in table.family(version, job).values():
        for tp, end in progress.offsets.items():
            claimed.setdefault(tp, []).append(Span(progress.first.get(tp, 0), end))
    return claimed


def _explained(found: list[VerifiedPartition], logs: SourceOptions) -> list[VerifiedPartition]:
    with_gaps = [each.tp for each in found if each.gaps]
    bounds = _bounds(logs, with_gaps) if with_gaps else {}
    return [_explained_by(each, bounds.get(each.tp), logs) if each.gaps else each for each in found]


def _explained_by(found: VerifiedPartition, log: LogBounds | None, logs: SourceOptions) -> VerifiedPartition:
    if log is None:  # the partition is gone
        return attrs.evolve(found, explained=Explained(unknown=found.gaps))

    def read(span: Span) -> Iterator[pa.Array]:
        wanted = OffsetRange(*found.tp, span.start, min(span.end, log.end))
        return (batch.column("offset") for batch in read_range(wanted, logs, ("offset",)))

    return explain(found, log.start, read)


def _bounds(logs: SourceOptions, partitions: list[TopicPartition]) -> Mapping[TopicPartition, LogBounds]:
    with closing(DriverClient(logs)) as client:
        client.connect()
        there = client.call(lambda handle: handle.lookup.existing(logs.selection, internal=True))
        asked = [tp for tp in partitions if tp in there]
        return client.call(lambda handle: handle.lookup.log_bounds(asked))
