"""The table of options: defaults, values, conflicts, nearest names, and all problems in one error."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import attrs
import pytest

from kclient.errors import ConfigError
from kclient.spark.offsets import EARLIEST, LATEST
from kclient.spark.option_table import (
    OPTIONS,
    SELECTIONS,
    STREAM_LIMITS,
    Bound,
    Mode,
    Partitions,
    Pattern,
    Topics,
)
from kclient.spark.options import SourceOptions
from kclient.types import TopicPartition

BASE = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "t"}
T0 = TopicPartition("t", 0)


def parse(mode: Mode = "batch", **extra: str) -> SourceOptions:
    given = {name.replace("__", "."): value for name, value in extra.items()}
    return SourceOptions.parse({**BASE, **given}, mode)


def problems(options: dict[str, str], mode: Mode = "batch") -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        SourceOptions.parse(options, mode)
    assert all(problem in str(caught.value) for problem in caught.value.problems)
    return caught.value.problems


@pytest.mark.spec("SP-39", "ST-01")
def test_defaults_are_those_of_sparks_own_source() -> None:
    options = parse()
    assert options.selection == Topics(("t",))
    assert options.start == Bound("startingOffsets", offset=EARLIEST)
    assert options.end == Bound("endingOffsets", offset=LATEST)
    assert options.fail_on_data_loss is True
    assert options.poll_timeout_ms == 120_000
    assert (options.offset_retries, options.offset_retry_interval_ms) == (3, 1_000)
    assert options.min_partitions is options.max_records_per_partition is None
    assert options.include_headers is options.include_internal_topics is options.pushdown_filters is False
    assert (options.batch_rows, options.batch_bytes, options.read_ahead) == (10_000, 4_194_304, 1)
    assert (options.late_start, options.start_fallback) == ("error", "error")
    assert options.commit_group is options.commit_metadata is options.registry_url is None
    assert (options.key_format, options.value_format, options.bad_records) == ("raw", "raw", "fail")
    assert options.client_prefix == "spark-kafka-relation"


@pytest.mark.spec("SP-39", "ST-01")
def test_a_stream_starts_at_the_end_and_has_limits() -> None:
    options = parse("stream")
    assert options.start == Bound("startingOffsets", offset=LATEST)
    assert options.max_offsets_per_trigger is options.min_offsets_per_trigger is None
    assert options.max_trigger_delay_ms == 15 * 60 * 1000
    assert options.client_prefix == "spark-kafka-source"
    assert attrs.evolve(options, start=parse().start, mode="batch", client_prefix="x") == attrs.evolve(
        parse(), client_prefix="x"
    )


class Case(NamedTuple):
    """An option with a text that is fine, the field that it fills, and what else it needs."""

    name: str
    raw: str
    field: str
    value: Any
    beside: Mapping[str, str] = MappingProxyType({})
    modes: tuple[Mode, ...] = ("batch", "stream")


BATCH: tuple[Mode, ...] = ("batch",)
STREAM: tuple[Mode, ...] = ("stream",)
REGISTRY = {"schema.registry.url": "https://registry:8081", "valueFormat": "avro"}
LABEL = {"kafka.group.id": "g"}

VALID: list[Case] = [
    Case("failOnDataLoss", "FALSE", "fail_on_data_loss", False),
    Case("kafkaConsumer.pollTimeoutMs", "5000", "poll_timeout_ms", 5000),
    Case("fetchOffset.numRetries", "0", "offset_retries", 0),
    Case("fetchOffset.retryIntervalMs", "10", "offset_retry_interval_ms", 10),
    Case("maxOffsetsPerTrigger", "5000000000", "max_offsets_per_trigger", 5_000_000_000, modes=STREAM),
    Case("minOffsetsPerTrigger", "7", "min_offsets_per_trigger", 7, modes=STREAM),
    Case("maxTriggerDelay", "10s", "max_trigger_delay_ms", 10_000, modes=STREAM),
    Case("minPartitions", "8", "min_partitions", 8),
    Case("maxRecordsPerPartition", "1000", "max_records_per_partition", 1000),
    Case("groupIdPrefix", "me", "client_prefix", "me"),
    Case("includeHeaders", "true", "include_headers", True),
    Case("includeInternalTopics", "true", "include_internal_topics", True),
    Case("maxElementsPerValue", "5000", "max_elements", 5_000),
    Case("arrow.batch.rows", "500", "batch_rows", 500),
    Case("arrow.batch.bytes", "65536", "batch_bytes", 65_536),
    Case("fetch.readAhead", "0", "read_ahead", 0),
    Case("fetch.readAhead", "4", "read_ahead", 4),
    Case("pushdownFilters", "true", "pushdown_filters", True, modes=BATCH),
    Case("startingOffsetsByTimestampStrategy", "Latest", "late_start", "latest"),
    Case("startingOffsets.fallback", "earliest", "start_fallback", "earliest"),
    Case("startingOffsets.fallback", "latest", "start_fallback", "latest"),
    Case("startingOffsets", "Earliest", "start", Bound("startingOffsets", offset=EARLIEST)),
    Case("startingOffsets", "LATEST", "start", Bound("startingOffsets", offset=LATEST), modes=STREAM),
    Case("startingOffsets", "group", "start", Bound("startingOffsets", group=True), LABEL),
    Case("startingOffsets", '{"t": {"0": -2}}', "start", Bound("startingOffsets", offsets={T0: EARLIEST})),
    Case(
        "startingOffsets",
        '{"t": {"0": -1}}',
        "start",
        Bound("startingOffsets", offsets={T0: LATEST}),
        modes=STREAM,
    ),
    Case("startingTimestamp", "5", "start", Bound("startingTimestamp", timestamp=5)),
    Case(
        "startingOffsetsByTimestamp",
        '{"t": {"0": 7}}',
        "start",
        Bound("startingOffsetsByTimestamp", timestamps={T0: 7}),
    ),
    Case("endingOffsets", "latest", "end", Bound("endingOffsets", offset=LATEST), modes=BATCH),
    Case(
        "endingOffsets",
        '{"t": {"0": -1}}',
        "end",
        Bound("endingOffsets", offsets={T0: LATEST}),
        modes=BATCH,
    ),
    Case("endingTimestamp", "9", "end", Bound("endingTimestamp", timestamp=9), modes=BATCH),
    Case(
        "endingOffsetsByTimestamp",
        '{"t": {"0": 7}}',
        "end",
        Bound("endingOffsetsByTimestamp", timestamps={T0: 7}),
        modes=BATCH,
    ),
    Case("commit.group.id", "lake", "commit_group", "lake", modes=STREAM),
    Case("commit.group.id", "lake", "group", "lake", {"startingOffsets": "group"}),
    Case("commitOffsets", "true", "commit_group", "g", LABEL, STREAM),
    Case("commit.metadata", "é" * 2048, "commit_metadata", "é" * 2048, {"commit.group.id": "g"}, STREAM),
    Case("keyFormat", "String", "key_format", "string"),
    Case("valueFormat", "json", "value_format", "json", {"valueSchema": "a int"}),
    Case("keySchema", "a int", "key_schema", "a int", {"keyFormat": "protobuf"}),
    Case("valueSchema", "a int", "value_schema", "a int", {"valueFormat": "avro"}),
    Case("schema.registry.url", "https://r:1/", "registry_url", "https://r:1", {"valueFormat": "avro"}),
    Case(
        "schema.registry.allowHttp",
        "true",
        "registry_url",
        "http://r:1",
        {"schema.registry.url": "http://r:1", "keyFormat": "json"},
    ),
    Case("schema.registry.auth", "u:p", "registry_auth", "u:p", REGISTRY),
    Case("schema.registry.auth.env", "NAME", "registry_auth_reference", "_env", REGISTRY),
    Case("schema.registry.auth.file", "/f", "registry_auth_reference", "_file", REGISTRY),
    Case("badRecords", "Column", "bad_records", "column", {"valueFormat": "string"}),
]


@pytest.mark.spec("SP-39", "ST-01")
@pytest.mark.parametrize("change_case", [str, str.lower, str.upper])
@pytest.mark.parametrize("case", VALID, ids=lambda case: f"{case.name}={case.raw[:20]}")
def test_an_option_is_taken_in_any_case(case: Case, change_case: Any) -> None:
    given = {**BASE, **case.beside, change_case(case.name): case.raw}
    for mode in case.modes:
        assert getattr(SourceOptions.parse(given, mode), case.field) == case.value


INVALID = [
    ("failOnDataLoss", "maybe"),
    ("kafkaConsumer.pollTimeoutMs", "0"),
    ("fetchOffset.numRetries", "-1"),
    ("fetchOffset.retryIntervalMs", "1.5"),
    ("minPartitions", "0"),
    ("maxRecordsPerPartition", "none"),
    ("includeHeaders", "1"),
    ("includeInternalTopics", ""),
    ("arrow.batch.rows", "1000001"),
    ("maxElementsPerValue", "0"),
    ("arrow.batch.bytes", "1"),
    ("fetch.readAhead", "5"),
    ("groupIdPrefix", " "),
    ("startingOffsetsByTimestampStrategy", "earliest"),
    ("startingOffsets.fallback", "none"),
    ("startingOffsets", "5"),
    ("startingOffsets", '{"t": {"0": -3}}'),
    ("startingTimestamp", "-1"),
    ("startingOffsetsByTimestamp", '{"t": {"0": -1}}'),
    ("commit.group.id", ""),
    ("commitOffsets", "yes"),
    ("keyFormat", "xml"),
    ("valueFormat", "thrift"),
    ("keySchema", " "),
    ("valueSchema", ""),
    ("schema.registry.url", "registry:8081"),
    ("schema.registry.url", "https://[::1"),
    ("schema.registry.allowHttp", "please"),
    ("badRecords", "drop"),
]
INVALID_IN_BATCH = [
    ("startingOffsets", "latest"),
    ("startingOffsets", '{"t": {"0": -1}}'),
    ("endingOffsets", "earliest"),
    ("endingOffsets", '{"t": {"0": -2}}'),
    ("endingTimestamp", "soon"),
    ("endingOffsetsByTimestamp", "{}"),
    ("pushdownFilters", "on"),
]
INVALID_IN_STREAM = [
    ("maxOffsetsPerTrigger", "0"),
    ("minOffsetsPerTrigger", "-5"),
    ("maxTriggerDelay", "soon"),
    ("maxTriggerDelay", "5 weeks"),
    ("maxTriggerDelay", "-1s"),
    ("maxTriggerDelay", "1.5s"),
    ("commit.metadata", "é" * 2049),
]


@pytest.mark.spec("ST-01", "SP-42")
@pytest.mark.parametrize(
    ("mode", "name", "raw"),
    [(mode, *case) for mode in ("batch", "stream") for case in INVALID]
    + [("batch", *case) for case in INVALID_IN_BATCH]
    + [("stream", *case) for case in INVALID_IN_STREAM],
)
def test_a_bad_value_is_reported_with_its_option(mode: Mode, name: str, raw: str) -> None:
    (problem,) = problems({**BASE, name: raw}, mode)
    assert problem.startswith(f"{name}={raw[:80]!r}")


@pytest.mark.spec("ST-01")
def test_every_option_has_a_valid_case_here() -> None:
    assert {case.name for case in VALID} | set(SELECTIONS) == set(OPTIONS)


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_is_documented(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "spark-options.md").read_text("utf-8")
    known = name.removesuffix(".env").removesuffix(".file")
    assert f"`{known}`" in page


@pytest.mark.spec("ST-01")
@pytest.mark.parametrize("name", [case.name for case in VALID if case.modes == BATCH])
def test_an_option_of_batches_is_an_error_in_a_stream(name: str) -> None:
    case = next(case for case in VALID if case.name == name and case.modes == BATCH)
    (problem,) = problems({**BASE, name: case.raw}, "stream")
    assert problem.startswith(f"{name} is for batches")
    if name.startswith("ending"):
        assert "a stream has no end, so filter by the column timestamp or read a batch" in problem


@pytest.mark.spec("ST-01")
@pytest.mark.parametrize(
    ("mode", "given", "message"),
    [
        ("stream", {"minOffsetsPerTrigger": "6", "maxOffsetsPerTrigger": "5"}, "must not be larger"),
        ("stream", {"startingOffsets": "group"}, "needs a group"),
        ("batch", {"startingOffsets": "group"}, "needs a group"),
        ("stream", {"commitOffsets": "true"}, "needs kafka.group.id"),
        ("stream", {"commitOffsets": "true", "commit.group.id": "a", **LABEL}, "keep one group"),
        ("batch", {"commitOffsets": "true", **LABEL}, "a batch commits nothing"),
        ("batch", {"commit.group.id": "a"}, "a batch commits nothing"),
        ("batch", {"commit.metadata": "a"}, "a batch commits nothing"),
        ("stream", {"commit.metadata": "a"}, "needs commit.group.id"),
        ("stream", {"commit.metadata": "a", **LABEL}, "needs commit.group.id"),
        ("batch", {"valueFormat": "avro"}, "needs valueSchema or schema.registry.url"),
        ("batch", {"keyFormat": "json"}, "needs keySchema or schema.registry.url"),
        ("batch", {"keyFormat": "string", "keySchema": "a int"}, "keySchema would do nothing"),
        ("batch", {"valueSchema": "a int"}, "valueSchema would do nothing"),
        ("batch", {"schema.registry.url": "https://r"}, "would do nothing"),
        ("batch", {**REGISTRY, "schema.registry.url": "http://r"}, "set schema.registry.allowHttp=true"),
        ("batch", {"schema.registry.auth": "u:tell-nobody"}, "needs schema.registry.url"),
        ("batch", {**REGISTRY, "schema.registry.auth": "a", "schema.registry.auth.env": "A"}, "keep one"),
        ("batch", {"badRecords": "null"}, "badRecords would do nothing"),
    ],
)
def test_options_that_need_or_exclude_each_other(mode: Mode, given: dict[str, str], message: str) -> None:
    (problem,) = problems({**BASE, **given}, mode)
    assert message in problem
    assert "tell-nobody" not in problem


@pytest.mark.spec("ST-01")
@pytest.mark.parametrize(
    ("raw", "milliseconds"),
    [
        ("15m", 900_000),
        ("15min", 900_000),
        ("10s", 10_000),
        ("500ms", 500),
        ("2h", 7_200_000),
        ("1d", 86_400_000),
        ("2500us", 2),
        (" 10S ", 10_000),
        ("250", 250),
    ],
)
def test_durations_are_written_as_in_spark(raw: str, milliseconds: int) -> None:
    assert parse("stream", maxTriggerDelay=raw).max_trigger_delay_ms == milliseconds


@pytest.mark.spec("ST-01")
def test_the_group_of_the_label_is_only_committed_to_when_requested() -> None:
    assert parse("stream", kafka__group__id="g").commit_group is None
    assert parse("stream", kafka__group__id="g", commitOffsets="false").commit_group is None
    assert parse("stream", kafka__group__id="g", commitOffsets="true").commit_group == "g"
    assert parse("stream", commit__group__id="h", kafka__group__id="g").commit_group == "h"
    assert parse("stream", commit__group__id="h", commitOffsets="true").commit_group == "h"


@pytest.mark.spec("SP-42", "ST-01")
def test_all_problems_come_in_one_error() -> None:
    found = problems(
        {"minPartitions": "0", "subscrib": "t", "kafka.fetch.max.wait.ms": "x", "failOnDataLoss": "?"}
    )
    text = "\n".join(found)
    assert len(found) == 6
    for word in (
        "minPartitions",
        "subscribe?",
        "exactly one",
        "bootstrap.servers",
        "fetch_max_wait_ms",
        "failOnDataLoss",
    ):
        assert word in text


@pytest.mark.parametrize(
    "selection",
    [
        {},
        {"subscribe": "a", "assign": '{"a": [0]}'},
        {"subscribe": "a", "subscribePattern": "a"},
        {"subscribe": " , "},
    ],
)
def test_exactly_one_selection(selection: dict[str, str]) -> None:
    assert problems({"kafka.bootstrap.servers": "h:1", **selection})


def test_the_three_ways_to_select() -> None:
    servers = {"kafka.bootstrap.servers": "h:1"}
    assert SourceOptions.parse({**servers, "subscribe": "b, a,b"}).selection == Topics(("b", "a"))
    assert SourceOptions.parse({**servers, "subscribePattern": "o.*s"}).selection == Pattern("o.*s")
    assigned = SourceOptions.parse({**servers, "assign": '{"a": [1, 0]}'}).selection
    assert assigned == Partitions((TopicPartition("a", 0), TopicPartition("a", 1)))


@pytest.mark.spec("SP-40")
@pytest.mark.parametrize(
    ("name", "nearest"),
    [("minPartition", "minPartitions"), ("startingoffset", "startingOffsets"), ("zzz", "kafka.")],
)
def test_an_unknown_option_is_an_error_with_the_nearest_name(name: str, nearest: str) -> None:
    (problem,) = problems({**BASE, name: "1"})
    assert problem.startswith(f"{name} is unknown")
    assert nearest in problem


@pytest.mark.spec("SP-40")
def test_a_path_is_answered_with_subscribe() -> None:
    found = problems({"kafka.bootstrap.servers": "h:1", "path": "orders"})
    assert any("option('subscribe', 'orders')" in problem for problem in found)


@pytest.mark.spec("SP-35")
def test_an_error_about_missing_servers_mentions_create_table() -> None:
    (problem,) = problems({"subscribe": "t"})
    assert "CREATE TABLE loses options" in problem
    assert "CREATE TEMPORARY VIEW" in problem


@pytest.mark.spec("SP-35")
def test_the_properties_of_a_table_are_answered_with_a_view() -> None:
    (problem,) = problems({"provider": "kclient", "owner": "me", "option.subscribe": "t"})
    assert "CREATE TEMPORARY VIEW" in problem


@pytest.mark.spec("SP-41")
@pytest.mark.parametrize(
    ("key", "instead"),
    [
        ("auto.offset.reset", "startingOffsets"),
        ("key.deserializer", "key"),
        ("value.deserializer", "value"),
        ("enable.auto.commit", "commit.group.id"),
        ("interceptor.classes", "DataFrame"),
    ],
)
def test_kafka_keys_that_the_source_decides_are_refused(key: str, instead: str) -> None:
    (problem,) = problems({**BASE, f"kafka.{key}": "earliest"})
    assert f"kafka.{key}" in problem
    assert instead in problem


@pytest.mark.spec("SP-40")
def test_kafka_keys_go_through_the_clients_own_rules() -> None:
    assert parse(kafka__isolation__level="read_committed").config("x").isolation_level == "read_committed"
    (problem,) = problems({**BASE, "kafka.isolation.levels": "read_committed"})
    assert problem.startswith("kafka.isolation")
    assert "isolation_level?" in problem
    (problem,) = problems({**BASE, "kafka.sasl.mechanism": "PLAIN"})
    assert "write security_protocol=SASL_SSL" in problem


SASL_SSL = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "SCRAM-SHA-512",
    "kafka.sasl.jaas.config": "kafkashaded.org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="alice" password="tell-nobody";',
}


@pytest.mark.spec("SP-45", "I-39")
def test_a_secret_is_not_shown() -> None:
    found = problems(
        {**BASE, "kafka.sasl.jaas.config": "password='tell-nobody'", "kafka.sasl.password": "tell-nobody"}
    )
    assert "tell-nobody" not in "\n".join(found)
    assert "tell-nobody" not in repr(SourceOptions.parse({**BASE, **SASL_SSL}))


@pytest.mark.spec("SP-43", "SP-44")
def test_the_options_of_a_connection_with_sasl_travel_to_a_worker_which_makes_the_secret() -> None:
    options = pickle.loads(pickle.dumps(SourceOptions.parse({**BASE, **SASL_SSL})))
    config = options.config("executor")
    assert (config.security_protocol, config.sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-512")
    assert "tell-nobody" in config.sasl_jaas_config.reveal()
    assert "tell-nobody" not in repr(config)


def test_the_client_reads_large_fetches_and_creates_no_topic() -> None:
    config = parse().config("executor")
    assert config.max_partition_fetch_bytes == 8_000_000
    assert config.receive_buffer_bytes == -1
    assert config.allow_auto_create_topics is False
    assert config.client_id == "spark-kafka-relation-executor"
    assert parse(groupIdPrefix="me").config("driver").client_id == "me-driver"
    assert parse(kafka__group__id="label").config("driver").client_id == "label"
    assert parse(kafka__max__partition__fetch__bytes="5").config("x").max_partition_fetch_bytes == 5


@pytest.mark.spec("ST-01")
@pytest.mark.parametrize("name", STREAM_LIMITS)
def test_limits_of_streams_are_ignored_in_a_batch_with_a_warning(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        assert SourceOptions.parse({**BASE, name.lower(): "5"}) == parse()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert name in caplog.text


@pytest.mark.parametrize(
    "name", ["spark.kafka.consumer.cache.capacity", "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"]
)
def test_settings_of_the_other_source_are_recognized(name: str) -> None:
    (problem,) = problems({**BASE, name: "1"})
    assert "Spark's own Kafka source" in problem


def test_timestamps_beat_offsets() -> None:
    options = parse(
        startingOffsets="earliest", startingOffsetsByTimestamp='{"t": {"0": 7}}', startingTimestamp="5"
    )
    assert options.start == Bound("startingTimestamp", timestamp=5)


def test_start_and_end_must_agree() -> None:
    assert problems({**BASE, "startingOffsets": '{"t": {"0": 5}}', "endingOffsets": '{"t": {"1": 9}}'})
    assert problems({**BASE, "startingOffsets": '{"t": {"0": 5}}', "endingOffsets": '{"t": {"0": 4}}'})
    parse(startingOffsets='{"t": {"0": 5}}', endingOffsets='{"t": {"0": -1}}')
    assigned = {"kafka.bootstrap.servers": "h:1", "assign": '{"t": [0, 1]}'}
    assert problems({**assigned, "startingOffsets": '{"t": {"0": 5}}'})


@pytest.mark.spec("SP-12", "SP-14")
def test_options_pickle() -> None:
    options = parse(startingOffsets='{"t": {"0": 5}}', minPartitions="3")
    assert pickle.loads(pickle.dumps(options)) == options
