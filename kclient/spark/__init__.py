"""Kafka as a PySpark data source, without a JAR: `spark.read.format("kclient")` and `spark.readStream`.

Importing this package needs neither pyspark nor pyarrow; they are the extra `spark`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kclient.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


def _without_spark() -> ConfigError:
    return ConfigError(
        "kclient.spark needs pyspark 4.0 or newer and pyarrow. One of them is missing or too old. "
        "Type: pip install 'kclient-kafka[spark]'."
    )
