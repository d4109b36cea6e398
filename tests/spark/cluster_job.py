"""What the test submits to a cluster: a batch read, then an ingest, with the options of a JSON file.

    spark-submit … cluster_job.py given.json told.json

It writes what it found, how many tasks each executor ran, and what the driver's web interface shows meanwhile.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

PAGES = ("environment", "SQL", "executors", "jobs")


class Silent:
    """No listener watches."""

    def planned(self, plan: Any) -> None: ...

    def batch(self, progress: Any) -> None: ...

    def finished(self, result: Any) -> None: ...


def main(given: str, report: str) -> None:
    job = json.loads(Path(given).read_text())
    spark = SparkSession.builder.appName("kclient on a cluster").getOrCreate()
    frame = spark.read.format("kclient").options(**job["options"]).load()
    total = frame.selectExpr(
        "count(1) AS rows", "sum(CAST(CAST(value AS STRING) AS BIGINT)) AS total"
    ).first()
    answer = {"rows": total["rows"], "total": total["total"], "tasks": tasks(spark)}

    from kclient.spark.ingest import run as ingest
    from kclient.spark.ingest.settings import IngestSettings

    settings = IngestSettings.parse(job["ingest"])
    answer["landed"] = [ingest.run(settings, Silent()).rows for _ in range(2)]
    answer["pages"] = {name: page(spark, f"/{name}/") for name in PAGES}
    Path(report).write_text(json.dumps(answer))
    spark.stop()


def page(spark: SparkSession, path: str) -> str:
    """What the driver's web interface shows there."""
    with urllib.request.urlopen(f"{spark.sparkContext.uiWebUrl}{path}", timeout=10) as shown:
        return str(shown.read().decode("utf-8", "replace"))


def tasks(spark: SparkSession) -> dict[str, int]:
    """How many each executor finished."""
    executors = json.loads(page(spark, f"/api/v1/applications/{spark.sparkContext.applicationId}/executors"))
    return {one["id"]: one["completedTasks"] for one in executors if one["id"] != "driver"}


if __name__ == "__main__":
    main(*sys.argv[1:])
