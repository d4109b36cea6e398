"""The jars of a Kafka release, fetched once by mvn into a cache outside the tree.

$KCLIENT_CACHE or ~/.cache/kclient
  kafka/4.3.1/*.jar
  kafka/4.3.1/.complete      written last, holds the pom: a half-filled or outdated folder counts as absent
  kafka/4.3.1.lock           held while fetching, so that two runs do not fetch into one folder
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localkafka.errors import LocalKafkaError
from localkafka.releases import RELEASES, Release

MAVEN_TIMEOUT_SECONDS = 300

POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>localkafka</groupId>
  <artifactId>jars</artifactId>
  <version>1</version>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
DEPENDENCY = (
    "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
)


def java() -> str | None:
    """The Java to run: that of JAVA_HOME, else the one on the path, else None."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")


def unavailable(version: str) -> str | None:
    """Why this release cannot be started here, in a few words, or None when it can."""
    if java() is None:
        return "java is not installed"
    if not _complete(RELEASES[version]) and shutil.which("mvn") is None:
        return f"mvn is not installed and Kafka {version} is not in {_cache()}"
    return None


def classpath(version: str) -> str:
    """The classpath of a release, fetched first where the cache lacks it. Raises LocalKafkaError."""
    return f"{fetch(version)}/*"


def fetch(version: str) -> Path:
    """The folder with a release's jars, filled first where needed. Raises LocalKafkaError."""
    release = RELEASES[version]
    with _lock(_folder(release).with_name(f"{version}.lock")):
        if not _complete(release):
            _fill(release)
    return _folder(release)


def _cache() -> Path:
    return Path(os.environ.get("KCLIENT_CACHE") or Path.home() / ".cache" / "kclient")


def _folder(release: Release) -> Path:
    return _cache() / "kafka" / release.version


def _pom(release: Release) -> str:
    return POM.format(
        dependencies="\n".join(DEPENDENCY.format(*artifact.split(":")) for artifact in release.artifacts)
    )


def _complete(release: Release) -> bool:
    marker = _folder(release) / ".complete"
    return marker.is_file() and marker.read_text(encoding="utf-8") == _pom(release)


def _fill(release: Release) -> None:
    folder = _folder(release)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pom = folder / "pom.xml"
    pom.write_text(_pom(release), encoding="utf-8")
    command = [
        "mvn",
        "-q",
        "-B",
        "-f",
        str(pom),
        "dependency:copy-dependencies",
        f"-DoutputDirectory={folder}",
    ]
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=MAVEN_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LocalKafkaError(f"mvn could not fetch Kafka {release.version}: {error}") from error
    if run.returncode != 0:
        raise LocalKafkaError(
            f"mvn could not fetch Kafka {release.version}:\n{run.stdout[-3000:]}{run.stderr[-1000:]}"
        )
    (folder / ".complete").write_text(_pom(release), encoding="utf-8")


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
