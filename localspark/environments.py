"""One virtual environment for each minor release of pyspark, made once, kept in the cache.

    python -m localspark.environments 4.0 4.2        # or all of them

$KCLIENT_CACHE or ~/.cache/kclient
  spark/4.3.0-bare/          this pyspark and what kclient needs, without kclient
  spark/4.0.0/               kclient (editable, with what its tests need) and this pyspark
  spark/4.0.0/.complete      written last: the requirements, so that a changed pyproject.toml fills it again
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

from localkafka import maven
from localkafka.errors import LocalKafkaError

RELEASES: Final = {"4.0": "4.0.0", "4.1": "4.1.4", "4.2": "4.2.1", "4.3": "4.3.0"}
"""Minor release → the one that stands for it. 4.0.0 is also that of the JVM's Kafka source."""

PROJECT: Final = Path(__file__).resolve().parent.parent
FOR_TESTS: Final = ("pytest", "pytest-timeout", "hypothesis", "confluent-kafka", "kafka-python>=3.0")
TIMEOUT_SECONDS: Final = 900


def python(minor: str) -> Path:
    """Return the interpreter of a release's environment; create it if it is missing. Raise LocalKafkaError."""
    folder = maven.cache() / "spark" / RELEASES[minor]
    extras = "arrow,avro,cli,pkcs12,spark"
    asked = [f"pyspark=={RELEASES[minor]}", *FOR_TESTS, "--editable", f"{PROJECT}[{extras}]"]
    with maven.locked(folder):
        _fill(folder, asked, (PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    return folder / "bin" / "python"


def bare(minor: str) -> Path:
    """Return an interpreter with kclient's dependencies only, for jobs that ship kclient. Raise LocalKafkaError."""
    folder = maven.cache() / "spark" / f"{RELEASES[minor]}-bare"
    needed = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [
        f"pyspark=={RELEASES[minor]}",
        *needed["dependencies"],
        *needed["optional-dependencies"]["arrow"],
    ]
    with maven.locked(folder):
        _fill(folder, asked)
    return folder / "bin" / "python"


def _fill(folder: Path, requirements: list[str], also: str = "") -> None:
    """Install what is asked for, unless that was done. `also` is what the requirements stand for."""
    marker, asked = folder / ".complete", "\n".join([*requirements, also])
    if marker.is_file() and marker.read_text(encoding="utf-8") == asked:
        return
    interpreter = folder / "bin" / "python"
    if not interpreter.exists():
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
    _run([str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements])
    marker.write_text(asked, encoding="utf-8")


def _run(command: list[str]) -> None:
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise LocalKafkaError(f"{' '.join(command)} did not come to an end: {exc}") from exc
    if run.returncode != 0:
        raise LocalKafkaError(f"{' '.join(command)} failed:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")


def chosen(names: list[str]) -> list[str]:
    """Return the minor releases that a command line names, with spaces or commas; `all` or none means all."""
    minors = [minor for name in names for minor in name.split(",") if minor not in ("", "all")]
    if unknown := [minor for minor in minors if minor not in RELEASES]:
        raise LocalKafkaError(f"known are {', '.join(RELEASES)} and all, not {', '.join(unknown)}")
    return minors or list(RELEASES)


def main(names: list[str]) -> int:
    """Create the environments; return 0 if all exist."""
    try:
        for minor in chosen(names):
            print(f"pyspark {RELEASES[minor]}: {python(minor)}", flush=True)
    except LocalKafkaError as exc:
        print(exc, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
