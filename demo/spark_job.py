"""The Spark job, a process of its own: topic → Parquet partitioned by month → the ten worst carriers, in SQL.

It starts its session at once, while Kafka starts and the flights are published, and waits for a JSON line with
`servers`, `topic`, `out` and `airlines`. It answers with JSON lines: `stage` for what it is doing, then `rows`, `files`
and `worst`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA: Final = (
    "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int, "
    "arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, air_time int, distance int"
)
WORST: Final = """
    SELECT flights.carrier, first(airlines.name) AS airline, count(*) AS flights,
           round(avg(dep_delay), 2) AS mean_departure_delay, round(avg(arr_delay), 2) AS mean_arrival_delay
    FROM flights LEFT JOIN airlines ON flights.carrier = airlines.carrier
    GROUP BY flights.carrier ORDER BY mean_departure_delay DESC LIMIT 10
"""
CONFIG: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Xshare:auto",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.parquet.compression.codec": "zstd",
}


def session() -> SparkSession:
    """A local session: two cores, and four attempts for a task, so that one lost connection does not fail the job."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,4]").appName("flights")
    for key, value in CONFIG.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def land(spark: SparkSession, servers: str, topic: str, out: str) -> None:
    """Every record of the topic as a row of Parquet, in a folder for each month of the flight's date."""
    records = (
        spark.read.format("kclient")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .option("minPartitions", 6)
        .load()
    )
    write(records, out)


def write(records: DataFrame, out: str) -> None:
    """The flights in the records, with the record's coordinates and time."""
    from pyspark.sql import functions as f

    flight = f.from_json(f.col("value").cast("string"), SCHEMA).alias("flight")
    rows = records.select(flight, "partition", "offset", f.col("timestamp").alias("departure"))
    rows = rows.select("flight.*", "departure", "partition", "offset")
    rows.repartition("month").write.mode("overwrite").partitionBy("month").parquet(out)


def warm_up(spark: SparkSession) -> None:
    """Write one invented record, so that the JVM has loaded and compiled what it needs when the order comes."""
    columns = (
        "cast('{\"month\": 1}' AS binary) AS value",
        "0 AS partition",
        "id AS offset",
        "now() AS timestamp",
    )
    with tempfile.TemporaryDirectory() as folder:
        write(spark.range(1).selectExpr(*columns), f"{folder}/warm")
        spark.read.parquet(f"{folder}/warm").count()


def worst(spark: SparkSession, out: str, airlines: str) -> tuple[int, list[list[Any]]]:
    """Rows that the Parquet holds, and the carriers with the longest mean departure delay."""
    flights = spark.read.parquet(out)
    flights.createOrReplaceTempView("flights")
    spark.read.csv(airlines, header=True, schema="carrier string, name string").createOrReplaceTempView(
        "airlines"
    )
    return flights.count(), [list(row) for row in spark.sql(WORST).collect()]


def tell(**event: Any) -> None:
    """One line to the parent."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Wait for the order, then land and ask."""
    spark = session()
    tell(stage="session")
    warm_up(spark)
    order = json.loads(sys.stdin.readline() or "null")
    if order is None:
        return
    tell(stage="landing")
    land(spark, order["servers"], order["topic"], order["out"])
    tell(stage="asking")
    rows, carriers = worst(spark, order["out"], order["airlines"])
    tell(rows=rows, worst=carriers)
    spark.stop()


if __name__ == "__main__":
    main()
