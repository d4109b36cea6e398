"""The Java consumer of the broker's own release as the reference: `Reader.java`, run against its jars."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from localkafka.jars import QUICK_START, classpath, java
from tests.brokers.conftest import Broker

PROGRAM = Path(__file__).with_name("Reader.java")
SECONDS = 60


class Seen(NamedTuple):
    """One record as a consumer shows it."""

    offset: int
    timestamp: int
    timestamp_type: str
    key: bytes | None
    value: bytes | None


def read_with_java(broker: Broker, topics: list[str]) -> dict[str, list[Seen]]:
    """Partition 0 of each topic, from the beginning. Skips where Java comes without its compiler."""
    if shutil.which("javac") is None and os.environ.get("CI") != "true":
        pytest.skip("Java's consumer is run from its source, and there is no javac")
    jvm = [java() or "java", *QUICK_START, "-Xmx128m", "-cp", classpath(broker.kafka.version)]
    run = subprocess.run(
        [*jvm, str(PROGRAM), broker.bootstrap_servers, *topics],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    seen: dict[str, list[Seen]] = {topic: [] for topic in topics}
    for line in run.stdout.splitlines():
        if line.count("\t") != 5:
            continue  # some releases log to standard output
        topic, offset, timestamp, kind, key, value = line.split("\t")
        seen[topic].append(Seen(int(offset), int(timestamp), kind, _bytes(key), _bytes(value)))
    return seen


def _bytes(text: str) -> bytes | None:
    return None if text == "null" else base64.b64decode(text[1:])
