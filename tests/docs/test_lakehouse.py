"""docs/lakehouse.md: its commands and its block run on a real S3 of this machine, as a user would type them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import strictyaml
from pyiceberg.catalog import load_catalog

from kclient.embedded import EmbeddedCluster
from tests.docs.blocks import python_blocks
from tests.s3 import Bucket

PAGE = (Path(__file__).parents[2] / "docs" / "lakehouse.md").read_text(encoding="utf-8")
[READING] = python_blocks(PAGE)
RECORDS = 40

pytestmark = pytest.mark.timeout(300)


def fenced(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


ICEBERG, DELTA, AFTERWARDS = fenced("sh")
CATALOG, OTHER_CATALOGS = fenced("yaml")


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"flights": 2}) as running:
        for number in range(RECORDS):
            value = {"carrier": "UA" if number % 3 else "AA", "delay": number, "at": "2026-11-20T10:00:00Z"}
            running.produce("flights", [json.dumps(value)], partition=number % 2)
        yield running


def here(text: str, s3: Bucket, cluster: EmbeddedCluster) -> str:
    return text.replace("s3://lake", s3.url()).replace("localhost:9092", cluster.bootstrap_servers)


def shell(block: str) -> str:
    """Run a block; what it writes to standard output. The first command that fails ends it."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-e", "-c", block],
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "PATH": path, "NO_COLOR": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_both_tables_are_made_verified_and_read_as_the_page_says(
    s3: Bucket, cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__S3__ENDPOINT", s3.server.endpoint)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")  # for delta-rs in Polars: this S3 has no TLS
    Path("catalog.yaml").write_text(here(CATALOG, s3, cluster))
    for block in (ICEBERG, DELTA):
        for _ in range(2):  # the same commands again go on, and land nothing twice
            found = shell(here(block, s3, cluster))
            assert re.search(rf"flights +0 +0 +{RECORDS // 2} +{RECORDS // 2} +0 +[-0] ", found), found
    Path("reading.py").write_text(here(READING, s3, cluster))
    shell("python reading.py")  # pyiceberg reads the environment once in a process
    properties = {"type": "sql", "uri": "sqlite:///catalog.db", "s3.endpoint": s3.server.endpoint}
    table = load_catalog("prod", **properties, warehouse=s3.url("warehouse")).load_table("db.flights")
    offsets = table.scan(selected_fields=("_kafka_partition", "_offset")).to_arrow().to_pylist()
    assert sorted((row["_kafka_partition"], row["_offset"]) for row in offsets) == [
        (partition, offset) for partition in range(2) for offset in range(RECORDS // 2)
    ]
    assert [str(field.transform) for field in table.spec().fields] == ["identity", "day"]
    shell(here(AFTERWARDS, s3, cluster))


def test_the_catalogs_of_the_page_have_the_form_of_pyiceberg() -> None:
    for block in (CATALOG, OTHER_CATALOGS):
        for catalog in strictyaml.load(block).data["catalog"].values():
            assert "warehouse" in catalog
            assert catalog["type"] in ("sql", "rest", "glue")
