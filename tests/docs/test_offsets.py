"""docs/offsets.md: its blocks run, its screen is what the command prints, and its facts about old clients hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kclient import Consumer, OffsetAndMetadata, TopicPartition
from kclient.cli.main import main
from kclient.embedded import EmbeddedCluster
from tests.docs.blocks import python_blocks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "offsets.md").read_text()
BLOCKS = python_blocks(PAGE)
PROSE = " ".join(PAGE.split())


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_blocks_run(number: int) -> None:
    exec(compile(BLOCKS[number], "offsets.md", "exec"), {"__name__": "offsets"})


def test_the_screen_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.search(r"^    \$ python -m kclient (.*)\n((?:    .*\n)+)", PAGE, re.MULTILINE)
    assert shown is not None
    with EmbeddedCluster(brokers=1, topics={"orders": 2}) as kafka:
        kafka.produce("orders", ["x"] * 12_000, partition=0)
        with Consumer(bootstrap_servers=kafka.bootstrap_servers, group_id="billing") as consumer:
            consumer.commit({TopicPartition("orders", 0): OffsetAndMetadata(1_500)})
        assert main(shown[1].replace("localhost:9092", kafka.bootstrap_servers).split()) == 0
    assert capsys.readouterr().out == re.sub(r"^    ", "", shown[2], flags=re.MULTILINE)


def test_every_option_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lag", "--help"]) == 0
    boxes = "".join(line for line in capsys.readouterr().out.splitlines() if line.startswith("│"))
    options = {*re.findall(r"(?<![\w'-])(--[a-z-]+|-[a-z])\b", boxes), "--help", "-h"}
    assert len(options) > 10
    assert set(re.findall(r"`(--?[a-z-]+)`", "".join(re.findall(r"^\|.*", PAGE, re.MULTILINE)))) == options


# --- the rows about earlier releases


@pytest.mark.spec("S1-14")
def test_it_says_that_poll_without_a_duration_waited_for_metadata_and_that_there_is_none_here() -> None:
    assert "`poll(long)`, deprecated in 2.0 and removed in 4.0, waited for metadata without limit" in PROSE
    assert "kclient has no such call: all of `poll(timeout)` counts against the timeout" in PROSE


@pytest.mark.spec("S3-11")
def test_it_says_that_the_old_poll_waited_for_the_join_and_that_ours_does_not() -> None:
    assert "`poll(long)` waited without limit for the group's join to end before it fetched." in PROSE
    assert "kclient does not: `poll` starts a join, goes on with the partitions that stay" in PROSE


@pytest.mark.spec("S3-23")
def test_it_reports_consumers_that_decided_alone_in_zookeeper() -> None:
    assert (
        "Each consumer watched `/consumers/<group>/ids` and `/brokers/topics/<topic>` in ZooKeeper and decided alone"
        in PROSE
    )
    assert "offsets lay under `/consumers/<group>/offsets/<topic>/<partition>`" in PROSE
