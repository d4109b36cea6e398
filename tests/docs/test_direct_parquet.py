"""docs/direct-parquet.md: its commands and blocks run as they stand, on what they write. Spark runs its own blocks."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from kclient.embedded import EmbeddedCluster
from kclient.spark.ingest.engine_spark import SAMPLE
from kclient.spark.sink import manifest, parquet
from kclient.spark.sink.manifest import MIN_AGE_MS
from tests.docs.blocks import python_blocks
from tests.spark.jobs.support import assert_exactly_once, fill

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "direct-parquet.md").read_text(encoding="utf-8")
RANGE = "00003-00000000000000000100-00000000000000000250-000000000042.parquet"
DIRECT, DUCKDB, *_ = python_blocks(PAGE)  # the others need Spark

pytestmark = pytest.mark.timeout(240)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


LAND, TIDY = blocks("sh")


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"flights": 4}) as running:
        yield running


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def shell(commands: str, cluster: EmbeddedCluster | None = None) -> str:
    """Run the lines as a shell would; what they write to standard output."""
    written = ""
    for line in commands.splitlines():
        address = "" if cluster is None else cluster.bootstrap_servers
        program, *arguments = shlex.split(line.replace("localhost:9092", address))
        assert program == "kclient"
        done = subprocess.run(
            [sys.executable, "-m", "kclient", *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        written += done.stdout
    return written


def execute(block: str, **given: object) -> None:
    exec(compile(block, "direct-parquet.md", "exec"), dict(given))


@pytest.mark.spec("SP-78", "SP-79")
def test_what_is_written_can_be_read_as_the_page_says(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    wanted = fill(cluster, 40, topic="flights")
    shell(LAND, cluster)
    assert_exactly_once(tmp_path / "lake/raw", wanted)
    execute(DIRECT)
    execute(DUCKDB)
    [sql] = blocks("sql")
    assert duckdb.execute(sql).fetchall() == [("flights", 40)]

    left = tmp_path / "lake/raw/topic=flights" / RANGE
    left.touch()
    with pytest.raises(duckdb.Error):
        duckdb.sql("SELECT count(*) FROM 'lake/raw/topic=flights/*.parquet'").fetchall()
    execute(DIRECT)
    assert shell(TIDY) == ""  # it is younger than an hour
    os.utime(left, (0, 0))
    assert shell(TIDY).splitlines() == [f"topic=flights/{RANGE}\t0"] * 2
    assert not left.exists()
    assert_exactly_once(tmp_path / "lake/raw", wanted)


@pytest.mark.spec("SP-78")
def test_the_manifest_of_the_page_is_one(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    [shown] = blocks("json")
    path = tmp_path / "_manifest/000000000042.json"
    path.parent.mkdir()
    path.write_text(shown)
    [whole] = manifest.read_all(tmp_path)
    assert (whole.rows, whole.files[0].path) == (150, f"topic=flights/{RANGE}")
    manifest.write(tmp_path, whole)
    assert json.loads(path.read_text()) == json.loads(shown)


def test_the_numbers() -> None:
    assert f"about {parquet.ROW_GROUP_ROWS:,}\nrows" in PAGE
    assert MIN_AGE_MS == 3_600_000
    assert "Files younger than an hour stay" in PAGE
    assert f"the next {SAMPLE:,}\nrecords of each topic" in PAGE
