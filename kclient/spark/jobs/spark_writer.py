"""`--writer spark`: Spark's own sink writes the rows, into a directory of Parquet files or into a table.

    directory    files → `_spark_metadata/n` names them: batch n counts
    table        Delta and Iceberg keep the number of the batch in their own log, and take it once

Rows, bad values and the newest time are observed on the way; files and bytes are those of the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions

from kclient.spark import spark_metadata
from kclient.spark.decoding.decoder import ERROR
from kclient.spark.direct_source import options_of
from kclient.spark.jobs.catalogs import check_catalog, provider_of
from kclient.spark.jobs.ledger import Landed
from kclient.spark.jobs.prepared import Prepared
from kclient.spark.jobs.trigger import triggered
from kclient.spark.landed_source import DATE, FORMAT, TOPIC, LandedSource
from kclient.spark.rescue import RESCUED

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
    """The batches of one query, by Spark's own sink. What ends it, Spark says: `failure` stays empty."""

    failure: Exception | None = None

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._last = prepared.position.batch - 1

    def start(self, session: SparkSession) -> StreamingQuery:
        """Start the query. Raises ConfigError for a table whose format is not there."""
        prepared, sink = self._prepared, self._prepared.settings.sink
        session.dataSource.register(LandedSource)
        options = options_of(prepared.stream_options(), prepared.target)
        frame = _observed(session.readStream.format(FORMAT).options(**options).load())
        kept = len(prepared.settings.partition_by)
        frame = frame.drop(*DIRECTORIES[kept:])
        if sink.kind == "table":
            check_catalog(session, sink.where)
            grows = prepared.settings.evolve != "none"
            writer = self._prepare(frame).option("mergeSchema", str(grows).lower())
            return writer.format(provider_of(session, sink.where)).toTable(sink.where)
        codec = CODECS.get(prepared.settings.codec, prepared.settings.codec)
        writer = self._prepare(_variants(frame)).format("parquet").option("compression", codec)
        return writer.start(sink.where)

    def _prepare(self, frame: DataFrame) -> DataStreamWriter:
        """The frame on its way into directories, or partitions of a table."""
        kept = len(self._prepared.settings.partition_by)
        return triggered(frame.writeStream.partitionBy(*DIRECTORIES[:kept]), self._prepared)

    def landed(self, progress: Mapping[str, Any]) -> Landed | None:
        """The batch that a progress is of, once; None for one that was told, and for a trigger without a batch."""
        batch, checkpoint = progress["batchId"], self._prepared.checkpoint
        if batch <= self._last or "addBatch" not in progress["durationMs"]:
            return None
        self._last = batch
        files = self._files(batch)
        seen = progress["observedMetrics"].get(OBSERVED)
        if seen is None:  # the batch was in the log already, so Spark ran nothing of it
            seen = {
                "rows": sum(spark_metadata.rows_of(file.path) for file in files),
                "bad": 0,
                "newest_ms": None,
            }
        return Landed(
            start=checkpoint.start_of(batch),
            end=checkpoint.offsets(batch),
            rows=seen["rows"],
            bytes=sum(file.bytes for file in files),
            files=len(files),
            bad_records=seen["bad"],
            newest_ms=seen["newest_ms"],
        )

    def _files(self, batch: int) -> list[spark_metadata.Logged]:
        sink = self._prepared.settings.sink
        return [] if sink.kind == "table" else spark_metadata.added(sink.where, batch)


def _observed(frame: DataFrame) -> DataFrame:
    """The rows, with what is told of a batch seen on their way; `_error` has done its work then."""
    told = {
        "rows": functions.count(functions.lit(1)),
        "bad": functions.count(ERROR) if ERROR in frame.columns else functions.count_if(functions.lit(False)),
        "newest_ms": functions.max(functions.unix_millis("_timestamp")),
    }
    return frame.observe(OBSERVED, *(value.alias(name) for name, value in told.items())).drop(ERROR)


def _variants(frame: DataFrame) -> DataFrame:
    """What was rescued as a VARIANT, which files of Spark can hold and not every table."""
    if RESCUED not in frame.columns:
        return frame
    return frame.withColumn(RESCUED, functions.try_parse_json(RESCUED))
