"""docs/ingest.md: its broker serves, its commands run in their order, and its tables are those of the code."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import attrs
import pytest

from kclient.cli import exit_codes
from kclient.cli.ingest import IngestOptions
from kclient.cli.prometheus import Prometheus
from kclient.spark.sink import manifest
from tests.cli.test_texts import BATCH, KEYS, PLAN
from tests.docs.blocks import python_blocks
from tests.s3 import Bucket

PAGE = (Path(__file__).parents[2] / "docs" / "ingest.md").read_text(encoding="utf-8")
BROKER, READING, READING_S3, CELL = python_blocks(PAGE)
RECORDS = 1_001
PATIENCE = 120


def fenced(kind: str) -> list[str]:
    """The blocks of a kind, in the order of the page."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


QUICK, ON_S3, DEAD_LETTERS, REPLAY, BACKFILL, AFTERWARDS = fenced("sh")


class Place(NamedTuple):
    """Where the page's broker and its /lake are."""

    servers: str
    root: Path

    def here(self, text: str) -> str:
        """The page's text, with this broker and this directory."""
        text = text.replace("/opt/kclient/bin/", "").replace("/etc/kclient", str(self.root))
        return text.replace("localhost:9092", self.servers).replace("/lake", str(self.root / "lake"))

    def run(self, block: str) -> subprocess.CompletedProcess[str]:
        """A block of shell commands; the first one that fails ends it."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return subprocess.run(
            ["bash", "-e", "-c", self.here(block)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env={**os.environ, "PATH": path, "NO_COLOR": "1"},
            check=False,
        )

    def rows(self, name: str) -> int:
        """What counts in a directory of /lake."""
        return manifest.count(self.root / "lake" / name)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = str(probe.getsockname()[1])
    with subprocess.Popen(
        [sys.executable, "-c", BROKER.replace("9092", port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as broker:
        assert broker.stdin is not None
        assert broker.stdout is not None
        assert broker.stdout.readline().startswith(f"localhost:{port} serves")
        yield Place(f"localhost:{port}", tmp_path_factory.mktemp("page"))
        broker.communicate("\n", timeout=20)
    assert broker.returncode == 0


def shape(text: str) -> list[str]:
    """Lines without their numbers and places, which are other ones each time."""
    text = re.sub(r"parquet:\S+/lake", "parquet:/lake", text)
    return [re.sub(r"\d[\d,.]*( [kMG]?B\b)?", "#", line) for line in text.splitlines()]


@pytest.mark.spec("SP-82", "SP-83", "SP-84", "SP-89")
def test_the_quick_start_reports_what_the_page_says(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = place.run(QUICK)
    assert done.returncode == 0, done.stderr
    documented = fenced("text")[0]
    assert shape(done.stderr) == shape(documented)
    assert shape(done.stdout)[:1] == shape(documented)[:1]  # the dry run
    assert done.stdout.endswith("total lag 0\n")
    exec(compile(place.here(READING), "ingest.md", "exec"), {})
    *_, promised = READING.rstrip().partition("# ")
    assert capsys.readouterr().out.strip() == promised == f"{RECORDS} {RECORDS}"


def test_the_same_lands_in_s3(place: Place, s3: Bucket, capsys: pytest.CaptureFixture[str]) -> None:
    done = place.run(ON_S3.replace("my-bucket", s3.name))
    assert done.returncode == 0, done.stderr
    assert f"sink parquet:s3://{s3.name}/raw  rows {RECORDS:,}" in done.stdout
    exec(compile(READING_S3.replace("my-bucket", s3.name), "ingest.md", "exec"), {})
    *_, promised = READING_S3.rstrip().partition("# ")
    assert capsys.readouterr().out.strip() == promised == str(RECORDS)


def test_a_cell_of_a_notebook_runs_the_job(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    async def cell() -> None:
        exec(compile(place.here(CELL), "ingest.md", "exec"), {})

    asyncio.run(cell())
    *_, promised = CELL.rstrip().partition("# ")
    assert capsys.readouterr().out.strip() == promised == f"drained {RECORDS}"


@pytest.mark.spec("SP-88")
def test_dead_letters_land_later_and_once(place: Place) -> None:
    done = place.run(DEAD_LETTERS)
    assert (done.returncode, place.rows("orders"), place.rows("dlq")) == (0, RECORDS - 1, 1), done.stderr
    for _ in range(2):
        done = place.run(REPLAY)
        assert (done.returncode, place.rows("orders")) == (0, RECORDS), done.stderr


@pytest.mark.spec("SP-89")
def test_a_backfill_lands_what_was_before_the_job(place: Place) -> None:
    done = place.run(BACKFILL)
    assert (done.returncode, place.rows("new")) == (0, RECORDS), done.stderr
    again = place.run(BACKFILL)
    assert (again.returncode, place.rows("new")) == (0, RECORDS), again.stderr


@pytest.mark.spec("SP-79", "SP-89")
def test_cleaning_up_and_status(place: Place) -> None:
    if not place.rows("raw"):
        assert place.run(QUICK).returncode == 0
    done = place.run(AFTERWARDS)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "nothing to remove\n" * 2
    assert place.rows("raw") == RECORDS


def services() -> list[str]:
    """The commands that the page gives to systemd, cron and Kubernetes."""
    [unit], [table], [manifest_of_pod] = fenced("ini"), fenced("cron"), fenced("yaml")
    [start] = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    [words] = re.findall(r"args: \[(.*?)\]", manifest_of_pod, re.DOTALL)
    return [
        start,
        table.split(maxsplit=5)[5].partition(" 2>>")[0],
        "kclient " + " ".join(re.split(r",\s+", words)),
    ]


@pytest.mark.parametrize("which", [0, 1, 2])
def test_services_are_given_a_command_that_runs(which: int, place: Place) -> None:
    (place.root / "client.properties").write_text(f"bootstrap.servers={place.servers}\n")
    done = place.run(f"{services()[which]} --dry-run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("plan  orders  2 partitions")


# --- the tables


def test_the_names_in_events_are_those_of_the_page() -> None:
    rows = dict(re.findall(r"^\| `(plan|batch|finished|warning|failed)` \| (.*) \|$", PAGE, re.MULTILINE))
    without_notes = {event: re.sub(r" \([^)]*\)", "", text) for event, text in rows.items()}
    assert {event: re.findall(r"`(\w+)`", text) for event, text in without_notes.items()} == {
        event: keys.split() for event, keys in KEYS.items()
    }


def test_the_metrics_are_those_of_the_page() -> None:
    page = Prometheus("127.0.0.1", 0)
    try:
        page.planned(PLAN)
        page.batch(BATCH)
        kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page.page, re.MULTILINE))
    finally:
        page.close()
    rows = re.findall(r"^\| (`kclient_.*?) \| (\w+) \|", PAGE, re.MULTILINE)
    assert kinds == {name: kind for names, kind in rows for name in re.findall(r"`(\w+)", names)}


def test_the_exit_codes_are_those_of_the_code() -> None:
    section = PAGE.partition("### Exit codes")[2].partition("\n## ")[0]
    documented = [int(code) for code in re.findall(r"^\| (\d+) \|", section, re.MULTILINE)]
    names = "OK FAILED USAGE CONNECT NOT_ALLOWED NOT_FOUND DATA BROKERS OUTPUT INTERRUPTED"
    assert documented == [getattr(exit_codes, name) for name in names.split()]


def test_every_option_is_on_the_page() -> None:
    names = {field.name.replace("_", "-") for field in attrs.fields(IngestOptions)}
    other = {"headers": "no-headers", "fail-on-data-loss": "accept-data-loss"}
    missing = [name for name in sorted(names) if f"--{other.get(name, name)}" not in PAGE]
    assert missing == []
