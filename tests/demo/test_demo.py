"""The whole demo on fewer flights: four numbers agree, nothing stays behind, and a lie is not believed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from demo.__main__ import Numbers
from demo.flights import data_file
from localkafka import unavailable
from localkafka.jars import java

ROOT = Path(__file__).parents[2]
MARK = "KCLIENT_DEMO_TEST"


def start(*arguments: str, mark: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "demo", *arguments],
        cwd=ROOT,
        env={**os.environ, MARK: mark},
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


def needs(reason: str | None) -> None:
    if reason:
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)


@pytest.fixture
def needs_flights_and_java() -> None:
    try:
        data_file("flights.csv.zip")
    except FileNotFoundError as missing:
        needs(str(missing))
    needs(None if java() else "java is not installed, and Spark needs it")


@pytest.fixture
def needs_kafka(needs_flights_and_java: None) -> None:
    needs(unavailable("4.3.1"))


@pytest.mark.parametrize("wrong", ["published", "consumed", "parquet", "committed"])
def test_one_number_that_differs_is_enough(wrong: str) -> None:
    right = dict.fromkeys(("expected", "published", "consumed", "parquet", "committed"), 5)
    assert Numbers(**right).agree
    assert not Numbers(**{**right, wrong: 4}).agree
    assert "DIFFER" in str(Numbers(**{**right, wrong: 4}))
    assert not Numbers(**{**right, "expected": 6}).agree


def test_help() -> None:
    process = start("--help")
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "--flights" in output
    assert "four numbers" in " ".join(output.split())


def all_agree(flights: int, folder: Path, *arguments: str) -> str:
    """Run the demo, which loses nothing although a broker and a member are killed, and leaves nothing behind."""
    process = start("--flights", str(flights), "--out", str(folder), *arguments, mark=folder.name)
    output, _ = process.communicate(timeout=350)
    assert process.returncode == 0, output
    numbers = " · ".join(
        f"{what} {flights:,}" for what in ("published", "consumed", "in Parquet", "committed")
    )
    assert f"{numbers}: all agree" in output
    assert re.search(
        r"broker [123] killed, the group's coordinator and leader of 2 partitions → [0-5] on", output
    )
    assert re.search(r"member [AB] \(pid \d+\) killed with [\d,]+ records", output)
    assert alive(folder.name) == []
    return output


@pytest.mark.slow
@pytest.mark.timeout(360)
@pytest.mark.usefixtures("needs_flights_and_java")
def test_the_four_numbers_agree_although_a_broker_and_a_member_are_killed(tmp_path: Path) -> None:
    assert "three embedded brokers serve" in all_agree(60_000, tmp_path)
    months = sorted(folder.name for folder in (tmp_path / "flights.parquet").glob("month=*"))
    assert months == ["month=1", "month=10", "month=11"]  # the data begin with January, October and November


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.timeout(360)
@pytest.mark.usefixtures("needs_kafka")
def test_a_real_kafka_gives_the_same_numbers(tmp_path: Path) -> None:
    output = all_agree(20_000, tmp_path, "--kafka", "4.3.1")
    assert "three brokers of Apache Kafka 4.3.1 serve" in output


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.timeout(120)
@pytest.mark.usefixtures("needs_kafka")
def test_an_interrupt_ends_everything_that_was_started(tmp_path: Path) -> None:
    arguments = ("--flights", "60000", "--out", str(tmp_path), "--kafka", "4.3.1")
    process = start(*arguments, mark=tmp_path.name)
    assert process.stdout is not None
    for line in process.stdout:
        if "publishing" in line:
            break
    assert any("kafka.Kafka" in command for command in alive(tmp_path.name))
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130, output
    deadline = time.monotonic() + 10
    while (left := alive(tmp_path.name)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []
