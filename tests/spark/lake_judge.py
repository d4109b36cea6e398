"""A Spark 4.0 with Delta Lake that counts the rows of tables. It knows nothing of kclient.

{"delta": "/lake/orders", "version": 3}                    the table of a directory, now or as it was
    → {"rows": …, "duplicates": [[topic, partition, offset, times], …], "gaps": [[topic, partition, missing], …],
       "partitions": [[topic, partition, first, last, rows], …], "columns": "a INT, …"}
{"sql": "…"} → its rows, as text

Offsets of a topic whose transactions leave gaps are no fault: the caller knows what it has produced.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from localspark import JAVA_OPTIONS
from localspark.jars import DELTA_SETTINGS
from localspark.serving import serve, start

LISTED = 20


def session(jars: str) -> SparkSession:
    return start(
        jars,
        spark__driver__extraJavaOptions=JAVA_OPTIONS,
        spark__sql__shuffle__partitions="2",
        spark__databricks__delta__snapshotPartitions="2",
        **{name.replace(".", "__"): value for name, value in DELTA_SETTINGS.items()},
    )


def run(spark: SparkSession, asked: dict[str, Any]) -> Any:
    if "sql" in asked:
        return [[str(value) for value in row] for row in spark.sql(asked["sql"]).collect()]
    return verdict(delta(spark, asked))


def delta(spark: SparkSession, asked: dict[str, Any]) -> DataFrame:
    reader = spark.read.format("delta")
    return (reader.option("versionAsOf", asked["version"]) if "version" in asked else reader).load(
        asked["delta"]
    )


def verdict(frame: DataFrame, partition: str = "_partition") -> dict[str, Any]:
    seen = frame.groupBy("_topic", partition, "_offset").count()
    of_partition = seen.groupBy("_topic", partition).agg({"_offset": "min", "*": "count", "count": "sum"})
    rows = of_partition.collect()
    last = {
        (row[0], row[1]): row[2]
        for row in seen.groupBy("_topic", partition).agg({"_offset": "max"}).collect()
    }
    partitions = [
        [row["_topic"], row[partition], row["min(_offset)"], last[row[0], row[1]], row["sum(count)"]]
        for row in rows
    ]
    gaps = [
        [row["_topic"], row[partition], last[row[0], row[1]] - row["min(_offset)"] + 1 - row["count(1)"]]
        for row in rows
    ]
    return {
        "rows": sum(row["sum(count)"] for row in rows),
        "duplicates": [list(row) for row in seen.where("count > 1").limit(LISTED).collect()],
        "gaps": [gap for gap in gaps if gap[2]],
        "partitions": sorted(partitions),
        "columns": frame.schema.simpleString(),
    }


if __name__ == "__main__":
    serve(session, run)
