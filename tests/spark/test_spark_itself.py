"""What Spark itself lacks and costs, and that the source stays small beside it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import fastavro
import pytest

from benchmarks import bench_spark_process as processes
from kclient.embedded import EmbeddedCluster
from kclient.embedded.observer import Observer
from kclient.embedded.received_request import ReceivedRequest
from kclient.spark.sink import manifest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BROKERS, PARTITIONS, BATCHES = 2, 4, 12
EACH = 120
MB = 1_000_000
WORKER_BYTES, SOURCE_BYTES = 177 * MB, 64 * MB
DRIVER_BYTES = 2_000 * MB
ROOT = Path(__file__).parents[2]
FLIGHT = {"type": "record", "name": "Flight", "fields": [{"name": "carrier", "type": "string"}]}


def load(spark: SparkSession, kafka: EmbeddedCluster, **options: str) -> Any:
    given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": "t", **options}
    return spark.read.format("kclient").options(**given).load()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.spec("SP-04")
@pytest.mark.kafka_cluster(brokers=1, topics={"t": 1})
def test_avro_without_the_jar_that_spark_wants_for_it(spark: SparkSession, kafka: EmbeddedCluster) -> None:
    from pyspark.sql.avro.functions import from_avro
    from pyspark.sql.protobuf.functions import from_protobuf

    out = io.BytesIO()
    fastavro.schemaless_writer(out, FLIGHT, {"carrier": "UA"})
    kafka.produce("t", [out.getvalue()])
    raw = load(spark, kafka)
    with pytest.raises(Exception, match="AVRO_NOT_LOADED_SQL_FUNCTIONS_UNUSABLE"):
        raw.select(from_avro("value", json.dumps(FLIGHT))).collect()
    with pytest.raises(Exception, match="PROTOBUF_NOT_LOADED_SQL_FUNCTIONS_UNUSABLE"):
        raw.select(from_protobuf("value", "Flight", binaryDescriptorSet=b"")).collect()
    decoded = load(spark, kafka, valueFormat="avro", valueSchema=json.dumps(FLIGHT))
    assert [row["carrier"] for row in decoded.select("value.carrier").collect()] == ["UA"]


@pytest.mark.spec("SP-07")
@pytest.mark.kafka_cluster(brokers=1, topics={"t": 2})
def test_a_small_job_waits_for_no_spark(kafka: EmbeddedCluster, tmp_path: Path) -> None:
    """Neither pyspark nor a JVM can be had, and the job lands what there is."""
    kafka.produce("t", [b"1", b"2", b"3"])
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text("raise ImportError('nobody may import this')\n")
    job = ["--bootstrap", kafka.bootstrap_servers, "--topics", "t", "--engine", "direct"]
    places = ["--sink", f"parquet:{tmp_path / 'sink'}", "--checkpoint", str(tmp_path / "checkpoint")]
    done = subprocess.run(
        [sys.executable, "-m", "kclient", "ingest", *job, *places],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "PATH": "", "JAVA_HOME": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert manifest.count(tmp_path / "sink") == 3


class Connections(Observer):
    """The connections over which executors ever fetched."""

    def __init__(self) -> None:
        self.used: set[int] = set()

    def requested(self, call: ReceivedRequest) -> None:
        if call.api == "Fetch" and call.client_id.endswith("-executor"):
            self.used.add(call.connection_number)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.spec("SG-08", "SP-08", "SP-25", "ST-18")
@pytest.mark.kafka_cluster(brokers=BROKERS, topics={"t": PARTITIONS})
def test_a_stream_of_small_batches_stays_small(
    spark: SparkSession, kafka: EmbeddedCluster, tmp_path: Path
) -> None:
    """Connections, memory and time of a dozen batches, each of which reads every partition."""
    for partition in range(PARTITIONS):
        kafka.produce("t", [b"x" * 1000] * EACH, partition=partition)
    kafka.observe(watched := Connections())
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "subscribe": "t",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(EACH * PARTITIONS // BATCHES),
    }
    writer = spark.readStream.format("kclient").options(**options).load().writeStream.format("noop")
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    reported = [progress for progress in query.recentProgress if progress["numInputRows"]]
    assert [progress["numInputRows"] for progress in reported] == [EACH * PARTITIONS // BATCHES] * BATCHES

    workers = processes.workers(os.getpid())
    held = [
        len(processes.connections([worker], broker.listeners[0].port))
        for worker in workers
        for broker in kafka.state.brokers.values()
    ]
    assert max(held) == 1
    assert (
        0 < len(watched.used) <= sum(held)
    )  # all that were opened are still open: no batch opened one again

    assert max(map(processes.peak_bytes, workers)) < WORKER_BYTES + SOURCE_BYTES
    parents = {process.pid: process.parent for process in processes.tree(os.getpid())}
    # Not the JVM of a broker that another test left up.
    (jvm,) = {parents[parents[worker]] for worker in workers}
    assert processes.peak_bytes(jvm) < DRIVER_BYTES

    whole, source = (
        median(progress["durationMs"][part] for progress in reported)
        for part in ("triggerExecution", "latestOffset")
    )
    assert source < whole / 2
