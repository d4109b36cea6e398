"""A query on the written flights, in SQL on Spark or with Arrow: the ten carriers that leave latest, on the mean.

    python -m demo.answer demo-out/flights

It reads the files that the manifest names and no others. With `--wait` it starts its session, waits for a line on
standard input before it looks, and answers with one line of JSON; the demo runs it so, beside everything else.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from demo.flights import data_file
from demo.job import ENGINES, SINKS, SPARK, Job
from demo.landed import read
from demo.recording import Carrier
from demo.terminal import carriers_table
from kclient.spark.sink import manifest
from localspark import JAVA_OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORST: Final = """
    SELECT flights.carrier, coalesce(first(airlines.name), '?') AS airline, count(*) AS flights,
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
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
}


def session() -> SparkSession:
    """Return a local session on two cores."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("answer")
    for key, value in CONFIG.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def ask(spark: SparkSession, sink: Path) -> tuple[int, list[Carrier]]:
    """Return the rows of the files in the manifest, and the worst carriers."""
    flights = spark.read.parquet(*manifest.files(sink))
    flights.createOrReplaceTempView("flights")
    airlines = spark.read.csv(
        str(data_file("airlines.csv")), header=True, schema="carrier string, name string"
    )
    airlines.createOrReplaceTempView("airlines")
    return flights.count(), [Carrier(*row) for row in spark.sql(WORST).collect()]


def ask_arrow(job: Job) -> tuple[int, list[Carrier]]:
    """Return the same without Spark, once a second reader has found as many rows. Raises RuntimeError."""
    flights, again = read(job)
    if len(flights) != again:
        raise RuntimeError(f"one reader finds {len(flights):,} rows, another one {again:,}")
    means = flights.group_by("carrier").aggregate(
        [([], "count_all"), ("dep_delay", "mean"), ("arr_delay", "mean")]
    )
    with data_file("airlines.csv").open(encoding="utf-8", newline="") as file:
        airlines = {row["carrier"]: row["name"] for row in csv.DictReader(file)}
    worst = means.sort_by([("dep_delay_mean", "descending")]).slice(0, 10)
    return len(flights), [
        Carrier(
            row["carrier"],
            airlines.get(row["carrier"], "?"),
            row["count_all"],
            _rounded(row["dep_delay_mean"]),
            _rounded(row["arr_delay_mean"]),
        )
        for row in worst.to_pylist()
    ]


def main() -> None:
    """Print the answer; with `--wait` wait for a line on standard input, then print JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m demo.answer", description="The ten worst carriers, in SQL or with Arrow."
    )
    parser.add_argument("sink", type=Path, help="the directory that `kclient ingest` wrote")
    parser.add_argument("--wait", action="store_true", help="look when a line comes, and answer in JSON")
    parser.add_argument("--engine", choices=ENGINES, default=SPARK, help="direct: with Arrow, without Spark")
    parser.add_argument(
        "--kind", choices=SINKS, default=SINKS[0], help="what the directory is (default parquet)"
    )
    parser.add_argument("--endpoint", metavar="URL", help="the S3 that holds the table")
    arguments = parser.parse_args()
    job = Job("", "", "", arguments.sink.parent, 0, arguments.engine, arguments.kind, arguments.endpoint)
    if arguments.kind != "parquet":
        arguments.engine = "direct"
    spark = session() if arguments.engine == SPARK else None
    if arguments.wait:
        if spark is not None:
            spark.range(1).count()  # the JVM has loaded what it needs when the line comes
        print(json.dumps({"ready": time.time()}), flush=True)
        if not sys.stdin.readline():
            return
    rows, carriers = ask_arrow(job) if spark is None else ask(spark, arguments.sink)
    if arguments.wait:
        print(json.dumps({"rows": rows, "carriers": [attrs.astuple(one) for one in carriers]}), flush=True)
    else:
        print(f"{rows:,} rows\n{carriers_table(carriers)}")
    if spark is not None:
        spark.stop()


def _rounded(mean: float | None) -> float | None:
    return None if mean is None else round(mean, 2)


if __name__ == "__main__":
    main()
