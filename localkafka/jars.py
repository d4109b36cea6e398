"""The jars of a Kafka release, in `kafka/VERSION` of the cache, and the Java that runs them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from localkafka import maven
from localkafka.releases import RELEASES

QUICK_START: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options for a JVM that lives as long as a test: half the compiler, a collector of one thread. With them,
a broker takes 3.4 s of CPU to be ready."""


def java() -> str | None:
    """Return the Java to run: that of JAVA_HOME, else the one on the path, else None."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")


def unavailable(version: str) -> str | None:
    """Why this release cannot be started here, in a few words, or None when it can."""
    if java() is None:
        return "java is not installed"
    fetched = maven.is_complete(_folder(version), RELEASES[version].artifacts)
    if not fetched and shutil.which("mvn") is None:
        return f"mvn is not installed and Kafka {version} is not in {maven.cache()}"
    return None


def classpath(version: str) -> str:
    """Return the classpath of a release; fetch it if the cache lacks it. Raise LocalKafkaError."""
    return f"{fetch(version)}/*"


def fetch(version: str) -> Path:
    """Return the folder with a release's jars; fill it if needed. Raise LocalKafkaError."""
    return maven.fetch(_folder(version), RELEASES[version].artifacts)


def _folder(version: str) -> Path:
    return maven.cache() / "kafka" / version
