"""The far end of a `Session`: a Spark that answers one line for each line it reads.

Run by the Python of any release's environment, so it imports nothing but pyspark.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

MASTER = "local[2,4]"


def start(jars: str, **settings: str) -> SparkSession:
    """Return a session of this environment's Spark; `__` in a setting's name stands for a dot."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    given: dict[str, Any] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        **({"spark.jars": jars} if jars else {}),
        **{name.replace("__", "."): value for name, value in settings.items()},
    }
    return SparkSession.builder.master(MASTER).config(map=given).getOrCreate()


def serve(make: Callable[[str], SparkSession], run: Callable[[SparkSession, dict[str, Any]], Any]) -> None:
    """Answer until standard input ends. An error ends it, with its traceback on standard error."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever the JVM prints does not get between the answers
    spark = make(sys.argv[1] if len(sys.argv) > 1 else "")
    print(json.dumps(spark.version), file=answers)
    for line in sys.stdin:
        print(json.dumps(run(spark, json.loads(line))), file=answers)
    spark.stop()
