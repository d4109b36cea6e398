"""Delta Lake for a session of Spark 4.0: its jars, and the settings that make it Spark's catalog."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from localkafka import maven
from localkafka.jars import java
from localspark.environments import RELEASES

MINOR: Final = "4.0"
VERSION: Final = "4.3.1"
ARTIFACT: Final = f"io.delta:delta-spark_{MINOR}_2.13:{VERSION}"
NEEDED: Final = ("delta-", "unitycatalog-")
"""How the names of those begin that this Spark does not bring itself."""

SETTINGS: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def unavailable() -> str | None:
    """Why Delta cannot be had here, in a few words, or None when it can."""
    if java() is None:
        return "java is not installed"
    if not maven.is_complete(_folder(), [ARTIFACT]) and shutil.which("mvn") is None:
        return f"mvn is not installed and {ARTIFACT} is not in {maven.cache()}"
    return None


def jars() -> list[Path]:
    """What goes into `spark.jars`, fetched first where the cache lacks it. Raises LocalKafkaError."""
    found = sorted(maven.fetch(_folder(), [ARTIFACT]).glob("*.jar"))
    return [jar for jar in found if jar.name.startswith(NEEDED)]


def _folder() -> Path:
    return maven.cache() / "spark" / f"delta-{RELEASES[MINOR]}"
