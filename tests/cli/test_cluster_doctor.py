"""`kclient doctor`: set-ups that work raise no alarm, and each planted fault is found in its own step."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from kclient.cli.cluster_doctor import MOST_CONNECTED, MOST_FAILED
from kclient.embedded import EmbeddedCluster
from kclient.embedded.listener import Listener
from tests.cli.support import Done, call
from tests.security.certificates import Authority

AUTHORITY = Authority("Doctor's Authority")
PASSWORD = "secret-of-alice"
LOGIN = {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "alice", "sasl.password": PASSWORD}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    folder = tmp_path_factory.mktemp("certificates")
    tls = AUTHORITY.issue("127.0.0.1").server_context(folder)
    listeners = [
        Listener("SSL", ssl=tls),
        Listener("SASL_SSL", ssl=tls, mechanisms=("SCRAM-SHA-256",)),
        Listener("SASL_PLAINTEXT", mechanisms=("SCRAM-SHA-256",)),
    ]
    with EmbeddedCluster(2, topics={"orders": 2}, listeners=listeners, users={"alice": PASSWORD}) as cluster:
        yield cluster


class Doctor:
    """Runs the command against a listener, with the settings in a file."""

    def __init__(self, cluster: EmbeddedCluster, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._cluster = cluster
        self._folder = folder
        self._capsys = capsys

    def ask(self, listener: str, *words: str, **settings: str) -> Done:
        servers = (
            self._cluster.bootstrap_servers if listener == "PLAINTEXT" else self._cluster.servers(listener)
        )
        given: dict[str, Any] = {"bootstrap.servers": servers, "security.protocol": listener}
        if "SSL" in listener:
            given["ssl.truststore.location"] = AUTHORITY.write_pem(self._folder / "ca.pem")
            given["ssl.truststore.type"] = "PEM"
        given |= LOGIN if "SASL" in listener else {}
        given |= {key.replace("_", "."): value for key, value in settings.items()}
        file = self._folder / "client.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
        return call(self._capsys, "doctor", "--json", "--properties", str(file), *words)


@pytest.fixture
def doctor(cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Doctor:
    return Doctor(cluster, tmp_path, capsys)


def verdicts(done: Done) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for step in done.events:
        found.setdefault(step["step"], set()).add(step["verdict"])
    return found


def check_fault(done: Done, step: str, error: str, code: int) -> str:
    """Only this step failed, with this error; return what was seen."""
    failed = [one for one in done.events if one["verdict"] == "FAIL"]
    assert {(one["step"], one["error"]) for one in failed} == {(step, error)}
    assert done.code == code
    assert PASSWORD not in done.out + done.err
    return str(failed[0]["saw"])


@pytest.mark.parametrize(
    ("listener", "steps"),
    [
        ("PLAINTEXT", "config names ports versions metadata advertised topic group"),
        ("SSL", "config names ports tls versions metadata advertised topic group"),
        ("SASL_SSL", "config names ports tls versions login metadata advertised topic group"),
        ("SASL_PLAINTEXT", "config names ports versions login metadata advertised topic group"),
    ],
)
def test_what_works_raises_no_alarm(listener: str, steps: str, doctor: Doctor) -> None:
    done = doctor.ask(listener, "--topic", "orders", "--group", "billing")
    assert (done.code, done.err) == (0, "")
    assert verdicts(done) == {step: {"ok"} for step in steps.split()}
    assert list(verdicts(done)) == steps.split()
    assert all(
        one["ms"] is not None for one in done.events if one["step"] in ("names", "ports", "login", "group")
    )


def test_the_lines_for_people(cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "doctor", "--topic", "orders", "-b", cluster.bootstrap_servers)
    last = done.out.splitlines()[-1].split()
    assert last[:2] == ["ok", "topic"]
    assert " ".join(last[4:]) == "orders has 2 partitions, may be read"


def test_settings(doctor: Doctor) -> None:
    saw = check_fault(doctor.ask("PLAINTEXT", isolation_level="sometimes"), "config", "ConfigError", 2)
    assert "isolation.level='sometimes'" in saw


def test_a_name(doctor: Doctor) -> None:
    done = doctor.ask("PLAINTEXT", "-b", "kafka.invalid:9092")
    assert "'kafka.invalid' does not resolve" in check_fault(done, "names", "NameResolutionError", 3)
    assert verdicts(done)["ports"] == verdicts(done)["metadata"] == {"skipped"}


def test_a_port(doctor: Doctor) -> None:
    done = doctor.ask("PLAINTEXT", "-b", "127.0.0.1:1")
    assert "connection refused" in check_fault(done, "ports", "PortClosedError", 3)


def test_one_of_two_servers(doctor: Doctor, cluster: EmbeddedCluster) -> None:
    done = doctor.ask("PLAINTEXT", "-b", f"127.0.0.1:1,{cluster.bootstrap_servers}")
    check_fault(done, "ports", "PortClosedError", 3)
    assert verdicts(done)["advertised"] == {"ok"}


def test_a_certificate_of_another_authority(doctor: Doctor, tmp_path: Path) -> None:
    other = Authority("Somebody Else").write_pem(tmp_path / "other.pem")
    done = doctor.ask("SSL", ssl_truststore_location=str(other))
    check_fault(done, "tls", "CertificateError", 3)


def test_tls_at_a_port_of_plain_text(doctor: Doctor, cluster: EmbeddedCluster) -> None:
    done = doctor.ask("SSL", "-b", cluster.bootstrap_servers)
    check_fault(done, "tls", "PeerDoesNotSpeakTlsError", 3)


def test_plain_text_at_a_port_of_tls(doctor: Doctor, cluster: EmbeddedCluster) -> None:
    check_fault(doctor.ask("PLAINTEXT", "-b", cluster.servers("SSL")), "versions", "PeerSpeaksTlsError", 3)


def test_no_login_where_one_is_needed(doctor: Doctor, cluster: EmbeddedCluster) -> None:
    done = doctor.ask("PLAINTEXT", "-b", cluster.servers("SASL_PLAINTEXT"))
    assert "SCRAM-SHA-256" in check_fault(done, "metadata", "AuthenticationError", 4)


def test_a_password(doctor: Doctor) -> None:
    done = doctor.ask("SASL_PLAINTEXT", sasl_password="wrong")
    check_fault(done, "login", "AuthenticationError", 4)
    assert verdicts(done)["versions"] == {"ok"}


def test_a_peer_that_is_no_broker(doctor: Doctor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            for _ in range(2):  # ports, versions
                connection, _ = server.accept()
                with connection:
                    if connection.recv(4096):
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        done = doctor.ask("PLAINTEXT", "-b", f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    check_fault(done, "versions", "VersionError", 3)


def test_an_advertised_address(capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedCluster(2, topics={"orders": 1}) as cluster:
        cluster.advertise(1, "kafka.invalid", 9092)
        done = call(
            capsys, "doctor", "--json", "-b", cluster.bootstrap_servers.split(",")[1], "--topic", "orders"
        )
    saw = check_fault(done, "advertised", "AdvertisedListenerError", 7)
    assert "node 1 is advertised as kafka.invalid:9092" in saw
    assert verdicts(done)["advertised"] == {"ok", "FAIL"}
    assert verdicts(done)["topic"] == {"ok"}


@pytest.mark.parametrize(
    ("port", "tried", "why"),
    [(None, MOST_CONNECTED, "100 were"), (1, MOST_FAILED, "10 have failed")],
    ids=["all-answer", "none-answers"],
)
def test_brokers_without_end_are_not_all_connected_to(
    port: int | None, tried: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with EmbeddedCluster(1) as cluster:

        def add(request: Any, response: Any) -> Any:
            [known] = response.brokers
            response.brokers = [
                attrs.evolve(known, node_id=number, port=port or known.port) for number in range(5_000)
            ]
            return response

        cluster.on("Metadata", add)
        done = call(capsys, "doctor", "--json", "-b", cluster.bootstrap_servers)
    steps = [step for step in done.events if step["step"] == "advertised"]
    if port is not None:
        steps.pop()  # of the steps that a cluster without brokers skips
    assert len(steps) == tried + 1
    assert (steps[-1]["verdict"], steps[-1]["saw"]) == (
        "skipped",
        f"{5_000 - tried:,} more brokers not connected to: {why}",
    )


def test_a_topic_that_is_not_there_is_not_created(doctor: Doctor, cluster: EmbeddedCluster) -> None:
    check_fault(doctor.ask("PLAINTEXT", "--topic", "oders"), "topic", "UnknownTopicError", 5)
    assert "oders" not in cluster.state.topics


def test_partitions_without_a_leader(capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedCluster(2) as cluster:
        cluster.create_topic("orders", 2, 1)
        cluster.kill(2)
        done = call(
            capsys, "doctor", "--json", "-b", cluster.bootstrap_servers.split(",")[0], "--topic", "orders"
        )
    assert "1 partition of topic orders without a leader: 1" in check_fault(done, "topic", "ConnectError", 3)


@pytest.mark.parametrize("operation", ["READ", "DESCRIBE"])
@pytest.mark.parametrize("kind", ["topic", "group"])
def test_permissions(operation: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedCluster(topics={"orders": 1}) as cluster:
        resource = "Topic:orders" if kind == "topic" else "Group:billing"
        cluster.deny("User:ANONYMOUS", operation, resource)
        arguments = ("--topic", "orders", "--group", "billing", "-b", cluster.bootstrap_servers)
        done = call(capsys, "doctor", "--json", *arguments)
    saw = check_fault(done, kind, f"{kind.title()}AuthorizationError", 4)
    assert f"Grant it READ on {resource}" in saw
