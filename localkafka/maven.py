"""Jars from a Maven repository, fetched once by mvn into a cache outside the tree.

$KCLIENT_CACHE or ~/.cache/kclient
  …/FOLDER/*.jar
  …/FOLDER/.complete      written last, holds the pom: a half-filled or outdated folder counts as absent
  …/FOLDER.lock           held while fetching, so that two runs do not fetch into one folder
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from localkafka.errors import LocalKafkaError

TIMEOUT_SECONDS = 300

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
    "    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
)
ALONE = (
    "<classifier>{}</classifier>"
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
)


def cache() -> Path:
    """Return the cache directory."""
    return Path(os.environ.get("KCLIENT_CACHE") or Path.home() / ".cache" / "kclient")


def fetch(folder: Path, artifacts: Sequence[str]) -> Path:
    """Return the folder with these artifacts (`group:name:version`) and their dependencies. Raise LocalKafkaError.

    `group:name:version:classifier` is one jar alone, for one that holds its dependencies.
    """
    with locked(folder):
        if not is_complete(folder, artifacts):
            _fill(folder, artifacts)
    return folder


def is_complete(folder: Path, artifacts: Sequence[str]) -> bool:
    """Return whether the folder contains exactly these."""
    marker = folder / ".complete"
    return marker.is_file() and marker.read_text(encoding="utf-8") == _pom(artifacts)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of the folder, so that no other process fills it."""
    path = folder.with_name(f"{folder.name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _pom(artifacts: Sequence[str]) -> str:
    return POM.format(dependencies="\n".join(map(_dependency, artifacts)))


def _dependency(artifact: str) -> str:
    group, name, version, *classifier = artifact.split(":")
    return DEPENDENCY.format(group, name, version, "".join(map(ALONE.format, classifier)))


def _fill(folder: Path, artifacts: Sequence[str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pom = folder / "pom.xml"
    pom.write_text(_pom(artifacts), encoding="utf-8")
    command = [
        "mvn",
        "-q",
        "-B",
        "-f",
        str(pom),
        "dependency:copy-dependencies",
        f"-DoutputDirectory={folder}",
    ]
    what = ", ".join(artifacts)
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise LocalKafkaError(f"mvn could not fetch {what}: {exc}") from exc
    if run.returncode != 0:
        raise LocalKafkaError(f"mvn could not fetch {what}:\n{run.stdout[-3000:]}{run.stderr[-1000:]}")
    (folder / ".complete").write_text(_pom(artifacts), encoding="utf-8")
