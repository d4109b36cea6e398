"""A Spark session that runs jobs: one job per line on standard input, one result per line on standard output.

    {"format": "kclient", "options": {"subscribe": "bench", …}, "sink": "noop"}        → {"seconds": 4.1}
    {"format": "kclient", "options": {…}, "sink": "parquet", "folder": "/tmp/…"}       → {"seconds": 9.7}
    {"format": "kclient", "options": {…}, "sink": "direct", "folder": "/tmp/…"}        → {"seconds": 4.4}
    {"format": "kclient", "options": {…}, "sink": "stream", "folder": "/tmp/…"}        → {"batches": 20}

Run by the Python of each Spark's environment, so it imports nothing of the benchmark but the synthetic source.
"""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.bench_spark_synthetic import Synthetic
from localspark.serving import serve, start

STREAM_SECONDS = 120


def session(jars: str) -> SparkSession:
    """With room in the JVM, so that no collector decides."""
    spark = start(jars, spark__driver__memory="2g")
    if not jars:
        spark.dataSource.register(Synthetic)
    return spark


def run(spark: SparkSession, job: dict[str, Any]) -> dict[str, Any]:
    """One read of everything, from looking it up to the last row in the sink."""
    if job["sink"] == "stream":
        return stream(spark, job)
    begun = time.perf_counter()
    if job["sink"] == "direct":
        land(spark, job)
    else:
        write(spark, job)
    return {"seconds": time.perf_counter() - begun}


def write(spark: SparkSession, job: dict[str, Any]) -> None:
    """Through the JVM to one of Spark's own sinks."""
    frame = spark.read.format(job["format"]).options(**job["options"]).load()
    writer = frame.write.mode("overwrite")
    if job["sink"] == "parquet":
        writer.option("compression", job["codec"]).parquet(job["folder"])
    else:
        writer.format("noop").save()


def land(spark: SparkSession, job: dict[str, Any]) -> None:
    """By the tasks themselves: what comes back is one row for each file."""
    from kclient.spark.sink.parquet import DirectTarget
    from kclient.spark.sink.row_layout import RowLayout
    from kclient.spark.sink.sources import DIRECT_FORMAT, DirectSource, options_of

    spark.dataSource.register(DirectSource)
    target = DirectTarget(root=job["folder"], codec=job["codec"], layout=RowLayout(headers=False))
    spark.read.format(DIRECT_FORMAT).options(**options_of(job["options"], target)).load().collect()


def stream(spark: SparkSession, job: dict[str, Any]) -> dict[str, Any]:
    """Micro-batches to nowhere, until there is nothing more; how many they were."""
    frame = spark.readStream.format(job["format"]).options(**job["options"]).load()
    writer = frame.writeStream.format("noop").option("checkpointLocation", job["folder"])
    query = writer.trigger(availableNow=True).start()
    if not query.awaitTermination(STREAM_SECONDS):
        raise SystemExit(f"the stream did not end in {STREAM_SECONDS} s")
    return {"batches": sum(1 for progress in query.recentProgress if progress["numInputRows"])}


if __name__ == "__main__":
    serve(session, run)
