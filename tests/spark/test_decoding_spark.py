"""Decoded columns as Spark gets them, from a real Kafka: one schema on both sides, and what became of bad records."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kclient.spark import register
from localkafka import KafkaCluster
from tests.spark.conftest import Message, make_topic, write
from tests.spark.decoder_support import decoder
from tests.spark.test_decoding_avro import FLIGHT, FLOWN, SPARK, by_apache
from tests.spark.test_decoding_protobuf import filled, flights, written_to

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.timeout(600)]

JSON = "carrier STRING, flight INT, at TIMESTAMP, legs ARRAY<STRUCT<`to`: STRING, miles: DECIMAL(8,1)>>"

CONNECTOR = re.compile(r"spark-(avro|protobuf|(sql|streaming|token-provider)-kafka)")


def load(spark: SparkSession, kafka: KafkaCluster, topic: str, **options: str) -> DataFrame:
    register(spark)
    reader = spark.read.format("kclient").option("kafka.bootstrap.servers", kafka.bootstrap_servers)
    return reader.option("subscribe", topic).options(**options).load()


@pytest.mark.spec("SP-04", "SP-27", "SP-75", "SP-76")
def test_spark_reads_json(spark: SparkSession, kafka1: KafkaCluster, fresh_name: str) -> None:
    import pyspark
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_schema

    jars = Path(pyspark.__file__).parent.joinpath("jars").iterdir()
    assert [jar.name for jar in jars if CONNECTOR.match(jar.name)] == []
    assert spark.conf.get("spark.jars", "") == ""
    documents: list[dict[str, Any]] = [
        {"carrier": "UA", "flight": n, "at": "2013-01-01T10:00:00Z"} for n in range(3000)
    ]
    documents[7]["legs"] = [{"to": "IAH", "miles": 1400.5}]
    make_topic(kafka1, fresh_name)
    values = [json.dumps(document).encode() for document in documents]
    write(kafka1, fresh_name, [Message(value) for value in [*values, b"oops", None]])
    options = {"valueFormat": "json", "valueSchema": JSON, "badRecords": "column"}
    frame = load(spark, kafka1, fresh_name, **options)
    made = decoder(**options)
    assert to_arrow_schema(frame.schema, timezone="UTC").equals(made.arrow_schema(frame.columns))
    frame.createOrReplaceTempView("decoded")
    query = (
        "SELECT count(*), sum(value.flight), max(value.legs[0].miles), count(_error), max(_raw) FROM decoded"
    )
    (row,) = spark.sql(query).collect()
    assert [str(row[2]), *row[:2], row[3], bytes(row[4])] == ["1400.5", 3002, sum(range(3000)), 1, b"oops"]
    narrow = spark.read.format("kclient").schema(f"_error STRING, value {made.types['value']}")
    narrow = narrow.option("kafka.bootstrap.servers", kafka1.bootstrap_servers).option(
        "subscribe", fresh_name
    )
    assert (
        narrow.options(**options).load().where("value.flight = 7").first()["value"]["legs"][0]["to"] == "IAH"
    )
    with pytest.raises(
        PySparkException, match=f"{fresh_name}-0 at offset 3000: the value cannot be read as json"
    ):
        load(spark, kafka1, fresh_name, **options | {"badRecords": "fail"}).count()


@pytest.mark.spec("SP-75")
def test_spark_reads_avro(spark: SparkSession, kafka1: KafkaCluster, fresh_name: str) -> None:
    make_topic(kafka1, fresh_name)
    write(kafka1, fresh_name, [Message(by_apache(FLIGHT, FLOWN), key="é".encode())])
    avro = load(
        spark, kafka1, fresh_name, valueFormat="avro", valueSchema=json.dumps(FLIGHT), keyFormat="string"
    )
    assert avro.schema["value"].dataType.simpleString() == SPARK
    avro.createOrReplaceTempView("avro")
    query = (
        "SELECT key, value.flight, value.seats, value.fare, unix_micros(value.us), value.legs[0].by FROM avro"
    )
    assert tuple(spark.sql(query).first()) == ("é", FLOWN["flight"], FLOWN["seats"], FLOWN["fare"], -1, "AA")


@pytest.mark.spec("SP-27", "SP-75", "SP-76")
def test_spark_reads_protobuf(
    spark: SparkSession, kafka1: KafkaCluster, fresh_name: str, tmp_path: Path
) -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    make_topic(kafka1, fresh_name)
    write(kafka1, fresh_name, [Message(filled().SerializeToString()), Message(b"\x08")])
    schema = written_to(tmp_path, flights(), "nyc.Flight")
    options = {"valueFormat": "protobuf", "valueSchema": schema, "badRecords": "column"}
    protobuf = load(spark, kafka1, fresh_name, **options)
    assert to_arrow_schema(protobuf.schema, timezone="UTC").equals(
        decoder(**options).arrow_schema(protobuf.columns)
    )
    protobuf.createOrReplaceTempView("protobuf")
    query = (
        "SELECT value.f_uint64, unix_micros(value.at), value.legs[1].to, value.seats['1A'], value.by_row[3].by, _error "
        "FROM protobuf ORDER BY offset"
    )
    first, second = spark.sql(query).collect()
    assert tuple(first) == (2**64 - 1, -1, "SFO", 1, "NONE", None)
    assert tuple(second) == (*[None] * 5, "value: protobuf: it is not a nyc.Flight")
