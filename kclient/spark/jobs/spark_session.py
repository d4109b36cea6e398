"""The Spark session of a job: this interpreter for workers, attempts for tasks, no secrets in what Spark prints."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kclient.errors import ConfigError
from kclient.spark.jobs.catalogs import SPARKS_OWN
from kclient.spark.jobs.settings import IngestSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REDACTED: Final = "(?i)secret|password|token|access[.]?key|credential|jaas"
CATALOGS: Final = "spark.sql.catalogImplementation"
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
    except ImportError as exc:
        raise without_spark() from exc
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
    except (PySparkRuntimeError, OSError) as exc:
        raise ConfigError(
            f"Spark does not start: {exc}. There may be no Java of version 17 or newer. "
            "Type: kclient spark doctor, or give --engine direct."
        ) from exc
    try:
        check_catalog_lasts(session, settings)
        yield session
    finally:
        session.stop()


def check_catalog_lasts(session: SparkSession, settings: IngestSettings) -> None:
    """Refuse a table in a catalog that ends with this session: the next run would not find it. Raises ConfigError."""
    if settings.sink.kind != "table" or settings.sink.where.partition(".")[0] != SPARKS_OWN:
        return
    if session.conf.get(CATALOGS, "in-memory") == "in-memory":
        raise ConfigError(
            f"--sink {settings.sink}: Spark keeps {SPARKS_OWN} in memory, so the next run would not find the table. "
            f"Give a catalog that lasts: --conf {CATALOGS}=hive, with --conf spark.sql.warehouse.dir=DIR and the "
            "metastore's settings, or a catalog of Iceberg's own."
        )


def without_spark() -> ConfigError:
    """What is told where pyspark cannot be imported."""
    return ConfigError(
        "The engine spark needs pyspark 4.0 or newer, which cannot be imported. It is an extra. "
        "Type: pip install 'kclient-kafka[spark]', or give --engine direct."
    )
