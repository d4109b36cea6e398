"""README's Python blocks run as they stand: only the broker, the topic and the group get other names.

The block for pytest runs in a project of somebody who has kclient, the command for a cluster in a process of its own;
the block about security has its test in tests/security.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from localkafka import KafkaCluster
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
    return re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)


def run(block: str, **names: Any) -> dict[str, Any]:
    exec(compile(block, "README.md", "exec"), names)
    return names


def test_the_loop_commits_what_it_was_given_and_the_batch_goes_on_behind_it(
    kafka1: KafkaCluster, fresh_name: str, blocks: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run(blocks[0])
    assert capsys.readouterr().out.splitlines() == [f"0 {offset} b'AA'" for offset in range(101)]
    assert kafka1.describe_group(fresh_name)[fresh_name, 0].committed == 101
    run(blocks[1])
    assert capsys.readouterr().out == f"{fresh_name}-0 {RECORDS - 101}\n"
    assert kafka1.describe_group(fresh_name)[fresh_name, 0].committed == RECORDS


def test_spark_reads_the_topic_into_the_columns_that_are_named(
    request: pytest.FixtureRequest, blocks: list[str]
) -> None:
    flights = run(blocks[2], spark=request.getfixturevalue("spark"))["flights"]
    assert " ".join(flights.columns) == "key value topic partition offset timestamp timestampType"
    assert flights.count() == RECORDS
    assert len(blocks) == 5, "a block of README has no test"


def test_pytest_runs_its_block_with_no_broker_around(pytester: pytest.Pytester) -> None:
    (block,) = [block for block in written() if block.startswith("def test_")]
    pytester.makepyfile("from kclient import Consumer\n\n\n" + block)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


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
            told = "".join(process.stderr.readline() for _ in range(4))
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=20)
    assert process.returncode == 0
    assert "broker 2 is killed" in told
    assert "broker 2 is started" in told
    assert "topic flights: 0 on 1" in told
