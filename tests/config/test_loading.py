"""One Config from keyword arguments, a mapping and a Java properties file, and every problem at once."""

from __future__ import annotations

import json
import logging
import pickle
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from kclient.config import load
from kclient.config.model import keys, rules
from kclient.config.refused import REFUSED
from kclient.config.spellings import OTHER_SPELLINGS
from kclient.errors import ConfigError
from tools import write_settings

HERE = {"bootstrap_servers": "localhost:9092"}


def problems_of(arguments: dict[str, Any], **sources: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        load(arguments, **sources)
    return caught.value.problems


@pytest.mark.spec("B.1.1")
def test_defaults_are_kafkas_own() -> None:
    config = load(HERE)
    assert (config.session_timeout_ms, config.heartbeat_interval_ms) == (45_000, 3_000)
    assert (config.max_poll_interval_ms, config.max_poll_records) == (300_000, 500)
    assert (config.fetch_max_bytes, config.max_partition_fetch_bytes) == (52_428_800, 1_048_576)
    assert (config.fetch_min_bytes, config.fetch_max_wait_ms) == (1, 500)
    assert (config.request_timeout_ms, config.default_api_timeout_ms) == (30_000, 60_000)
    assert (config.retry_backoff_ms, config.retry_backoff_max_ms) == (100, 1_000)
    assert config.partition_assignment_strategy == ("range", "cooperative-sticky")
    assert config.auto_offset_reset is None
    assert config.isolation_level == "read_uncommitted"
    assert (config.key_deserializer, config.value_deserializer) == (None, None)


def test_the_system_sizes_the_receive_buffer_by_default() -> None:
    assert load(HERE).receive_buffer_bytes == -1
    assert load({**HERE, "receive_buffer_bytes": 65_536}).receive_buffer_bytes == 65_536


@pytest.mark.spec("U-23")
def test_dotted_and_underscored_names_in_every_source(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=a:1,b:2\nmax_poll_records=7\ncheck.crcs=FALSE\n")
    config = load(
        {"fetch.min.bytes": 3}, config={"client.rack": " r1 ", "fetch_max_bytes": "9"}, properties=file
    )
    assert config.bootstrap_servers == ("a:1", "b:2")
    assert (config.max_poll_records, config.check_crcs) == (7, False)
    assert (config.client_rack, config.fetch_max_bytes, config.fetch_min_bytes) == ("r1", 9, 3)


@pytest.mark.spec("U-23")
def test_arguments_win_over_the_mapping_and_the_mapping_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\nclient.id=file\nmax.poll.records=1\n")
    config = load(
        {"client_id": "argument"}, config={"client.id": "mapping", "max.poll.records": 2}, properties=file
    )
    assert (config.bootstrap_servers, config.client_id, config.max_poll_records) == (
        ("file:1",),
        "argument",
        2,
    )


@pytest.mark.spec("U-23")
def test_the_same_key_twice_in_one_source_is_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=a:1\nclient.id=x\n\nclient_id=y\n")
    (problem,) = problems_of({}, properties=file)
    assert (
        problem
        == "client_id is set twice (client.properties, line 2 and client.properties, line 4); keep one"
    )
    (problem,) = problems_of(HERE, config={"client.id": "x", "client_id": "x"})
    assert "client_id is set twice" in problem


def test_every_problem_is_reported_at_once() -> None:
    problems = problems_of(
        {
            "bootstrap_servers": "localhost",
            "max_poll_records": 0,
            "check_crcs": "perhaps",
            "max_pol_interval_ms": 1,
            "enable_metrics_push": True,
        }
    )
    assert len(problems) == 5
    assert any("did you mean max_poll_interval_ms?" in problem for problem in problems)


def test_without_bootstrap_servers_nothing_starts() -> None:
    assert problems_of({}) == ("bootstrap_servers is missing: name at least one host:port",)


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        ("a:1", ("a:1",)),
        (" a:1 , b:2 ", ("a:1", "b:2")),
        (["a:1", "b:2"], ("a:1", "b:2")),
        ("[::1]:9092,[fe80::1%eth0]:9093", ("[::1]:9092", "[fe80::1%eth0]:9093")),
    ],
)
def test_addresses(servers: Any, expected: tuple[str, ...]) -> None:
    assert load({"bootstrap_servers": servers}).bootstrap_servers == expected


@pytest.mark.parametrize(
    "servers", ["", [], "a", "a:", ":1", "a:0", "a:65536", "a:x", "::1:9092", "a:1,a:1", 7, b"a:1"]
)
def test_addresses_that_cannot_be(servers: Any) -> None:
    (problem,) = problems_of({"bootstrap_servers": servers})
    assert problem.startswith("bootstrap_servers=")


@pytest.mark.spec("S3-01", "S3-02", "S3-03", "S3-04")
def test_auto_commit_needs_a_group() -> None:
    assert load(HERE).enable_auto_commit is False
    assert load({**HERE, "enable_auto_commit": False}).enable_auto_commit is False
    assert load({**HERE, "group_id": "g"}).enable_auto_commit is True
    assert load({**HERE, "group_id": "g", "enable_auto_commit": "false"}).enable_auto_commit is False
    (problem,) = problems_of({**HERE, "enable_auto_commit": True})
    assert problem.startswith("enable_auto_commit=True needs group_id")


@pytest.mark.spec("S3-04")
@pytest.mark.parametrize("group", ["", "  "])
def test_a_blank_group_id_is_refused(group: str) -> None:
    (problem,) = problems_of({**HERE, "group_id": group})
    assert problem.startswith("group_id=")


@pytest.mark.spec("S3-05")
def test_the_auto_commit_interval_may_be_zero_but_not_less() -> None:
    assert load({**HERE, "auto_commit_interval_ms": 0}).auto_commit_interval_ms == 0
    assert load(HERE).auto_commit_interval_ms == 5_000
    assert problems_of({**HERE, "auto_commit_interval_ms": -1})


def test_heartbeats_must_come_more_often_than_the_session_ends() -> None:
    (problem,) = problems_of({**HERE, "session_timeout_ms": 3_000})
    assert "heartbeat_interval_ms (3000) must be smaller than session_timeout_ms (3000)" in problem


@pytest.mark.parametrize("reset", ["earliest", "latest", "none", "by_duration:PT1H", "by_duration:P7DT1.5S"])
def test_reset_policies(reset: str) -> None:
    assert load({**HERE, "auto_offset_reset": reset}).auto_offset_reset == reset


@pytest.mark.parametrize(
    "reset", ["smallest", "newest", "by_duration", "by_duration:", "by_duration:-PT1H", "by_duration:P"]
)
def test_reset_policies_that_cannot_be(reset: str) -> None:
    assert len(problems_of({**HERE, "auto_offset_reset": reset})) == 1


def test_a_backoff_without_its_maximum_is_constant() -> None:
    config = load({**HERE, "reconnect_backoff_ms": 7_000})
    assert (config.reconnect_backoff_ms, config.reconnect_backoff_max_ms) == (7_000, 7_000)


def test_a_maximum_below_its_base_is_a_constant_delay(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kclient.config"):
        config = load({**HERE, "retry_backoff_ms": 500, "retry_backoff_max_ms": 200})
    assert (config.retry_backoff_ms, config.retry_backoff_max_ms) == (200, 200)
    assert "retry_backoff_max_ms" in caplog.text


def test_an_empty_client_id_is_made_up_from_the_group() -> None:
    first, second = (load({**HERE, "group_id": "g", "client_id": ""}).client_id for _ in range(2))
    assert first.startswith("consumer-g-")
    assert first != second
    assert load({**HERE, "group_id": "g", "group_instance_id": "i-1"}).client_id == "consumer-g-i-1"
    assert re.fullmatch(r"consumer-\d+", load(HERE).client_id)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_refused_key_may_keep_its_harmless_value_and_nothing_else(name: str) -> None:
    refused = REFUSED[name]
    assert load({**HERE, name: refused.harmless[0]}) is not None
    assert load({**HERE, name: None}) is not None
    (problem,) = problems_of({**HERE, name: "something else"})
    assert problem == f"{name} (arguments) is refused: {refused.reason}"
    assert "something else" not in problem


def test_pushed_metrics_are_refused() -> None:
    assert problems_of({**HERE, "enable_metrics_push": True})
    assert problems_of({**HERE, "metrics.context.team": "a"})
    assert load(
        {**HERE, "group_protocol": "Classic", "enable_metrics_push": False, "security_protocol": "PLAINTEXT"}
    )


@pytest.mark.spec("B.1")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("session_timeout_ms", 45_000),
        ("heartbeat_interval_ms", 3_000),
        ("partition_assignment_strategy", "range"),
    ],
)
def test_the_consumer_protocol_refuses_what_the_broker_decides(key: str, value: object) -> None:
    (problem,) = problems_of({**HERE, "group_protocol": "Consumer", key: value})
    assert problem.startswith(f"{key} is for group_protocol='classic'")
    assert load({**HERE, "group_protocol": "auto", key: value}).group_protocol == "auto"


@pytest.mark.spec("B.1")
def test_a_remote_assignor_is_of_the_consumer_protocol() -> None:
    (problem,) = problems_of({**HERE, "group_remote_assignor": "uniform"})
    assert problem.startswith("group_remote_assignor needs group_protocol='consumer'")
    for protocol in ("consumer", "auto"):
        load({**HERE, "group_protocol": protocol, "group_remote_assignor": "uniform"})
    assert load(HERE).group_protocol == "classic"
    assert "must be classic or consumer or auto" in problems_of({**HERE, "group_protocol": "848"})[0]


@pytest.mark.parametrize("written", sorted(OTHER_SPELLINGS))
def test_other_clients_spellings_are_answered_with_a_key_that_exists(written: str) -> None:
    ours = OTHER_SPELLINGS[written]
    assert ours in rules() or ours in REFUSED
    (problem,) = problems_of({**HERE, written: 1})
    assert f"own is {ours}" in problem


def test_every_key_of_the_table_has_a_default_that_keeps_its_own_rule() -> None:
    for field in keys():
        if field.default not in (attrs.NOTHING, None):
            assert field.metadata["rule"](field.default) == field.default, field.name


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("range", ("range",)),
        ("roundrobin,range", ("roundrobin", "range")),
        ("org.apache.kafka.clients.consumer.RoundRobinAssignor", ("roundrobin",)),
        (
            "org.apache.kafka.clients.consumer.CooperativeStickyAssignor, range",
            ("cooperative-sticky", "range"),
        ),
        (["org.apache.kafka.clients.consumer.RangeAssignor", "sticky"], ("range", "sticky")),
        (["org.apache.kafka.clients.consumer.StickyAssignor"], ("sticky",)),
        (["range", "roundrobin"], ("range", "roundrobin")),
    ],
)
def test_assignors(written: Any, names: tuple[str, ...]) -> None:
    assert load({**HERE, "partition_assignment_strategy": written}).partition_assignment_strategy == names


@pytest.mark.parametrize("written", ["", [], "mine", ["range", "mine"], "range,range"])
def test_assignors_that_cannot_be(written: Any) -> None:
    assert len(problems_of({**HERE, "partition_assignment_strategy": written})) == 1


def test_an_error_about_the_configuration_pickles() -> None:
    with pytest.raises(ConfigError) as caught:
        load({"bootstrap_servers": "x"})
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.problems == caught.value.problems


def test_a_path_given_as_the_mapping_is_reported_with_its_place() -> None:
    [problem] = problems_of(HERE, config="client.properties")
    assert problem == (
        "config is a mapping of keys to values, not 'client.properties'; a file is given as properties="
    )


@pytest.mark.parametrize("given", ["45s", 0.5, timedelta(seconds=45)])
def test_a_time_that_is_no_number_is_reported_with_its_unit(given: object) -> None:
    [problem] = problems_of({**HERE, "session_timeout_ms": given})
    assert problem.endswith("(arguments) must be a whole number; it counts milliseconds")


@pytest.mark.parametrize("key", ["acks", "linger.ms", "value_serializer"])
def test_a_producers_key_is_called_one(key: str) -> None:
    [problem] = problems_of(HERE, config={key: 1})
    assert problem == f"{key} (config) is a producer's key, and kclient only consumes; leave it out"


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    (problem,) = problems_of(HERE, properties=tmp_path / "none.properties")
    assert problem.startswith("the properties file")


class _Text:
    """A deserializer of Java's shape."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def configure(self, configs: dict[str, Any], is_key: bool) -> None:
        self.seen.append((configs["group.id"], is_key))

    def deserialize(self, topic: str, headers: Any, data: bytes) -> str:
        return data.decode()


def test_deserializers_of_either_shape_become_one_callable() -> None:
    plain = load({**HERE, "value_deserializer": lambda topic, headers, data: data.upper()}).value_deserializer
    assert plain is not None
    assert plain("t", (), b"a") == b"A"
    shaped = _Text()
    made = load({**HERE, "group_id": "g", "key_deserializer": shaped}).key_deserializer
    assert made is not None
    assert made("t", (), b"a") == "a"
    assert shaped.seen == [("g", True)]
    of_class = load({**HERE, "value_deserializer": _Text}).value_deserializer
    assert of_class is not None
    assert of_class("t", (), b"a") == "a"


@pytest.mark.parametrize("wrong", [json.loads, "org.apache.kafka.common.serialization.StringDeserializer", 3])
def test_deserializers_that_cannot_be(wrong: Any) -> None:
    (problem,) = problems_of({**HERE, "value_deserializer": wrong})
    assert "value_deserializer" in problem


@pytest.mark.parametrize("address", ["localhost", "http://localhost:9092", "PLAINTEXT://localhost:9092"])
def test_an_address_without_port_or_with_a_scheme_is_shown_how_to_write_it(address: str) -> None:
    (problem,) = problems_of({"bootstrap_servers": address})
    assert "host:port as in localhost:9092, without a scheme" in problem
    assert repr(address) in problem


def test_the_repr_has_only_what_is_not_the_default() -> None:
    config = load({**HERE, "group_id": "g", "client_id": "c", "max_poll_records": 500})
    assert repr(config) == ("Config(bootstrap_servers=('localhost:9092',), client_id='c', group_id='g')")


def test_the_typed_settings_are_the_keys_of_the_table() -> None:
    assert write_settings.FILE.read_text() == write_settings.rendered(), "run python -m tools.write_settings"


def test_every_key_of_the_table_says_what_it_means() -> None:
    meanings = write_settings.meanings()
    assert list(meanings) == [field.name for field in keys()]
    assert [name for name, meaning in meanings.items() if not meaning.endswith(".")] == []
