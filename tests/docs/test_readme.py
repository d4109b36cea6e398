"""README's Python blocks run as they stand: only the broker, the topic and the group get other names.

The block for pytest runs in a project that has kclient, the command for a cluster in a process of its own;
so does the cluster for the examples, which then run without any Kafka. The block about security has its test in
tests/security.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kclient.spark.sink import manifest
from localkafka import KafkaCluster
from tests.docs.blocks import python_blocks
from tests.spark.conftest import Message, make_topic, spark, write  # noqa: F401 – a fixture

README = Path(__file__).parents[2] / "README.md"
RECORDS = 150


@pytest.fixture
def blocks(kafka1: KafkaCluster, fresh_name: str) -> list[str]:
    """The blocks, pointed at a topic of `RECORDS` records in one partition."""
    make_topic(kafka1, fresh_name)
    write(kafka1, fresh_name, [Message(b"late", key=b"AA") for _ in range(RECORDS)])
    names = {
        "localhost:9092": kafka1.bootstrap_servers,
        '"flights"': repr(fresh_name),
        '"delays"': repr(fresh_name),
    }
    return [re.sub("|".join(names), lambda match: names[match[0]], block) for block in written()]


def written() -> list[str]:
    return python_blocks(README.read_text())


def run(block: str, **names: Any) -> dict[str, Any]:
    exec(compile(block, "README.md", "exec"), names)
    return names


def test_the_first_command_installs_what_the_commands_of_the_page_need() -> None:
    (extras,) = re.findall(r"^    pip install '\.\[(.+?)\]'", README.read_text(), re.MULTILINE)
    project = tomllib.loads((README.parent / "pyproject.toml").read_text())["project"]
    assert {"cli", "arrow"} <= set(extras.split(",")) <= project["optional-dependencies"].keys()


def test_the_figures_are_those_of_the_page_on_performance() -> None:
    measured = (README.parent / "docs" / "performance.md").read_text()
    readers = (
        "poll(max_records=10000)",
        "confluent consume, tuned",
        "aiokafka getmany",
        "kafka-python + crc32c",
    )
    found = [re.findall(r"[\d.]+ · [\d.]+", line) for line in README.read_text().splitlines()]
    records, columns = [figures for figures in found if figures][:2]
    assert records == [" · ".join(cpu_of(measured, name)) for name in readers]
    assert columns == [
        " · ".join(cpu_of(measured, name)) for name in ("kclient to_arrow", "confluent → Arrow, tuned")
    ]


def cpu_of(page: str, reader: str) -> list[str]:
    """The µs of CPU in a row of the page's first table."""
    (row,) = re.findall(rf"^\| (?:kclient )?{re.escape(reader)} \| ([\d,]+ · .*?) \|$", page, re.MULTILINE)
    return re.findall(r"· ([\d.]+)", row)


def test_the_first_screen_says_what_it_is_before_any_detail() -> None:
    first, _, _ = README.read_text().partition("\n## ")
    assert first.count("\n") <= 45


def test_the_loop_commits_what_it_was_given_and_the_batch_continues_after_it(
    kafka1: KafkaCluster, fresh_name: str, blocks: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run(blocks[0])
    assert capsys.readouterr().out.splitlines() == [f"0 {offset} b'AA'" for offset in range(101)]
    assert kafka1.describe_group(fresh_name)[fresh_name, 0].committed == 101
    run(blocks[1])
    assert capsys.readouterr().out == f"{fresh_name}-0 {RECORDS - 101}\n"
    assert kafka1.describe_group(fresh_name)[fresh_name, 0].committed == RECORDS


@pytest.mark.usefixtures("spark")  # the block gets this session
def test_spark_reads_the_topic_into_the_columns_that_are_named(
    blocks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    flights = run(blocks[2])["flights"]
    assert " ".join(flights.columns) == "key value topic partition offset timestamp timestampType"
    assert flights.count() == RECORDS
    assert len(blocks) == 6, "a block of README has no test"


def test_pytest_runs_its_block_with_no_broker_around(pytester: pytest.Pytester) -> None:
    (block,) = [block for block in written() if "def test_" in block]
    pytester.makepyfile(block)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


@pytest.fixture
def served() -> Iterator[str]:
    """Where README's cluster with something to read serves, on a port that is free."""
    (block,) = [block for block in written() if "addresses=" in block]
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = str(probe.getsockname()[1])
    with subprocess.Popen(
        [sys.executable, "-uc", block.replace("9092", port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as cluster:
        assert cluster.stdout is not None
        expected = f"localhost:{port} serves"
        assert cluster.stdout.read(len(expected)) == expected
        yield f"localhost:{port}"
        cluster.communicate("\n", timeout=20)
    assert cluster.returncode == 0


@pytest.mark.spec("SP-82", "SP-89")
def test_the_examples_run_on_the_cluster_with_something_to_read(
    served: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loop, batch, *_ = [block.replace("localhost:9092", served) for block in written()]
    run(loop)
    *_, last = capsys.readouterr().out.splitlines()
    assert last.split()[1:] == ["100", "None"]
    run(batch)
    assert "flights-" in capsys.readouterr().out
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-e", "-c", commands.replace("localhost:9092", served)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("total lag 0\n")
    assert manifest.count(tmp_path / "lake" / "flights") == 2_000


def test_the_command_serves_and_obeys() -> None:
    (command,) = re.findall(
        r"^    python (-m kclient\.embedded .*?) +# (.*)$", README.read_text(), re.MULTILINE
    )
    arguments = command[0].replace(" --port 9092", "").split()
    typed = command[1].partition("type: ")[2].replace(", ", "\n") + "\n"
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, *arguments], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert process.stdout.readline().count(":") == 3
            process.stdin.write(typed)
            process.stdin.flush()
            output = "".join(process.stderr.readline() for _ in range(4))
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
    assert process.returncode == 0
    assert "broker 2 is killed" in output
    assert "broker 2 is started" in output
    assert "topic flights: 0 on 1" in output
