"""A Spark 4.0 with Delta that runs ingest jobs and counts the rows of tables.

{"ingest": {…}}          → rows of each batch
{"table": "lake.orders"} → topic, partition, offset and value of each row, in order
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from kclient.spark.ingest import run as ingest
from kclient.spark.ingest.settings import IngestSettings
from localspark import JAVA_OPTIONS
from localspark.jars import DELTA_SETTINGS
from localspark.serving import serve, start


def session(jars: str) -> SparkSession:
    settings = {name.replace(".", "__"): value for name, value in DELTA_SETTINGS.items()}
    return start(
        jars,
        spark__driver__extraJavaOptions=JAVA_OPTIONS,
        spark__sql__shuffle__partitions="2",
        spark__databricks__delta__snapshotPartitions="2",
        **settings,
    )


def run(spark: SparkSession, job: dict[str, Any]) -> Any:
    if "ingest" in job:
        return ingest.run(IngestSettings.parse(job["ingest"])).rows
    if "sql" in job:
        spark.sql(job["sql"])
        return None
    frame = spark.table(job["table"]).orderBy("_partition", "_offset")
    rows = frame.selectExpr("_topic", "_partition", "_offset", "CAST(value AS STRING) AS value").collect()
    return [list(row) for row in rows]


if __name__ == "__main__":
    serve(session, run)
