"""The stand-alone cluster: it prints its address, serves, runs commands, and exits when asked to."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kclient import Consumer, TopicPartition
from kclient.config.oauth import is_loopback
from kclient.embedded.__main__ import main
from kclient.errors import AuthenticationError
from tests.realtime import within
from tests.security.certificates import Authority

SECONDS = 20


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "kclient.embedded", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)


def line(process: subprocess.Popen[str], stream: str) -> str:
    """The next line, read byte by byte: what a buffer holds `select` does not see."""
    descriptor, found = getattr(process, stream).fileno(), b""
    while not found.endswith(b"\n"):
        assert select.select([descriptor], [], [], SECONDS)[0], (
            f"nothing came through {stream} behind {found!r}"
        )
        byte = os.read(descriptor, 1)
        assert byte, f"{stream} ended behind {found!r}"
        found += byte
    return found.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_interrupted(number: signal.Signals) -> None:
    with running("--brokers", "3", "--topic", "flights:6", "--topic", "delays") as process:
        servers = line(process, "stdout").strip()
        assert len(servers.split(",")) == 3
        with Consumer(bootstrap_servers=servers) as consumer:
            topics = consumer.list_topics()
        counts = {name: len(partitions) for name, partitions in topics.items()}
        assert counts == {"flights": 6, "delays": 1, "__consumer_offsets": 50}
        with within(2):
            process.send_signal(number)
            assert process.wait(SECONDS) == 0


def test_on_an_ipv6_address_it_prints_what_clients_take_and_advertises_it() -> None:
    """It once printed `::1:39092`, which the client refuses."""
    with running("--host", "::1", "--topic", "flights", "--user", "ann:secret") as process:
        servers = line(process, "stdout").strip()
        with_users = line(process, "stdout").split()[1]
        with Consumer(bootstrap_servers=servers) as consumer:
            assert consumer.end_offsets([TopicPartition("flights", 0)]) == {TopicPartition("flights", 0): 0}
        assert servers.startswith("[::1]:")
        assert with_users.startswith("[::1]:")


def test_it_obeys_and_reports_what_happens() -> None:
    with running("--brokers", "2", "--topic", "flights") as process:
        line(process, "stdout")
        assert "2 brokers of release 4.3 serve;" in line(process, "stderr")
        assert process.stdin is not None
        process.stdin.write("kill 1\nleaders flights\ntopic more 3\nrestart 1\nkill 9\nsit\nkill\n")
        process.stdin.flush()
        logged = [line(process, "stderr").partition(" s  ")[2] for _ in range(7)]
    assert "broker 1 is killed" in logged[0]
    assert "topic flights: 0 on 2" in logged[1]
    assert "topic more is made, 3 partitions" in logged[2]
    assert "There is no broker 9" in logged[3]
    assert ["is not a command" in text for text in logged[4:6]] == [True, True]
    assert "broker 1 is started" in logged[6]  # which takes time, so it is logged last


def test_its_console_writes_records_with_their_spaces() -> None:
    with running("--topic", "orders") as process:
        servers = line(process, "stdout").strip()
        line(process, "stderr")
        assert process.stdin is not None
        process.stdin.write('produce orders  {"a":  1}\nproduce orders second\nproduce orders\n')
        process.stdin.flush()
        logged = [line(process, "stderr").partition(" s  ")[2] for _ in range(3)]
        assert logged[:2] == ["orders-0 has it at offset 0\n", "orders-0 has it at offset 1\n"]
        assert "is not a command" in logged[2]
        assert read(servers, "orders", 2) == [b'{"a":  1}', b"second"]


def read(servers: str, topic: str, count: int) -> list[bytes]:
    """The first values of a topic, whose partitions are read from their beginnings."""
    with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)])
        values: list[bytes] = []
        with within(SECONDS):
            while len(values) < count:
                values += [record.value for record in consumer.poll(0.5)]
    return values


def test_it_begins_with_flights_and_more_depart_at_the_rate() -> None:
    with running("--flights", "12000", "--rate", "200", "--brokers", "2") as process:
        servers = line(process, "stdout").strip()
        flights = [json.loads(value) for value in read(servers, "flights", 12_100)]
        assert sorted(one["flight"] for one in flights)[:12_100] == list(range(1, 12_101))
        assert {one["origin"] for one in flights} == {"EWR", "JFK", "LGA"}
        assert None in {one["dep_delay"] for one in flights}
        with Consumer(bootstrap_servers=servers) as consumer:
            assert len(consumer.partitions_for("flights")) == 6
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0


def test_flights_take_the_topic_that_is_there() -> None:
    with running("--flights", "--topic", "flights:2") as process:
        servers = line(process, "stdout").strip()
        with Consumer(bootstrap_servers=servers) as consumer:
            partitions = [
                TopicPartition("flights", info.partition) for info in consumer.partitions_for("flights")
            ]
            assert len(partitions) == 2
            with within(SECONDS):
                while sum(consumer.end_offsets(partitions).values()) < 10_000:
                    pass


def test_one_is_reported_as_one() -> None:
    with running("--topic", "flights") as process:
        line(process, "stdout")
        assert "1 broker of release 4.3 serves;" in line(process, "stderr")
        assert process.stdin is not None
        process.stdin.write("topic more\n")
        process.stdin.flush()
        assert line(process, "stderr").endswith("topic more is made, 1 partition\n")


def test_it_listens_on_the_configured_address() -> None:
    with running() as process:
        free = int(line(process, "stdout").strip().rpartition(":")[2])
    with running("--host", "localhost", "--port", str(free)) as process:
        assert line(process, "stdout") == f"localhost:{free}\n"
        with running("--port", str(free), "--host", "localhost") as second:
            assert second.wait(SECONDS) == 2
            assert "address already in use" in line(second, "stderr").lower()


@pytest.mark.parametrize("tls", [False, True])
def test_users_log_in_at_a_listener_of_their_own(tls: bool, tmp_path: Path) -> None:
    authority = Authority("Test Authority")
    protocol = "SASL_SSL" if tls else "SASL_PLAINTEXT"
    pem = authority.issue("127.0.0.1").write_pem(tmp_path / "broker.pem")
    certificate = ["--certificate", str(pem)] if tls else []
    with running("--topic", "flights", "--user", "alice:secret:1", *certificate) as process:
        plain = line(process, "stdout").strip()
        name, servers = line(process, "stdout").split()
        assert (name, servers == plain) == (protocol, False)
        settings = {"bootstrap_servers": servers, "security_protocol": protocol, "sasl_username": "alice"}
        if tls:
            settings["ssl_truststore_location"] = str(authority.write_pem(tmp_path / "ca.pem"))
        with Consumer(sasl_mechanism="SCRAM-SHA-256", sasl_password="secret:1", **settings) as consumer:
            assert "flights" in consumer.list_topics()
        with (
            Consumer(sasl_mechanism="SCRAM-SHA-512", sasl_password="wrong", **settings) as stranger,
            pytest.raises(AuthenticationError),
        ):
            stranger.list_topics()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rate", "5"], "it is of --flights"),
        (["--flights", "--rate", "0"], "must be above 0"),
        (["--flights", "none"], "must be 1 or more"),
        (["--brokers", "0"], "must be 1 or more"),
        (["--topic", "flights:many"], "must be 1 or more, not 'many'"),
        (["--port", "70000"], "must be from 0 to 65535"),
        (["--release", "5.0"], "no Kafka release '5.0'"),
        (["--config", "group.max.size"], "is not KEY=VALUE"),
        (["--config", "group.max.size=many"], "group.max.size must be int"),
        (["--config", "group.max.sise=3"], "did you mean 'group.max.size'"),
        (["--config", "auto.create.topics.enable=no"], "must be true or false"),
        (["--user", "alice"], "must be NAME:PASSWORD"),
        (["--certificate", "/nowhere.pem"], "--certificate /nowhere.pem cannot be used: No such file"),
        (["--certificate", __file__], "Give a PEM file"),
        (["--brokers", "3", "--port", "65534"], "3 brokers from 65534 on need ports over 65535"),
        (["--config", "offsets.topic.num.partitions=0"], "must be 1 or more, not 0"),
        (["--color"], "unrecognized arguments"),
    ],
)
def test_what_cannot_be_used_ends_with_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_help_names_every_option_and_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    for word in ("--brokers", "--topic", "--host", "--port", "--release", "--config", "kill N", "restart N"):
        assert word in said


def test_it_serves_without_standard_streams() -> None:
    process = subprocess.Popen(
        ["/bin/sh", "-c", 'exec "$0" -m kclient.embedded <&- 2>&-', sys.executable],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        with Consumer(bootstrap_servers=line(process, "stdout")) as consumer:
            assert "orders" not in consumer.list_topics()
        process.terminate()
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
        process.communicate(timeout=SECONDS)


def test_it_serves_on_when_its_output_is_not_read() -> None:
    with running("--brokers", "2") as process:
        servers = line(process, "stdout")
        assert process.stderr is not None
        process.stderr.close()
        assert process.stdin is not None
        process.stdin.write("kill 1\nrestart 1\nrestart 1\ntopic orders\n")
        process.stdin.flush()
        with Consumer(bootstrap_servers=servers) as consumer:
            while "orders" not in consumer.list_topics():
                assert process.poll() is None
        process.terminate()
        assert process.wait(SECONDS) == 0


def test_a_command_that_fails_later_is_reported() -> None:
    with running() as process, socket.socket() as taken:
        port = int(line(process, "stdout").rpartition(":")[2])
        assert process.stdin is not None
        process.stdin.write("leaders nowhere\nkill 1\n")
        process.stdin.flush()
        logged = [line(process, "stderr") for _ in range(3)]
        assert "There is no topic 'nowhere'" in logged[1]
        taken.bind(("127.0.0.1", port))
        taken.listen()
        process.stdin.write("restart 1\n")
        process.stdin.flush()
        assert "in use" in line(process, "stderr")


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False),
     ("192.168.1.5", False), ("kafka", False)],
)  # fmt: skip
def test_a_host_that_others_may_reach_is_distinguished_from_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
