"""How the batches of a Spark query are written: `--writer spark` and `--writer direct`.

    spark, directory    files → `_spark_metadata/n` names them: batch n counts
    spark, table        Delta and Iceberg keep the batch number in their own log, and accept it once
    direct              tasks write files → one row for each in the driver → manifest n, or the commit of a table:
                        the batch counts

With `spark`, rows, bad values and the newest time are observed on the way; files and bytes come from the log. With
`direct`, Spark calls `foreachBatch` again for a batch whose commit it does not find: then the manifest is there, or the
same files are written again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions

from kclient.spark.decoding.decoder import ERROR
from kclient.spark.ingest.batch_commit import BatchCommitter, LandedBatch
from kclient.spark.ingest.preflight import Prepared
from kclient.spark.ingest.query_checkpoint import QueryCheckpoint
from kclient.spark.ingest.spark_session import check_catalog, provider_of
from kclient.spark.sink import spark_metadata
from kclient.spark.sink.manifest import batch_name
from kclient.spark.sink.parquet import WrittenRange
from kclient.spark.sink.row_layout import RESCUED
from kclient.spark.sink.sources import (
    DATE,
    DIRECT_FORMAT,
    LANDED_FORMAT,
    TOPIC,
    DirectSource,
    LandedSource,
    from_rows,
    options_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

OBSERVED: Final = "landed"
DIRECTORIES: Final = (TOPIC, DATE)
"""What `--partition-by` names, in its order."""

CODECS: Final = {"lz4": "lz4_raw"}
"""Codecs that Spark calls otherwise: its lz4 is framed as only Hadoop reads it."""


class SparkWriter:
    """Writes the batches of one query with Spark's own sink. Spark reports errors: `failure` stays empty."""

    failure: Exception | None = None

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._last = prepared.position.batch - 1

    def start(self, session: SparkSession) -> StreamingQuery:
        """Start the query. Raises ConfigError for a table whose format is not there."""
        prepared, sink = self._prepared, self._prepared.settings.sink
        session.dataSource.register(LandedSource)
        options = options_of(prepared.stream_options(), prepared.target)
        frame = _observed(session.readStream.format(LANDED_FORMAT).options(**options).load())
        kept = len(prepared.settings.partition_by)
        frame = frame.drop(*DIRECTORIES[kept:])
        if sink.kind == "table":
            check_catalog(session, sink.where)
            grows = prepared.settings.evolves
            writer = self._prepare(frame).option("mergeSchema", str(grows).lower())
            return writer.format(provider_of(session, sink.where)).toTable(sink.where)
        codec = CODECS.get(prepared.settings.codec, prepared.settings.codec)
        writer = self._prepare(_variants(frame)).format("parquet").option("compression", codec)
        return writer.start(sink.where)

    def _prepare(self, frame: DataFrame) -> DataStreamWriter:
        """Return the frame's writer, into directories or partitions of a table."""
        kept = len(self._prepared.settings.partition_by)
        writer = triggered(frame.writeStream.partitionBy(*DIRECTORIES[:kept]), self._prepared)
        return writer.option("checkpointLocation", str(self._prepared.checkpoint.path))

    def landed(self, progress: Mapping[str, Any]) -> LandedBatch | None:
        """Return the batch of a progress once; None if it was reported already, or if the trigger had no batch."""
        batch, checkpoint = progress["batchId"], self._prepared.checkpoint
        if batch <= self._last or "addBatch" not in progress["durationMs"]:
            return None
        self._last = batch
        files = self._files(batch)
        seen = progress["observedMetrics"].get(OBSERVED)
        if seen is None:  # the batch was in the log already, so Spark did not run it again
            seen = {
                "rows": sum(spark_metadata.rows_of(file.path) for file in files),
                "bad": 0,
                "newest_ms": None,
            }
        return LandedBatch(
            start=checkpoint.start_of(batch),
            end=checkpoint.offsets(batch),
            rows=seen["rows"],
            bytes=sum(file.bytes for file in files),
            files=len(files),
            bad_records=seen["bad"],
            newest_ms=seen["newest_ms"],
        )

    def _files(self, batch: int) -> list[spark_metadata.LoggedFile]:
        sink = self._prepared.settings.sink
        return [] if sink.kind == "table" else spark_metadata.added(sink.where, batch)


def _observed(frame: DataFrame) -> DataFrame:
    """Observe rows, bad values and the newest time of a batch, then drop `_error`."""
    observed = {
        "rows": functions.count(functions.lit(1)),
        "bad": functions.count(ERROR) if ERROR in frame.columns else functions.count_if(functions.lit(False)),
        "newest_ms": functions.max(functions.unix_millis("_timestamp")),
    }
    return frame.observe(OBSERVED, *(value.alias(name) for name, value in observed.items())).drop(ERROR)


def _variants(frame: DataFrame) -> DataFrame:
    """Turn the rescued fields into a VARIANT, which Spark's files can hold and not every table."""
    if RESCUED not in frame.columns:
        return frame
    return frame.withColumn(RESCUED, functions.try_parse_json(RESCUED))


# --- --writer direct -------------------------------------------------------------------------------------------------


class DirectWriter:
    """Makes the batches of one query count by manifests or in a table. `failure` is the error that ended it here."""

    def __init__(self, prepared: Prepared, committer: BatchCommitter, checkpoint: QueryCheckpoint) -> None:
        self._prepared = prepared
        self._committer = committer
        self._checkpoint = checkpoint
        self._counted: dict[int, LandedBatch] = {}  # batches not reported yet
        self.failure: Exception | None = None

    def start(self, session: SparkSession) -> StreamingQuery:
        """Start the query."""
        prepared = self._prepared
        session.dataSource.register(DirectSource)
        options = options_of(prepared.stream_options(), prepared.target.of_new_run())
        frame = session.readStream.format(DIRECT_FORMAT).options(**options).load()
        writer = triggered(frame.writeStream.foreachBatch(self._count), prepared)
        return writer.option("checkpointLocation", self._checkpoint.location).start()

    def landed(self, progress: Mapping[str, Any]) -> LandedBatch | None:
        """Return the batch of a progress once; None if it was reported already, or if the trigger had no batch."""
        return self._counted.pop(progress["batchId"], None)

    def _count(self, frame: DataFrame, batch: int) -> None:
        """Make a batch count. The frame is collected once: a second action would land the ranges again."""
        try:
            start, end = self._checkpoint.begin(batch)
            whole, written = self._committer.committed_manifest(batch, end), list[WrittenRange]()
            if whole is None:
                began_ms = self._committer.runtime.wall_ms()
                written = from_rows(row.asDict() for row in frame.collect())
                whole = self._committer.count(batch_name(batch), start, end, written, began_ms)
            self._checkpoint.commit(batch)
            self._counted[batch] = LandedBatch.of(whole, written)
        except Exception as exc:
            self.failure = exc
            raise


# --- the trigger -----------------------------------------------------------------------------------------------------


def triggered(writer: DataStreamWriter, prepared: Prepared) -> DataStreamWriter:
    """Set the trigger of the job."""
    trigger = prepared.settings.trigger
    if trigger.kind == "availableNow":
        return writer.trigger(availableNow=True)
    if trigger.kind == "once":
        return writer.trigger(once=True)
    return writer.trigger(processingTime=f"{trigger.interval_ms} milliseconds")
