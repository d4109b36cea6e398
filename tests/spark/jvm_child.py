"""A Spark 4.0 that has both sources, Spark's own for the JVM and ours. It reads with the one that each job names.

{"format": "kafka", "options": {…}}                                → schema, rows, number of tasks
{"format": "kclient", "options": {…}, "folder": "/tmp/…"}          → a stream to Parquet; how many rows each batch had
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from localspark import JAVA_OPTIONS
from localspark.serving import serve, start

SECONDS = 120
TEXTS = {
    "key": "hex(key)",
    "value": "hex(value)",
    "timestamp": "unix_micros(timestamp)",
    "headers": "transform(headers, h -> struct(h.key, hex(h.value) AS value))",
}


def session(jars: str) -> SparkSession:
    return start(jars, spark__driver__extraJavaOptions=JAVA_OPTIONS, spark__sql__shuffle__partitions="2")


def rows_of(frame: DataFrame) -> list[str]:
    """Every column of every row as JSON, in the order of topic, partition and offset."""
    columns = [f"{TEXTS.get(name, name)} AS {name}" for name in frame.columns]
    ordered = frame.orderBy("topic", "partition", "offset")
    texts = ordered.selectExpr(*columns).selectExpr(
        "to_json(struct(*), map('ignoreNullFields', 'false')) AS row"
    )
    return [row["row"] for row in texts.collect()]


def batch(spark: SparkSession, job: dict[str, Any]) -> dict[str, Any]:
    frame = spark.read.format(job["format"]).options(**job["options"]).load()
    return {
        "schema": frame.schema.jsonValue(),
        "rows": rows_of(frame),
        "tasks": frame.rdd.getNumPartitions(),
    }


def stream(spark: SparkSession, job: dict[str, Any]) -> dict[str, Any]:
    folder = job["folder"]
    frame = spark.readStream.format(job["format"]).options(**job["options"]).load()
    writer = frame.writeStream.format("parquet").option("path", f"{folder}/rows")
    query = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
    if not query.awaitTermination(SECONDS):
        raise SystemExit(f"the query did not end in {SECONDS} s")
    return {
        "batches": [progress["numInputRows"] for progress in query.recentProgress],
        "rows": rows_of(spark.read.parquet(f"{folder}/rows")),
    }


def run(spark: SparkSession, job: dict[str, Any]) -> dict[str, Any]:
    return stream(spark, job) if "folder" in job else batch(spark, job)


if __name__ == "__main__":
    serve(session, run)
