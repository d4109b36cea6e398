"""docs/tutorial: the airport serves in a process of its own, and the blocks of each step run against it in order."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.blocks import python_blocks
from tests.spark.conftest import spark  # noqa: F401 – a fixture

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial"


@pytest.fixture(scope="module")
def airport() -> Iterator[str]:
    """Where the airport of the first page serves, on a port that is free."""
    (program,) = python_blocks((TUTORIAL / "index.md").read_text())
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = str(probe.getsockname()[1])
    command = [sys.executable, "-c", program.replace("9092", port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == f"localhost:{port} serves until Ctrl-C\n"
            yield f"localhost:{port}"
        finally:
            process.kill()


def output(page: str, airport: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Run the blocks of a page; what each printed."""
    printed = []
    for block in python_blocks((TUTORIAL / page).read_text()):
        exec(compile(block.replace("localhost:9092", airport), page, "exec"), {"__name__": page})
        printed.append(capsys.readouterr().out)
    return printed


def test_the_steps_without_spark(
    airport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    topic, first, last = output("read.md", airport, capsys)
    assert [line.split()[0] for line in topic.splitlines()] == [f"departures-{number}" for number in range(4)]
    assert topic.count("from 0 to before 0\n") == 1, "the page says how many partitions are empty"
    assert len(re.findall(r"^\d \d+ b'(?:EWR|JFK|LGA)' (?:AA|B6|DL|UA) \d+$", first, re.MULTILINE)) == 5
    assert last.startswith("just now: ")

    late, committed = output("group.md", airport, capsys)
    assert re.match(r"\d+ of 500 flights are late\n", late)
    assert sum(map(int, re.findall(r"continues at (\d+)", committed))) == 500

    failed, archived = output("commit.md", airport, capsys)
    (broken,) = re.findall(r"failed at flight (\d+)$", failed, re.MULTILINE)
    assert failed.endswith(f"the next run begins with flight {broken}\n")
    assert archived == "200 records are archived, the group continues after them\n"
    assert len((tmp_path / "archive.jsonl").read_bytes().splitlines()) == 200

    (moves,) = output("rebalance.md", airport, capsys)
    assert moves.startswith("first gets [0, 1, 2, 3]\n")
    assert "shared: 2 and 2\n" in moves
    assert len(re.findall(r"^second gets \[\d, \d\]$", moves, re.MULTILINE)) == 1

    report, read = output("lag.md", airport, capsys)
    assert re.match(r"Empty with 0 members; total lag [1-9]\d+\n", report)
    assert "lag of each partition: [0, 0, 0, 0]\n" in read


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_step_with_spark(
    spark: SparkSession,  # noqa: F811
    airport: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    names: dict[str, object] = {}
    for block in python_blocks((TUTORIAL / "spark.md").read_text()):
        block = block.replace("localhost:9092", airport).replace('"lake/', f'"{tmp_path}/lake/')
        exec(compile(block, "spark.md", "exec"), names)
    assert names["spark"] is spark
    averages = re.findall(r"^\| +(?:AA|B6|DL|UA)\| *[\d.]+\|$", capsys.readouterr().out, re.MULTILINE)
    assert len(averages) == 4
    assert spark.read.parquet(f"{tmp_path}/lake/departures").count() >= 1000
