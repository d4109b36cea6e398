"""The Spark session of a job: this interpreter for workers, attempts for tasks, no secrets in what Spark prints.

Spec: SP-05, SP-06, SP-45.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kclient.errors import ConfigError
from kclient.spark.jobs.settings import IngestSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REDACTED: Final = "(?i)secret|password|token|access[.]?key|credential|jaas"
DEFAULTS: Final[Mapping[str, str]] = {
    "spark.app.name": "kclient ingest",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.redaction.regex": REDACTED,
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}
"""What `--conf` may say otherwise."""


@contextmanager
def session_of(settings: IngestSettings) -> Iterator[SparkSession]:
    """The session that is there, or a new one that ends with the job. Raises ConfigError where Spark is missing."""
    try:
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise without_spark() from error
    if (active := SparkSession.getActiveSession()) is not None:
        yield active
        return
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ[name] = sys.executable
    builder = SparkSession.builder.master(settings.master)
    for key, value in {**DEFAULTS, **settings.conf}.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except (PySparkRuntimeError, OSError) as error:
        raise ConfigError(
            f"Spark does not start: {error}. There may be no Java of version 17 or newer. "
            "Type: kclient spark doctor, or give --engine direct."
        ) from error
    try:
        yield session
    finally:
        session.stop()


def without_spark() -> ConfigError:
    """What is told where pyspark cannot be imported."""
    return ConfigError(
        "The engine spark needs pyspark 4.0 or newer, which cannot be imported. It is an extra. "
        "Type: pip install 'kclient-kafka[spark]', or give --engine direct."
    )
