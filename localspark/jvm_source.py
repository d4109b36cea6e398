"""Spark's own Kafka source, for the JVM: the jars that a session of Spark 4.0 needs beside its own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from localkafka import maven
from localkafka.jars import java
from localspark.environments import RELEASES

MINOR: Final = "4.0"
ARTIFACT: Final = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{RELEASES[MINOR]}"
SPARKS_OWN: Final = ("hadoop-", "scala-", "slf4j-", "jsr305-", "snappy-", "lz4-")
"""How the names of those begin that every Spark brings itself."""


def unavailable() -> str | None:
    """Why the source cannot be had here, in a few words, or None when it can."""
    if java() is None:
        return "java is not installed"
    if not maven.is_complete(_folder(), [ARTIFACT]) and shutil.which("mvn") is None:
        return f"mvn is not installed and {ARTIFACT} is not in {maven.cache()}"
    return None


def jars() -> list[Path]:
    """What goes into `spark.jars`, fetched first where the cache lacks it. Raises LocalKafkaError."""
    found = sorted(maven.fetch(_folder(), [ARTIFACT]).glob("*.jar"))
    return [jar for jar in found if not jar.name.startswith(SPARKS_OWN)]


def _folder() -> Path:
    return maven.cache() / "spark" / f"kafka-{RELEASES[MINOR]}"
