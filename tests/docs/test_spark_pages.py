"""The pages whose blocks need a Spark session: decoding.md, offsets-history.md and how-to/spark-jobs.md of docs."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pytest

from kclient import Consumer, OffsetAndMetadata, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.spark.sink import manifest
from tests.docs.blocks import python_blocks
from tests.spark.conftest import spark  # noqa: F401 – a fixture
from tests.spark.registry import registry_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[2] / "docs"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def run(page: str, names: dict[str, Any], written: dict[str, str]) -> None:
    """Run the blocks of a page with other addresses and paths than those that are written there."""
    for block in python_blocks((DOCS / page).read_text()):
        for name, instead in written.items():
            block = block.replace(name, instead)
        exec(compile(block, page, "exec"), names)


@pytest.mark.kafka_cluster(brokers=1, topics={"flights": 1})
def test_decoding_md(
    spark: SparkSession,  # noqa: F811
    kafka: EmbeddedCluster,
    capsys: pytest.CaptureFixture[str],
) -> None:
    flight = {"carrier": "UA", "flight": 1545, "delay": 2.0, "at": "2013-01-01T05:17:00Z"}
    kafka.produce("flights", [json.dumps(flight)])
    run("decoding.md", {"spark": spark}, {"localhost:9092": kafka.bootstrap_servers})
    assert "|     UA|  2.0|     0|" in capsys.readouterr().out


@pytest.mark.kafka_cluster(brokers=1, topics={"orders": 1})
def test_offsets_history_md(
    spark: SparkSession,  # noqa: F811
    kafka: EmbeddedCluster,
    tmp_path: Path,
) -> None:
    kafka.produce("orders", ["a", "b", "c"])
    with Consumer(bootstrap_servers=kafka.bootstrap_servers, group_id="billing") as consumer:
        consumer.commit({TopicPartition("orders", 0): OffsetAndMetadata(1)})
    names: dict[str, Any] = {"spark": spark}
    run(
        "offsets-history.md",
        names,
        {"localhost:9092": kafka.bootstrap_servers, "/lake/offsets": str(tmp_path / "offsets")},
    )
    assert names["lag"].to_pylist()[-1]["lag"] == 2
    assert spark.sql("SELECT max(lag) FROM lag").first() == (2,)


DAY_MS = 86_400_000
ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
SOLD = {**ORDER, "fields": [*ORDER["fields"], {"name": "currency", "type": "string", "default": "EUR"}]}


def framed(number: int, schema: Any, order: dict[str, Any]) -> bytes:
    value = io.BytesIO()
    fastavro.schemaless_writer(value, schema, order)
    return b"\0" + number.to_bytes(4, "big") + value.getvalue()


@pytest.mark.kafka_cluster(brokers=1, topics={"orders": 3})
def test_spark_jobs_md(
    spark: SparkSession,  # noqa: F811
    kafka: EmbeddedCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An order each six hours since five days ago, three whole days of which are backfilled. A partition is empty."""
    monkeypatch.chdir(tmp_path)
    today = time.time_ns() // 1_000_000 // DAY_MS * DAY_MS
    times = [today - 5 * DAY_MS + number * DAY_MS // 4 for number in range(20)] + [today + 1]
    with registry_server() as registry:
        first = registry.add("orders-value", ORDER)
        for number, at in enumerate(times):
            value = framed(first, ORDER, {"id": number})
            kafka.produce("orders", [value], partition=number % 2, timestamp_ms=at)
        kafka.produce("orders", [b"no Avro"], partition=0, timestamp_ms=today + 2)
        written = {
            "localhost:9092": kafka.bootstrap_servers,
            '"https://registry.example:8081")': f'"{registry.url}").option("schema.registry.allowHttp", "true")',
            '"lake/': f'"{tmp_path}/lake/',
            "int(time.time() * 1000)": f"{today + 3}",  # midnight may pass meanwhile
        }
        names: dict[str, Any] = {}
        run("how-to/spark-jobs.md", names, written)
        landed = spark.read.parquet(f"{tmp_path}/lake/orders")
        assert landed.where("_error IS NULL").count() == len(times)
        assert [bytes(row._raw) for row in landed.where("_error IS NOT NULL").collect()] == [b"no Avro"]
        assert landed.select("date").distinct().count() == 6
        filled = spark.read.parquet(f"{tmp_path}/lake/backfill").groupBy("date").count().collect()
        assert [row["count"] for row in filled] == [4, 4, 4]
        assert ": 14 rows, lag 0, at most 0\n" in capsys.readouterr().out

        # A version of the schema with one more column, and the program again.
        kafka.produce(
            "orders", [framed(registry.add("orders-value", SOLD), SOLD, {"id": 99, "currency": "USD"})]
        )
        session, avro, *_ = python_blocks((DOCS / "how-to" / "spark-jobs.md").read_text())
        for name, instead in written.items():
            avro = avro.replace(name, instead)
        exec(compile(session + avro, "spark-jobs.md", "exec"), {})
        landed = spark.read.option("mergeSchema", "true").parquet(f"{tmp_path}/lake/orders")
        assert landed.count() == len(times) + 2
        assert landed.where("currency = 'USD'").count() == 1


@pytest.mark.kafka_cluster(brokers=1, topics={"orders": 2})
def test_the_days_of_spark_jobs_md_land_once(kafka: EmbeddedCluster, tmp_path: Path) -> None:
    today = time.time_ns() // 1_000_000 // DAY_MS * DAY_MS
    for number in range(24):
        at = today - 5 * DAY_MS + number * DAY_MS // 4
        kafka.produce("orders", [str(number)], partition=number % 2, timestamp_ms=at)
    page = (DOCS / "how-to" / "spark-jobs.md").read_text()
    (days,) = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    days = days.replace("localhost:9092", kafka.bootstrap_servers)
    day = datetime.fromtimestamp(today / 1000, UTC).date()  # as midnight may pass meanwhile
    assert days.count('date -u -d "$') == 2
    command = ["bash", "-c", days.replace('date -u -d "$', f'date -u -d "{day} $')]
    for batches in (3, 0):  # the second run finds each day
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=True,
        )
        assert len(re.findall("^batch 0  4 rows", done.stderr, re.MULTILINE)) == batches, done.stderr
        assert manifest.count(tmp_path / "lake" / "days") == 12
