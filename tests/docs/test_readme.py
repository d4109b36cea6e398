"""README's Python blocks run as they stand: only the broker, the topic and the group get other names."""

from __future__ import annotations

import re
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
    found = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    return [re.sub("|".join(names), lambda match: names[match[0]], block) for block in found]


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
    assert len(blocks) == 4, (
        "a block of README has no test"
    )  # the last one's is tests/security/test_readme_block.py
