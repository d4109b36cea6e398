"""The whole demo as a user runs it, on fewer flights: the five numbers agree, and no process is left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demo.flights import data_file
from kclient.spark.sink import manifest
from localkafka import unavailable
from localkafka.jars import java
from tests.demo.needs import needs

ROOT = Path(__file__).parents[2]
MARK = "KCLIENT_DEMO_TEST"
pytestmark = pytest.mark.spread


def start(*arguments: str, mark: str = "", **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "demo", *arguments],
        cwd=ROOT,
        env={**os.environ, MARK: mark, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def alive(mark: str) -> list[str]:
    """Whatever runs with this mark in its environment: the demo's whole family inherits it."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in environment.read_bytes().split(b"\0"):
                found.append((environment.parent / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


@pytest.fixture
def needs_flights_and_java() -> None:
    try:
        data_file("flights.csv.zip")
    except FileNotFoundError as exc:
        needs(str(exc))
    needs(None if java() else "java is not installed, and Spark needs it")


@pytest.fixture
def needs_kafka(needs_flights_and_java: None) -> None:
    needs(unavailable("4.3.1"))


def test_help() -> None:
    process = start("--help")
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "--flights" in output
    assert "five numbers" in " ".join(output.split())


def test_without_java_it_says_what_to_do_before_anything_starts(tmp_path: Path) -> None:
    process = start("--out", str(tmp_path / "out"), JAVA_HOME=str(tmp_path))
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "java" in output
    assert "install a JDK of version 17 or newer" in output
    assert "--engine direct" in output
    assert "Traceback" not in output
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    process = start("--engine", "direct", "--out", str(tmp_path / "file"))
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the demo failed:" in output
    assert "Traceback" not in output


def all_agree(flights: int, folder: Path, *arguments: str) -> str:
    """Run the demo, which loses nothing although three are killed, and leaves nothing behind."""
    process = start("--flights", str(flights), "--out", str(folder), *arguments, mark=folder.name)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    for what in ("published", "consumed", "committed", "in Parquet"):
        assert re.search(rf"✓ {what} +{flights:,}\n", output)
    assert re.search(r"✓ lag +0\n", output)
    assert "all five numbers agree" in output
    assert re.search(
        r"broker [123] killed, the group's coordinator and leader of 2 partitions → [0-5] on", output
    )
    assert re.search(r"member [AB] \(pid \d+\) killed with [\d,]+ records", output)
    assert re.search(r"the ingest job \(pid \d+, \d+ processes\) killed with [\d,]+ rows", output)
    assert "All five numbers agree." in (folder / "report.html").read_text()
    assert alive(folder.name) == []
    return output


@pytest.mark.slow
@pytest.mark.timeout(620)
@pytest.mark.usefixtures("needs_flights_and_java")
def test_the_five_numbers_agree_although_a_broker_a_member_and_the_job_are_killed(tmp_path: Path) -> None:
    assert "three embedded brokers serve" in all_agree(60_000, tmp_path)
    landed = pa.concat_tables(pq.read_table(file) for file in manifest.files(tmp_path / "flights"))
    assert len(landed) == 60_000
    assert set(landed["month"].to_pylist()) == {
        1,
        10,
        11,
    }  # the data begin with January, October and November
    where = set(zip(landed["_partition"].to_pylist(), landed["_offset"].to_pylist(), strict=True))
    assert len(where) == 60_000


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.exhaustive  # in every run: the embedded brokers, and an interrupt of this one
@pytest.mark.timeout(620)
@pytest.mark.usefixtures("needs_kafka")
def test_a_real_kafka_gives_the_same_numbers(tmp_path: Path) -> None:
    output = all_agree(20_000, tmp_path, "--kafka", "4.3.1")
    assert "three brokers of Apache Kafka 4.3.1 serve" in output


def interrupted(folder: Path, when: str, signum: int, *arguments: str, again: bool = False) -> str:
    """What the demo says whose signal comes at this headline: it has ended all that it started."""
    process = start("--flights", "20000", "--out", str(folder), *arguments, mark=folder.name)
    assert process.stdout is not None
    for line in process.stdout:
        if when in line:
            break
    process.send_signal(signum)
    if again:
        time.sleep(0.1)
        process.send_signal(signum)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "interrupted" in output
    assert "Traceback" not in output
    deadline = time.monotonic() + 10
    while (left := alive(folder.name)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []
    return output


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.usefixtures("needs_flights_and_java")
@pytest.mark.parametrize(
    ("when", "signum", "again"),
    [
        ("starting brokers", signal.SIGINT, False),
        ("published 0 of", signal.SIGINT, True),
        ("published 20,000 records", signal.SIGTERM, False),
        ("the ingest job (pid", signal.SIGINT, False),
        ("the group has consumed", signal.SIGHUP, True),
    ],
)
def test_a_signal_at_any_moment_ends_everything(tmp_path: Path, when: str, signum: int, again: bool) -> None:
    interrupted(tmp_path, when, signum, "--engine", "direct", again=again)


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.timeout(300)
@pytest.mark.usefixtures("needs_kafka")
def test_an_interrupt_ends_brokers_and_spark_too(tmp_path: Path) -> None:
    interrupted(tmp_path, "published 20,000 records", signal.SIGINT, "--kafka", "4.3.1")
