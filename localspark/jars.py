"""The jars that a session of Spark 4.0 needs beside its own: Spark's Kafka source for the JVM, Delta Lake, Iceberg."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from localkafka import maven
from localkafka.jars import java
from localspark.environments import RELEASES

MINOR: Final = "4.0"


@dataclass(frozen=True)
class JarSet:
    """Maven artifacts and their dependencies. `is_needed` selects, by file name, those that Spark lacks."""

    artifacts: tuple[str, ...]
    folder: str
    is_needed: Callable[[str], bool]

    def unavailable(self) -> str | None:
        """Return why the jars cannot be fetched here, in a few words, or None if they can."""
        if java() is None:
            return "java is not installed"
        if not maven.is_complete(self._path(), self.artifacts) and shutil.which("mvn") is None:
            return f"mvn is not installed and {', '.join(self.artifacts)} is not in {maven.cache()}"
        return None

    def jars(self) -> list[Path]:
        """Return the files for `spark.jars`; fetch them first if the cache lacks them. Raise LocalKafkaError."""
        found = sorted(maven.fetch(self._path(), self.artifacts).glob("*.jar"))
        return [jar for jar in found if self.is_needed(jar.name)]

    def _path(self) -> Path:
        return maven.cache() / "spark" / self.folder


JVM_SOURCE: Final = JarSet(
    (f"org.apache.spark:spark-sql-kafka-0-10_2.13:{RELEASES[MINOR]}",),
    f"kafka-{RELEASES[MINOR]}",
    # the others are part of every Spark
    lambda name: not name.startswith(("hadoop-", "scala-", "slf4j-", "jsr305-", "snappy-", "lz4-")),
)
DELTA: Final = JarSet(
    (f"io.delta:delta-spark_{MINOR}_2.13:4.3.1",),
    f"delta-{RELEASES[MINOR]}",
    lambda name: name.startswith(("delta-", "unitycatalog-")),
)
DELTA_SETTINGS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""The settings that make Delta Spark's catalog."""
ICEBERG_RELEASE: Final = "1.10.0"
ICEBERG: Final = JarSet(
    (
        f"org.apache.iceberg:iceberg-spark-runtime-{MINOR}_2.13:{ICEBERG_RELEASE}",
        f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG_RELEASE}",
        "org.xerial:sqlite-jdbc:3.51.0.0",  # the database of the catalog that pyiceberg writes
    ),
    f"iceberg-{ICEBERG_RELEASE}",
    lambda name: name.startswith(("iceberg-", "sqlite-")),
)
ICEBERG_REST: Final = JarSet(
    (
        f"org.apache.iceberg:iceberg-core:{ICEBERG_RELEASE}",
        f"org.apache.iceberg:iceberg-core:{ICEBERG_RELEASE}:tests",  # the servlet of the REST catalog
        f"org.apache.iceberg:iceberg-aws:{ICEBERG_RELEASE}",
        f"org.apache.iceberg:iceberg-aws-bundle:{ICEBERG_RELEASE}",
        "org.eclipse.jetty:jetty-servlet:11.0.26",
        "org.xerial:sqlite-jdbc:3.51.0.0",
        "org.slf4j:slf4j-simple:2.0.17",
    ),
    f"iceberg-rest-{ICEBERG_RELEASE}",
    lambda name: True,
)
ICEBERG_SETTINGS: Final = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
}
"""The setting that gives Spark the procedures of Iceberg: expire_snapshots, rewrite_data_files, …"""
