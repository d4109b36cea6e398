"""The Spark session of a job: settings, catalogs of tables, and kclient's errors out of Spark's texts.

The workers run this interpreter, tasks have several attempts, and Spark's output redacts secrets.

`--sink table:CATALOG.DATABASE.NAME` needs a catalog and the JAR of its table format. Neither is part of pyspark, and a
JAR must match the minor release of Spark, so the error names the settings that bring them.

An error of the planner or of a task arrives as the text of a Python traceback inside of a Java exception; its last line
names the class and the message. Spark's own sinks fail with Java's messages.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kclient import errors
from kclient.errors import ConfigError, KclientError, SinkError
from kclient.spark.ingest.settings import IngestSettings

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
"""Defaults that `--conf` overrides."""


@contextmanager
def session_of(settings: IngestSettings) -> Iterator[SparkSession]:
    """Yield the active session, or a new one that ends with the job. Raises ConfigError if Spark is missing."""
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
            f"Spark does not start: {str(exc).rstrip('.')}. There may be no Java of version 17 or newer. "
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
    """Return the error for a missing pyspark."""
    return ConfigError(
        "The engine spark needs pyspark 4.0 or newer, which cannot be imported. It is an extra. "
        "Type: pip install 'kclient-kafka[spark]', or give --engine direct."
    )


# --- catalogs of tables ----------------------------------------------------------------------------------------------


SPARKS_OWN: Final = "spark_catalog"
CATALOG: Final = "spark.sql.catalog."
HOW: Final = (
    "For Iceberg: --conf spark.jars.packages=org.apache.iceberg:iceberg-spark-runtime-{release}_2.13:VERSION "
    "--conf spark.sql.catalog.{name}=org.apache.iceberg.spark.SparkCatalog, with its type and place. For Delta, whose "
    "catalog is spark_catalog: --conf spark.jars.packages=io.delta:delta-spark_{release}_2.13:VERSION "
    "--conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension "
    "--conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog "
    "--conf spark.sql.catalogImplementation=hive."
)


def check_catalog(session: SparkSession, table: str) -> None:
    """Raise ConfigError with the missing JAR and how to install it."""
    name = table.partition(".")[0]
    kind = _class_of(session, name)
    if kind is None and name != SPARKS_OWN:
        raise ConfigError(f"--sink table:{table}: this Spark has no catalog {name}. {_how(session, name)}")
    try:
        session.sql(f"SHOW NAMESPACES IN `{name}`").collect()
    except Exception as exc:  # pyspark does not translate this one
        if "CANNOT_LOAD_CATALOG" not in str(exc) and "Cannot find catalog plugin class" not in str(exc):
            raise
        raise ConfigError(
            f"--sink table:{table}: the catalog {name} is {kind}, and no JAR of this Spark has that class. "
            + _how(session, name)
        ) from exc


def provider_of(session: SparkSession, table: str) -> str:
    """Return the format of a new table: its catalog's default."""
    kind = (_class_of(session, table.partition(".")[0]) or "").lower()
    return next((name for name in ("iceberg", "delta") if name in kind), "parquet")


def _class_of(session: SparkSession, name: str) -> str | None:
    return session.conf.get(f"{CATALOG}{name}", None)


def _how(session: SparkSession, name: str) -> str:
    return HOW.format(release=".".join(session.version.split(".")[:2]), name=name)


# --- errors out of Spark's texts -------------------------------------------------------------------------------------


_OURS: Final = re.compile(
    r"^(?:[\w.]*: )*kclient\.errors\.(\w+): (.*?)  \[KC-\d{3}\]", re.MULTILINE | re.DOTALL
)
_WRITING: Final = re.compile(
    r"No space left on device|Disk quota exceeded|Read-only file system|Permission denied"
    r"|(?:ParentNotDirectory|FileAlreadyExists)Exception: [^\n]*|TASK_WRITE_FAILED[^\n]*"
)
"""Error texts of Java and Spark for a file that cannot be written."""


def typed(failure: Exception) -> Exception:
    """Return kclient's error from the text of Spark's failure; the failure itself if there is none."""
    found = _OURS.findall(str(failure))
    for name, text in reversed(found):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, KclientError):
            return kind(text)
    if reason := _WRITING.search(str(failure)):
        return SinkError(
            f"Spark could not write what it read: {reason[0].strip()}. The disk may be full, or a directory not "
            "writable. Free space or grant the permission, and start again: nothing will count twice."
        )
    return failure
