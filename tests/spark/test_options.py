"""The table of options: defaults, values, conflicts, nearest names, and all problems in one error."""

from __future__ import annotations

import logging
import pickle
from typing import Any

import pytest

from kclient.errors import ConfigError
from kclient.spark.choices import Bound, Partitions, Pattern, Topics
from kclient.spark.offsets import EARLIEST, LATEST
from kclient.spark.options import RULES, SourceOptions
from kclient.spark.unsupported import LATER
from kclient.types import TopicPartition

BASE = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "t"}
T0 = TopicPartition("t", 0)


def parse(**extra: str) -> SourceOptions:
    return SourceOptions.parse({**BASE, **{name.replace("__", "."): value for name, value in extra.items()}})


def problems(options: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        SourceOptions.parse(options)
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
    assert options.include_headers is False
    assert (options.batch_rows, options.batch_bytes, options.read_ahead) == (10_000, 4_194_304, 1)


VALID: list[tuple[str, str, str, Any]] = [
    ("failOnDataLoss", "FALSE", "fail_on_data_loss", False),
    ("kafkaConsumer.pollTimeoutMs", "5000", "poll_timeout_ms", 5000),
    ("fetchOffset.numRetries", "0", "offset_retries", 0),
    ("fetchOffset.retryIntervalMs", "10", "offset_retry_interval_ms", 10),
    ("minPartitions", "8", "min_partitions", 8),
    ("maxRecordsPerPartition", "1000", "max_records_per_partition", 1000),
    ("groupIdPrefix", "me", "client_prefix", "me"),
    ("includeHeaders", "true", "include_headers", True),
    ("includeInternalTopics", "true", "include_internal_topics", True),
    ("arrow.batch.rows", "500", "batch_rows", 500),
    ("arrow.batch.bytes", "65536", "batch_bytes", 65_536),
    ("fetch.readAhead", "0", "read_ahead", 0),
    ("startingOffsetsByTimestampStrategy", "Latest", "late_start", "latest"),
    ("startingOffsets.fallback", "earliest", "start_fallback", "earliest"),
    ("startingOffsets", "Earliest", "start", Bound("startingOffsets", offset=EARLIEST)),
    ("startingOffsets", '{"t": {"0": -2}}', "start", Bound("startingOffsets", offsets={T0: EARLIEST})),
    ("startingTimestamp", "5", "start", Bound("startingTimestamp", timestamp=5)),
    (
        "startingOffsetsByTimestamp",
        '{"t": {"0": 7}}',
        "start",
        Bound("startingOffsetsByTimestamp", timestamps={T0: 7}),
    ),
    ("endingOffsets", '{"t": {"0": -1}}', "end", Bound("endingOffsets", offsets={T0: LATEST})),
    ("endingTimestamp", "9", "end", Bound("endingTimestamp", timestamp=9)),
    (
        "endingOffsetsByTimestamp",
        '{"t": {"0": 7}}',
        "end",
        Bound("endingOffsetsByTimestamp", timestamps={T0: 7}),
    ),
]


@pytest.mark.spec("SP-39", "ST-01")
@pytest.mark.parametrize("change_case", [str, str.lower, str.upper])
@pytest.mark.parametrize(("name", "raw", "field", "value"), VALID)
def test_an_option_is_taken_in_any_case(
    name: str, raw: str, field: str, value: Any, change_case: Any
) -> None:
    assert getattr(SourceOptions.parse({**BASE, change_case(name): raw}), field) == value


INVALID = [
    ("failOnDataLoss", "maybe"),
    ("kafkaConsumer.pollTimeoutMs", "0"),
    ("fetchOffset.numRetries", "-1"),
    ("minPartitions", "0"),
    ("maxRecordsPerPartition", "none"),
    ("arrow.batch.rows", "1000001"),
    ("arrow.batch.bytes", "1"),
    ("fetch.readAhead", "2"),
    ("groupIdPrefix", " "),
    ("startingOffsetsByTimestampStrategy", "earliest"),
    ("startingOffsets.fallback", "latest"),
    ("startingOffsets", "latest"),
    ("startingOffsets", "group"),
    ("startingOffsets", "5"),
    ("startingOffsets", '{"t": {"0": -1}}'),
    ("startingTimestamp", "-1"),
    ("endingOffsets", "earliest"),
    ("endingOffsets", '{"t": {"0": -2}}'),
]


@pytest.mark.spec("ST-01", "SP-42")
@pytest.mark.parametrize(("name", "raw"), INVALID)
def test_a_bad_value_is_told_with_its_option(name: str, raw: str) -> None:
    (problem,) = problems({**BASE, name: raw})
    assert problem.startswith(f"{name}={raw!r} ")


@pytest.mark.spec("ST-01")
def test_every_option_has_a_valid_case_here() -> None:
    covered = {name for name, *_ in VALID} | {"subscribe", "subscribePattern", "assign"}
    assert covered == set(RULES)


@pytest.mark.spec("SP-42", "ST-01")
def test_all_problems_come_in_one_error() -> None:
    found = problems(
        {"minPartitions": "0", "subscrib": "t", "kafka.fetch.max.wait.ms": "x", "failOnDataLoss": "?"}
    )
    told = "\n".join(found)
    assert len(found) == 6
    for word in (
        "minPartitions",
        "subscribe?",
        "exactly one",
        "bootstrap.servers",
        "fetch_max_wait_ms",
        "failOnDataLoss",
    ):
        assert word in told


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
    told = problems({"kafka.bootstrap.servers": "h:1", "path": "orders"})
    assert any("option('subscribe', 'orders')" in problem for problem in told)


@pytest.mark.spec("SP-35")
def test_missing_servers_speak_of_create_table() -> None:
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
        ("enable.auto.commit", "commits nothing"),
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
    told = problems(
        {**BASE, "kafka.sasl.jaas.config": "password='tell-nobody'", "kafka.sasl.password": "tell-nobody"}
    )
    assert "tell-nobody" not in "\n".join(told)
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
    assert config.max_partition_fetch_bytes == 8 * 1024 * 1024
    assert config.receive_buffer_bytes == -1
    assert config.allow_auto_create_topics is False
    assert config.client_id == "spark-kafka-relation-executor"
    assert parse(groupIdPrefix="me").config("driver").client_id == "me-driver"
    assert parse(kafka__group__id="label").config("driver").client_id == "label"
    assert parse(kafka__max__partition__fetch__bytes="5").config("x").max_partition_fetch_bytes == 5


@pytest.mark.parametrize("name", sorted(LATER))
def test_what_is_not_built_yet_is_refused_with_what_to_use(name: str) -> None:
    (problem,) = problems({**BASE, name: "something"})
    assert problem == f"{name} is not built yet: {LATER[name].instead}"
    for harmless in LATER[name].harmless:
        assert SourceOptions.parse({**BASE, name: harmless}) == parse()


@pytest.mark.spec("ST-01")
@pytest.mark.parametrize("name", ["maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"])
def test_limits_of_streams_are_ignored_with_a_warning(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        assert SourceOptions.parse({**BASE, name.lower(): "5"}) == parse()
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize(
    "name", ["spark.kafka.consumer.cache.capacity", "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"]
)
def test_settings_of_the_other_source_are_told_apart(name: str) -> None:
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
