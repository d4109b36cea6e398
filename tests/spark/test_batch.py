"""The batch source inside Spark: schema, counts, SQL, early stops, refusals, and tasks that are tried again."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kclient.spark import register
from localkafka import KafkaCluster
from tests.spark.conftest import MASTER, Message, make_topic, read_with_other_client, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

RECORDS = 4_000


@pytest.fixture(scope="module")
def topic(_kafka1: KafkaCluster) -> Iterator[str]:
    """A topic of two partitions; every tenth record has headers, every seventh a null key."""
    make_topic(_kafka1, "spark-batch", partitions=2)
    messages = (
        Message(
            value=b'{"n": %d}' % n,
            partition=n % 2,
            key=None if n % 7 == 0 else b"%d" % n,
            headers=[("h", b"%d" % n), ("h", None)] if n % 10 == 0 else None,
            timestamp=1_357_034_400_000 + n,
        )
        for n in range(RECORDS)
    )
    write(_kafka1, "spark-batch", messages, compression_type="lz4")
    return "spark-batch"


def load(
    spark: SparkSession, kafka: KafkaCluster, topic: str, schema: str | None = None, **options: str
) -> DataFrame:
    reader = spark.read.format("kclient").option("kafka.bootstrap.servers", kafka.bootstrap_servers)
    for name, value in options.items():
        reader = reader.option(name.replace("__", "."), value)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.option("subscribe", topic).load()


@pytest.mark.spec("SP-05", "SP-06", "SP-26", "SP-27", "SP-34", "ST-10")
def test_every_row_is_what_another_client_reads(
    spark: SparkSession, kafka1: KafkaCluster, topic: str
) -> None:
    assert spark.sparkContext.master == MASTER
    frame = load(spark, kafka1, topic, includeHeaders="true")
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    rows = frame.selectExpr("*", "unix_millis(timestamp) AS millis").orderBy("partition", "offset").collect()
    ours = [
        (
            r.topic,
            r.partition,
            r.offset,
            r.timestampType,
            r.millis,
            _bytes(r.key),
            _bytes(r.value),
            _headers(r.headers),
        )
        for r in rows
    ]
    assert ours == [tuple(row) for row in read_with_other_client(kafka1, topic, [0, 1])]


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _headers(value: Any) -> list[tuple[str, bytes | None]] | None:
    return None if value is None else [(header.key, _bytes(header.value)) for header in value]


@pytest.mark.spec("SP-30", "ST-10")
def test_a_schema_of_some_columns_in_another_order(
    spark: SparkSession, kafka1: KafkaCluster, topic: str
) -> None:
    frame = load(spark, kafka1, topic, schema="offset long, value binary")
    assert frame.columns == ["offset", "value"]
    assert frame.selectExpr("count(1) AS n", "max(offset) AS last").first() == (RECORDS, RECORDS // 2 - 1)


@pytest.mark.spec("SP-30")
def test_a_schema_that_kafka_cannot_give_is_refused_by_name(
    spark: SparkSession, kafka1: KafkaCluster, topic: str
) -> None:
    with pytest.raises(Exception, match="column value is binary, not string"):
        load(spark, kafka1, topic, schema="value string").count()


@pytest.mark.spec("SP-55")
def test_ranges_become_tasks(spark: SparkSession, kafka1: KafkaCluster, topic: str) -> None:
    frame = load(spark, kafka1, topic, minPartitions="6")
    tasks = (
        frame.selectExpr("spark_partition_id() AS task", "offset", "partition")
        .groupBy("task")
        .count()
        .collect()
    )
    assert len(tasks) == 6
    assert sum(task["count"] for task in tasks) == RECORDS


@pytest.mark.spec("SP-11")
def test_nothing_to_read_is_no_rows(spark: SparkSession, kafka1: KafkaCluster, topic: str) -> None:
    at = json.dumps({topic: {"0": 5, "1": 5}})
    assert load(spark, kafka1, topic, startingOffsets=at, endingOffsets=at).count() == 0


def test_offsets_bound_what_is_read(spark: SparkSession, kafka1: KafkaCluster, topic: str) -> None:
    start, end = json.dumps({topic: {"0": 10, "1": 0}}), json.dumps({topic: {"0": 12, "1": 1}})
    frame = load(spark, kafka1, topic, startingOffsets=start, endingOffsets=end)
    assert sorted((row.partition, row.offset) for row in frame.collect()) == [(0, 10), (0, 11), (1, 0)]


@pytest.mark.spec("SP-36")
def test_a_frame_sees_the_same_end_in_every_action(
    spark: SparkSession, kafka1: KafkaCluster, fresh_name: str
) -> None:
    """But for Spark 4.0, which plans each action again."""
    again = 10 if spark.version.startswith("4.0.") else 5
    make_topic(kafka1, fresh_name)
    write(kafka1, fresh_name, [Message(b"1")] * 5)
    frame = load(spark, kafka1, fresh_name)
    assert frame.count() == 5
    write(kafka1, fresh_name, [Message(b"2")] * 5)
    assert frame.count() == again
    assert load(spark, kafka1, fresh_name).count() == 10


@pytest.mark.spec("SP-17", "ST-10")
def test_limit_and_filters(spark: SparkSession, kafka1: KafkaCluster, topic: str) -> None:
    frame = load(spark, kafka1, topic)
    assert len(frame.limit(3).collect()) == 3
    assert frame.where("partition = 1 AND offset >= 100 AND offset < 110").count() == 10
    assert frame.selectExpr("sum(get_json_object(cast(value AS string), '$.n')) AS s").first().s == sum(
        range(RECORDS)
    )


@pytest.mark.spec("SP-35", "ST-10")
def test_a_temporary_view_works_and_create_table_says_why_not(
    spark: SparkSession, kafka1: KafkaCluster, topic: str
) -> None:
    given = f"OPTIONS ('kafka.bootstrap.servers' '{kafka1.bootstrap_servers}', 'subscribe' '{topic}')"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW records USING kclient {given}")
    assert spark.sql("SELECT count(*) FROM records").first()[0] == RECORDS
    with pytest.raises(Exception, match=r"one problem[\s\S]*CREATE TABLE loses options"):
        spark.sql(f"CREATE TABLE lost USING kclient {given}")


@pytest.mark.spec("SP-33", "SP-34")
def test_manual_registration_works_too(spark: SparkSession, kafka1: KafkaCluster, topic: str) -> None:
    register(spark)
    assert load(spark, kafka1, topic).count() == RECORDS


@pytest.mark.spec("SP-40", "SP-42")
def test_bad_options_fail_at_load_with_all_problems(
    spark: SparkSession, kafka1: KafkaCluster, topic: str
) -> None:
    with pytest.raises(
        Exception, match=r"2 problems[\s\S]*minPartitions='0'[\s\S]*did you mean includeHeaders"
    ):
        load(spark, kafka1, topic, minPartitions="0", includeHeader="true")


@pytest.mark.spec("SP-24", "SP-66", "ST-14")
def test_a_worker_that_is_killed_is_replaced_and_no_row_is_lost(
    spark: SparkSession, kafka1: KafkaCluster, topic: str, tmp_path: Path
) -> None:
    frame = load(spark, kafka1, topic, schema="partition int, offset long", minPartitions="4")
    marker = str(tmp_path / "killed")

    def kill_once(rows: Any) -> Iterator[Any]:
        for number, row in enumerate(rows):
            if number == 100 and not os.path.exists(marker):
                with open(marker, "w"):
                    os.kill(os.getpid(), signal.SIGKILL)
            yield row

    rows = frame.rdd.mapPartitions(kill_once).map(tuple).collect()
    assert os.path.exists(marker)
    assert sorted(rows) == [(partition, offset) for partition in range(2) for offset in range(RECORDS // 2)]


@pytest.mark.spec("SP-57")
def test_data_loss_fails_the_query_with_its_kind(
    spark: SparkSession, kafka1: KafkaCluster, topic: str
) -> None:
    beyond = json.dumps({topic: {"0": RECORDS // 2, "1": 1_000_000}})
    with pytest.raises(Exception, match=r"DataLossError.*failOnDataLoss"):
        load(spark, kafka1, topic, endingOffsets=beyond).count()
    assert load(spark, kafka1, topic, endingOffsets=beyond, failOnDataLoss="false").count() == RECORDS
