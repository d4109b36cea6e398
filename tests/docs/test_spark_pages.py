"""The pages whose blocks need a Spark session and nothing else: docs/decoding.md and docs/offsets-history.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kclient import Consumer, OffsetAndMetadata, TopicPartition
from kclient.embedded import EmbeddedCluster
from tests.docs.blocks import python_blocks
from tests.spark.conftest import spark  # noqa: F401 – a fixture

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
