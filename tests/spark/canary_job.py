"""A job with a secret in its options that does everything which might show it, in a session of its own.

Its standard input is JSON: the options of the source, the same with a refused password, those of a client with a
secret of a token endpoint, and a directory. It prints
what it saw as JSON, one text for each step; what Spark writes is in the directory and in the standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from localspark import JAVA_OPTIONS

SECONDS = 120
CLIENT_SECRET = "kafka.sasl.oauthbearer.client.credentials.client.secret"


def session(where: str) -> SparkSession:
    """Spark with everything on that writes things down."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.makedirs(f"{where}/events")
    return (
        SparkSession.builder.master("local[2,2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", JAVA_OPTIONS)
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.log.level", "INFO")
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.dir", f"file:{where}/events")
        .config("spark.eventLog.logStageExecutorMetrics", "true")
        .config("spark.sql.pyspark.worker.logging.enabled", "true")
        .config("spark.sql.execution.pyspark.udf.tracebackWithLocals.enabled", "true")
        .getOrCreate()
    )


def failing(act: Callable[[], Any]) -> str:
    """The text of the error in which this ends."""
    try:
        act()
    except Exception as exc:  # noqa: BLE001 - what a user sees, whatever it is
        return f"{type(exc).__name__}: {exc}"
    raise SystemExit("this should have failed")


def run(spark: SparkSession, given: dict[str, Any]) -> dict[str, str]:
    """What every act shows."""
    where = given["where"]

    def batch(options: dict[str, str], **extra: str) -> DataFrame:
        return spark.read.format("kclient").options(**options, **extra).load()

    def stream(name: str, options: dict[str, str], **extra: str) -> Any:
        frame = spark.readStream.format("kclient").options(**options, **extra).load()
        writer = frame.writeStream.format("noop").queryName(name).trigger(availableNow=True)
        query = writer.option("checkpointLocation", f"{where}/checkpoint-{name}").start()
        query.awaitTermination(SECONDS)
        return query

    options, refused, client = given["options"], given["refused"], given["client"]
    wrong = {**client, CLIENT_SECRET: f"{client[CLIENT_SECRET]}-wrong"}
    frame = batch(options)
    spark.read.format("kclient").options(**options).load().createOrReplaceTempView("records")
    query = stream("good", {**options, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "4"})
    explained = frame._jdf.queryExecution().toString()
    return {
        "count": str(frame.count()),
        "rows": str(frame.limit(2).collect()),
        "explain": explained,
        "explain of a view": spark.sql("EXPLAIN EXTENDED SELECT * FROM records").first()[0],
        "schema": frame.schema.json(),
        "progress": "\n".join(progress.json for progress in query.recentProgress),
        "status": json.dumps(query.status),
        "stream": query._jsq.explainInternal(True),
        "python logs": str(spark.sql("SELECT * FROM python_worker_logs()").collect()),
        "a refused password": failing(lambda: batch(refused).count()),
        "a refused password in a stream": failing(lambda: stream("refused", refused)),
        "a bad option": failing(lambda: batch(options, minPartitions="0")),
        "a misspelt secret": failing(lambda: batch(options, **{"kafka.sasl.jaas.confg": given["secret"]})),
        "a bad option in a stream": failing(lambda: stream("bad", options, minPartitions="0")),
        "tokens": str(batch(client).count()),
        "tokens in a stream": "\n".join(one.json for one in stream("tokens", client).recentProgress),
        "explain with tokens": batch(client)._jdf.queryExecution().toString(),
        "a refused client": failing(lambda: batch(wrong).count()),
        "a refused client in a stream": failing(lambda: stream("wrong", wrong)),
        "a lost offset": failing(lambda: batch(options, startingOffsets='{"orders":{"0":77,"1":0}}').count()),
    }


if __name__ == "__main__":
    given = json.load(sys.stdin)
    spark = session(given["where"])
    print(json.dumps(run(spark, given)))
    spark.stop()
