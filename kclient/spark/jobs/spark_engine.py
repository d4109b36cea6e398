"""Ingest with Spark: a streaming query keeps the offsets, a writer makes batches count, the driver tells of them.

    Spark      offsets/n → ranges to tasks → the writer's rows or files
    writer     batch n counts: by a manifest (`direct_writer.py`), or in the log of Spark's own sink (`spark_writer.py`)
    Spark      commits/n
    driver     progress told, the group's commit

Spark runs a batch again whose commit it does not find; both writers know one that counts already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.errors import AnalysisException, StreamingQueryException

from kclient.errors import ConfigError, KclientError
from kclient.spark.group_commit import GroupCommitter
from kclient.spark.jobs.checkpoint import Offsets
from kclient.spark.jobs.direct_writer import DirectWriter
from kclient.spark.jobs.inference import with_schema
from kclient.spark.jobs.ledger import Ledger, Times
from kclient.spark.jobs.prepared import Prepared
from kclient.spark.jobs.progress import Ended, IngestListener, IngestResult
from kclient.spark.jobs.spark_failure import typed
from kclient.spark.jobs.spark_session import session_of
from kclient.spark.jobs.spark_writer import SparkWriter
from kclient.spark.jobs.stopping import Stop
from kclient.spark.progress import latest_offsets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_SECONDS: Final = 0.2
ATTEMPTS: Final = 3
SLOW_START: Final = "Python worker failed to connect back"
"""How a query ends whose Python process Spark gave up waiting for: ten seconds, which a busy machine may not keep."""


def run(prepared: Prepared, listener: IngestListener, stop: Stop) -> IngestResult:
    """Land batch after batch until all is drained, or until asked to stop. Raises as `ingest.run` does."""
    with session_of(prepared.settings) as session:
        ready = with_schema(prepared, session)
        for _ in range(ATTEMPTS - 1):
            engine = _Engine(ready, listener, stop)
            try:
                return engine.run(session)
            except StreamingQueryException as exc:
                if engine.told or SLOW_START not in str(exc):
                    raise
        return _Engine(ready, listener, stop).run(session)


class _Engine:
    """One query."""

    def __init__(self, prepared: Prepared, listener: IngestListener, stop: Stop) -> None:
        settings = prepared.settings
        self._ledger = Ledger(settings.sink.where, prepared.job.job, prepared.target.dead)
        self._writer: DirectWriter | SparkWriter = (
            SparkWriter(prepared) if settings.writer == "spark" else DirectWriter(prepared, self._ledger)
        )
        self._group = None if settings.group is None else GroupCommitter(prepared.driver, settings.group)
        self._listener = listener
        self._stop = stop
        self.told = 0
        self._end: Offsets = prepared.position.start
        self._latest: Offsets = {part.partition: part.end for part in prepared.plan.partitions}

    def run(self, session: SparkSession) -> IngestResult:
        query = self._started(session)
        stopped_at: int | None = None  # how many batches were told of when the signal came
        ended_here = False  # not by itself
        while not _over(query):
            self._tell(query)
            if self._stop and stopped_at is None:
                stopped_at = self.told
            if stopped_at is not None and (self.told > stopped_at or not query.status["isTriggerActive"]):
                ended_here = ended_here or (query.isActive and self._writer.failure is None)
                query.stop()
        self._tell(query)
        if (failure := self._failure(query, ended_here=ended_here)) is not None:
            raise typed(failure) from failure
        return self._result("stopped" if self._stop else "drained")

    def _failure(self, query: StreamingQuery, *, ended_here: bool) -> Exception | None:
        """What ended the query. Where that was us, a batch that was interrupted fails too, but by no error of ours."""
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
                raise _sink_refused(str(self._ledger.sink), exc) from exc
            raise found from exc

    def _tell(self, query: StreamingQuery) -> None:
        """Tell of every batch that Spark has committed since. Its progress comes a little later than the batch."""
        for progress in query.recentProgress:
            landed = self._writer.landed(progress)
            if landed is None:
                continue
            self.told += 1
            self._end, self._latest = landed.end, latest_offsets(progress) or landed.end
            spent = progress["durationMs"]
            times = Times(duration_ms=spent["triggerExecution"], commit_ms=spent.get("commitOffsets"))
            self._mirror()
            self._listener.batch(self._ledger.tell(progress["batchId"], landed, self._latest, times))

    def _mirror(self) -> bool | None:
        return None if self._group is None else self._group.commit(self._end)

    def _result(self, ended: Ended) -> IngestResult:
        return self._ledger.result(
            ended, self._end, self._latest, committed=self._mirror(), signal=self._stop.signal
        )


def _over(query: StreamingQuery) -> bool:
    """Wait a little for the end of a query; how it ended is looked at elsewhere."""
    try:
        return bool(query.awaitTermination(POLL_SECONDS))  # type: ignore[arg-type]
    except StreamingQueryException:
        return True


def _sink_refused(sink: str, failure: AnalysisException) -> ConfigError:
    """Spark looked at the query and would not begin it: the sink or its catalog is set up in another way."""
    reason = str(failure).strip().splitlines()[0]
    return ConfigError(
        f"Spark refuses to write to {sink}: {reason} Nothing was written. The table may have other columns, or --conf "
        "may lack a setting of its catalog. Correct what Spark names, and start again."
    )
