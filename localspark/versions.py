"""The tests of the Spark source on every minor release of pyspark, one after the other, each in its environment.

    python -m localspark.versions [all | 4.0,4.2] [arguments for pytest]

Spec: ST-21.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Final

from localkafka.errors import LocalKafkaError
from localspark.environments import PROJECT, RELEASES, chosen, python

TESTS: Final = ("tests/spark/test_versions.py", "tests/spark/test_batch.py")
THEIR_WARNINGS: Final = ("-o", "filterwarnings=default", "-W", "ignore::ResourceWarning")
"""Older releases of pyspark leave sockets open, which is not a defect of kclient."""


def run(minor: str, arguments: list[str]) -> bool:
    """Run the tests on one release; return whether all passed. Raise LocalKafkaError if it cannot be installed."""
    command = [str(python(minor)), "-m", "pytest", "-q", "-p", "no:cacheprovider", *THEIR_WARNINGS]
    print(f"\npyspark {RELEASES[minor]}", flush=True)
    return subprocess.run([*command, *TESTS, *arguments], cwd=PROJECT, check=False).returncode == 0


def main(releases: str = "all", *arguments: str) -> int:
    """Test every release, even after one failed; return 0 if all passed."""
    try:
        passed = {minor: run(minor, list(arguments)) for minor in chosen([releases])}
    except LocalKafkaError as exc:
        print(exc, file=sys.stderr)
        return 1
    for minor, good in passed.items():
        print(f"pyspark {RELEASES[minor]}: {'passed' if good else 'FAILED'}")
    return 0 if all(passed.values()) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
