"""Kafka as a PySpark data source, without a JAR: `spark.read.format("kclient")` and `spark.readStream`.

Importing this package needs neither pyspark nor pyarrow; they are the extra `spark`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kclient.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kclient.spark.listener import GroupCommitListener


def register(spark: SparkSession) -> None:
    """Make the format `kclient` known to a session.

    Spark finds it automatically through the package `pyspark_kclient`. Call this only if another package whose name
    begins with `pyspark_` is broken, which stops Spark's search. Raises ConfigError where pyspark lacks the Python Data
    Source API.
    """
    try:
        from pyspark.errors import AnalysisException

        from kclient.spark.source import KClientSource
    except ImportError as exc:
        raise _without_spark() from exc
    try:
        spark.dataSource.register(KClientSource)
    except AnalysisException as exc:
        if exc.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":  # Spark 4.0 has found it automatically
            raise


def track(
    spark: SparkSession,
    *,
    options: Mapping[str, str],
    group: str | None = None,
    query: str | None = None,
    metadata: str | None = None,
) -> GroupCommitListener:
    """Mirror the progress of a session's streaming queries to a consumer group, where lag tools see it.

        tracker = kclient.spark.track(spark, options=options, group="lake-orders")
        query = spark.readStream.format("kclient").options(**options).load()....start()
        query.awaitTermination()
        tracker.close(query.lastProgress)       # commits the last batch even if Spark has not reported it yet

    Call it before the query starts. `options` are those of the stream, for the way to the brokers; `group` is their
    `commit.group.id` by default. `query` is the name of the only query to follow, None for all. `metadata` is stored
    beside each offset, by default which query and which batch. The checkpoint stays the truth: what cannot be committed
    is logged, counted, and never stops a query; a group that has members refuses (`docs/spark-streaming.md`).

    Raises ConfigError for options that are wrong or without a group, and where pyspark is missing.
    """
    from kclient.spark.options import SourceOptions

    parsed = SourceOptions.parse(options, "stream")
    followed = group or parsed.commit_group
    if not followed:
        raise ConfigError(
            "track() has no group to commit to. The options hold no commit.group.id. Give group='…' or that option."
        )
    try:
        from kclient.spark.listener import GroupCommitListener
    except ImportError as exc:
        raise _without_spark() from exc
    tracker = GroupCommitListener(spark, parsed, followed, query, metadata or parsed.commit_metadata)
    spark.streams.addListener(tracker)
    return tracker


def table_writer(
    sink: str,
    *,
    job: str,
    catalog: str | None = None,
    partition_by: str | Sequence[str] = (),
    add_columns: bool = False,
) -> Callable[[DataFrame, int], None]:
    """Return a function for `foreachBatch` that lands each batch of a query in an Iceberg or Delta table once.

        land = kclient.spark.table_writer("delta:s3://lake/flights", job="flights", partition_by="day(at)")
        query = (
            flights.writeStream.foreachBatch(land).option("checkpointLocation", "/lake/_ckpt/flights").start()
        )

    The executors write the files, the driver commits them with the number of the batch: a batch that Spark runs again
    is in the table once, and a second query of the same job is refused. No JAR of the table format is needed; the
    executors need kclient and pyarrow, the driver also pyiceberg or deltalake.

    `sink` is `iceberg:CATALOG.NAMESPACE.TABLE`, with `catalog` a file in pyiceberg's form, or `delta:` and a directory
    that all executors share, or a URL of an object store, whose credentials come from the environment. The table is
    created for the columns of the query if it is not there; with `add_columns` the columns that it lacks are added.
    `partition_by` are keys as `--partition-by` takes them; without, a table that is there keeps its own. `job` must
    stay the same for as long as the query keeps its checkpoint: batch 0 of a new checkpoint needs a new job.

    Raises ConfigError for wrong arguments and a missing library. The function raises ConfigError for a table that does
    not fit, and SinkError: then the query ends, and nothing of the batch is in the table.
    """
    try:
        from kclient.spark.ingest import foreach_batch
    except ImportError as exc:
        raise _without_spark() from exc
    return foreach_batch.table_writer(sink, job=job, catalog=catalog, keys=partition_by, evolves=add_columns)


def _without_spark() -> ConfigError:
    return ConfigError(
        "kclient.spark needs pyspark 4.0 or newer and pyarrow. One of them is missing or too old. "
        "Type: pip install 'kclient-kafka[spark]'."
    )
