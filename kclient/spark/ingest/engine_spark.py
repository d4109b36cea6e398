"""Ingest with Spark: a streaming query keeps the offsets, a writer makes batches count, the driver reports them.

    Spark      offsets/n → ranges to tasks → the writer's rows or files
    writer     batch n counts: by a manifest, or in the log of Spark's own sink (`writers.py`)
    Spark      commits/n
    driver     report progress, commit to the group

Spark runs a batch again if it does not find its commit; both writers recognise a batch that counts already.

`--schema infer`: Spark finds the fields in the next records of each topic, and the schema is frozen:

    the next records of every partition → schema_of_variant_agg → DDL → beside the checkpoint

With `--on-new-field add` every run infers again, and only adds to the frozen schema.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Final

import attrs
from pyspark.errors import AnalysisException, StreamingQueryException

from kclient.errors import ConfigError, KclientError
from kclient.spark.group_progress import GroupCommitter, latest_offsets
from kclient.spark.ingest import schemas
from kclient.spark.ingest.batch_commit import BatchTimes
from kclient.spark.ingest.checkpoint import Offsets
from kclient.spark.ingest.preflight import Prepared, with_settings
from kclient.spark.ingest.progress import Ended, IngestListener, IngestResult
from kclient.spark.ingest.query_checkpoint import QueryCheckpoint, query_checkpoint
from kclient.spark.ingest.settings import INFER, IngestSettings
from kclient.spark.ingest.spark_session import session_of, typed
from kclient.spark.ingest.stop_signals import StopRequest
from kclient.spark.ingest.writers import DirectWriter, SparkWriter
from kclient.spark.offsets import dump_offsets
from kclient.spark.source import KClientSource
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_SECONDS: Final = 0.2
ATTEMPTS: Final = 3
SLOW_START: Final = "Python worker failed to connect back"
"""How a query ends whose Python process Spark gave up waiting for: ten seconds, which a busy machine may not keep."""


def run(prepared: Prepared, listener: IngestListener, stop: StopRequest) -> IngestResult:
    """Claim the job, and run batch after batch until the logs are drained or a signal asks to stop.

    Raises as `ingest.run` does.
    """
    claimed = prepared.claim()
    with session_of(prepared.settings) as session:
        ready = with_schema(claimed, session).with_table()
        with query_checkpoint(ready) as checkpoint:
            for _ in range(ATTEMPTS - 1):
                engine = _SparkEngine(ready, listener, stop, checkpoint)
                try:
                    return engine.run(session)
                except StreamingQueryException as exc:
                    if engine.reported or SLOW_START not in str(exc):
                        raise
            return _SparkEngine(ready, listener, stop, checkpoint).run(session)


class _SparkEngine:
    """One streaming query, from its start to its end."""

    def __init__(
        self, prepared: Prepared, listener: IngestListener, stop: StopRequest, checkpoint: QueryCheckpoint
    ) -> None:
        settings = prepared.settings
        self._committer = prepared.committer()
        self._writer: DirectWriter | SparkWriter = (
            SparkWriter(prepared)
            if settings.writer == "spark"
            else DirectWriter(prepared, self._committer, checkpoint)
        )
        self._group = None if settings.group is None else GroupCommitter(prepared.client, settings.group)
        self._listener = listener
        self._stop = stop
        self.reported = 0
        self._end: Offsets = prepared.position.start
        self._latest: Offsets = {part.partition: part.end for part in prepared.plan.partitions}

    def run(self, session: SparkSession) -> IngestResult:
        query = self._started(session)
        stopped_at: int | None = None  # batches reported when the signal came
        ended_here = False  # whether this engine stopped the query
        while not _over(query):
            self._report(query)
            if self._stop and stopped_at is None:
                stopped_at = self.reported
            if stopped_at is not None and (self.reported > stopped_at or not query.status["isTriggerActive"]):
                ended_here = ended_here or (query.isActive and self._writer.failure is None)
                query.stop()
        self._report(query)
        if (failure := self._failure(query, ended_here=ended_here)) is not None:
            raise typed(failure) from failure
        return self._result("stopped" if self._stop else "drained")

    def _failure(self, query: StreamingQuery, *, ended_here: bool) -> Exception | None:
        """Return the error that ended the query.

        If this engine stopped it, an interrupted batch fails too, but only with an error of Spark.
        """
        failure = self._writer.failure
        if not ended_here:
            return failure or query.exception()
        return failure if failure is not None and isinstance(typed(failure), KclientError) else None

    def _started(self, session: SparkSession) -> StreamingQuery:
        try:
            return self._writer.start(session)
        except Exception as exc:
            found = typed(exc)
            if found is exc and isinstance(exc, AnalysisException):
                raise _sink_refused(str(self._committer.sink), exc) from exc
            raise found from exc

    def _report(self, query: StreamingQuery) -> None:
        """Report every batch that Spark has committed since. Its progress comes a little later than the batch."""
        for progress in query.recentProgress:
            landed = self._writer.landed(progress)
            if landed is None:
                continue
            self.reported += 1
            self._end, self._latest = landed.end, latest_offsets(progress) or landed.end
            spent = progress["durationMs"]
            times = BatchTimes(duration_ms=spent["triggerExecution"], noted_ms=spent.get("commitOffsets"))
            self._mirror()
            self._listener.batch(self._committer.report(progress["batchId"], landed, self._latest, times))

    def _mirror(self) -> bool | None:
        return None if self._group is None else self._group.commit(self._end)

    def _result(self, ended: Ended) -> IngestResult:
        return self._committer.result(
            ended, self._end, self._latest, committed=self._mirror(), signal=self._stop.signal
        )


def _over(query: StreamingQuery) -> bool:
    """Wait a little for the end of a query; how it ended is looked at elsewhere."""
    try:
        return bool(query.awaitTermination(POLL_SECONDS))  # type: ignore[arg-type]
    except StreamingQueryException:
        return True


def _sink_refused(sink: str, failure: AnalysisException) -> ConfigError:
    """Return the error for a query that Spark refused to start: the sink or its catalog is set up differently."""
    reason = str(failure).strip().splitlines()[0]
    return ConfigError(
        f"Spark refuses to write to {sink}: {reason} Nothing was written. The table may have other columns, or --conf "
        "may lack a setting of its catalog. Correct what Spark names, and start again."
    )


# --- finding the schema ----------------------------------------------------------------------------------------------


SAMPLE: Final = 10_000
"""Records of each topic that are looked at."""


def with_schema(prepared: Prepared, session: SparkSession) -> Prepared:
    """Return the job with a schema; infer it now if it is not known.

    Raises ConfigError if the records hold no objects.
    """
    if prepared.settings.schema != INFER:
        return prepared
    frozen = prepared.checkpoint.schema()
    found = _found(prepared, session)
    if frozen is None and found is None:
        raise ConfigError(
            "--schema infer found no JSON objects in the records that are next: there are none yet, or they are of "
            "another form. Start again when there are some, or give the schema itself."
        )
    ddl = frozen if found is None else schemas.widened(frozen, found)
    settings = attrs.evolve(prepared.settings, schema=ddl)
    changed = with_settings(prepared, settings)
    schemas.freeze(prepared.checkpoint, str(ddl), prepared.position.batch)
    return changed


def _found(prepared: Prepared, session: SparkSession) -> str | None:
    start, end = sample_of(prepared)
    if not start:
        return None
    assigned: dict[str, list[int]] = {}
    for topic, partition in start:
        assigned.setdefault(topic, []).append(partition)
    options = {
        **_connection(prepared.settings),
        "assign": json.dumps(assigned),
        "startingOffsets": dump_offsets(start),
        "endingOffsets": dump_offsets(end),
        "failOnDataLoss": "false",
    }
    session.dataSource.register(KClientSource)
    frame = session.read.format(KClientSource.name()).options(**options).schema("value binary").load()
    try:
        [row] = frame.selectExpr(
            "schema_of_variant_agg(try_parse_json(cast(value AS STRING))) AS found"
        ).collect()
    except Exception as exc:
        raise typed(exc) from exc
    return schemas.of_variants(row["found"])


def sample_of(prepared: Prepared) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Return the sample's start and end offsets: the next records of each partition, equally many of each topic."""
    waiting = [part for part in prepared.plan.partitions if part.backlog]
    of_topic = Counter(part.partition.topic for part in waiting)
    start = {part.partition: part.start for part in waiting}
    end = {
        part.partition: min(part.end, part.start + -(-SAMPLE // of_topic[part.partition.topic]))
        for part in waiting
    }
    return start, end


def _connection(settings: IngestSettings) -> dict[str, str]:
    """Return the options for the connection to the cluster, the same for a sample as for the job."""
    given = settings.stream_options()
    return {name: text for name, text in given.items() if name.lower().startswith("kafka.")}
