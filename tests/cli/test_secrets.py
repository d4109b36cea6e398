"""A secret that is named and not said: one properties file serves every command, and nothing shows what it names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient import TopicPartition
from kclient.cli.options import ConnectionOptions
from kclient.embedded import EmbeddedCluster
from kclient.embedded.listener import Listener
from tests.cli.support import call
from tests.lag.lag_setup import commit

PASSWORD = "canary-4f1c"


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    listener = Listener("SASL_PLAINTEXT", mechanisms=("SCRAM-SHA-256",))
    with EmbeddedCluster(topics={"orders": 1}, listeners=[listener], users={"alice": PASSWORD}) as cluster:
        cluster.produce("orders", ["x"] * 3)
        commit(cluster.bootstrap_servers, "billing", {TopicPartition("orders", 0): 1})
        yield cluster


@pytest.mark.spec("SP-44")
@pytest.mark.parametrize("kind", ["env", "file"])
def test_one_file_serves_every_command(
    kind: str,
    cluster: EmbeddedCluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    (tmp_path / "secret").write_text(f"{PASSWORD}\n")
    place = "KAFKA_PASSWORD" if kind == "env" else str(tmp_path / "secret")
    file = tmp_path / "client.properties"
    file.write_text(
        f"bootstrap.servers={cluster.servers('SASL_PLAINTEXT')}\nsecurity.protocol=SASL_PLAINTEXT\n"
        f"sasl.mechanism=SCRAM-SHA-256\nsasl.username=alice\nsasl.password.{kind}={place}\n"
    )
    with_file = ("--properties", str(file))
    checkpoint = ("--checkpoint", str(tmp_path / "checkpoint"))
    seen = [
        call(
            capsys,
            "ingest",
            "--topics",
            "orders",
            "--engine",
            "direct",
            "--parallelism",
            "1",
            *checkpoint,
            "--sink",
            f"parquet:{tmp_path / 'raw'}",
            *with_file,
        ),
        call(capsys, "ingest", "status", *checkpoint, *with_file),
        call(capsys, "lag", "billing", *with_file),
        call(capsys, "offsets-history", "--out", str(tmp_path / "history"), *with_file),
    ]
    assert [done.code for done in seen] == [0] * 4, [done.err for done in seen]
    assert seen[1].out.endswith("total lag 0\n")
    assert seen[2].out.rstrip().endswith("total lag 2")
    assert not any(PASSWORD in done.out + done.err for done in seen)


@pytest.mark.spec("SP-44")
def test_a_reference_to_nothing_says_what_is_missing(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call(
        capsys, "lag", "billing", "-b", cluster.bootstrap_servers, "--set", "sasl.password.env=NOT_THERE"
    )
    assert (done.code, done.out) == (2, "")
    assert "the environment variable NOT_THERE, which is not set" in done.err


def test_a_key_that_ends_in_file_is_no_reference() -> None:
    settings = (
        "security.protocol=SASL_SSL",
        "sasl.mechanism=OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url=https://login.example/token",
        "sasl.oauthbearer.client.credentials.client.id=billing",
        "sasl.oauthbearer.assertion.file=/run/secrets/assertion",
    )
    config = ConnectionOptions(bootstrap_servers="127.0.0.1:1", settings=settings).config()
    assert config.sasl_oauthbearer_assertion_file == "/run/secrets/assertion"


@pytest.mark.spec("I-39")
@pytest.mark.parametrize("written", [f"sasl.password{PASSWORD}", f"={PASSWORD}", f"sasl.password {PASSWORD}"])
def test_a_slip_in_an_argument_does_not_show_it(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "lag", "billing", "-b", "127.0.0.1:1", "--set", "client.id=x", "--set", written)
    assert (done.code, done.out) == (2, "")
    assert "--set number 2 is not KEY=VALUE" in done.err
    assert PASSWORD not in done.err


@pytest.mark.spec("I-39")
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["lag", "billing", "--set", f"sasl.password={PASSWORD}"], "sasl.password"),
        (["ingest", "--topics", "t", "--set", f"ssl_key_password={PASSWORD}"], "ssl_key_password"),
        (
            ["ingest", "--topics", "t", "--options", f"schema.registry.auth={PASSWORD}"],
            "schema.registry.auth",
        ),
        (
            ["offsets-history", "--out", "x", "--options", f"kafka.sasl.password={PASSWORD}"],
            "kafka.sasl.password",
        ),
    ],
)
def test_a_secret_on_the_command_line_is_warned_of(
    arguments: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call(capsys, *arguments, "--set", "sasl.mechanism=NONE", "-b", "127.0.0.1:1")
    assert done.code == 2
    assert done.err.count("WARNING: ") == 1
    assert f"{name}: every user of this machine can read the command line. Write {name}.env=NAME" in done.err
    assert PASSWORD not in done.err


@pytest.mark.spec("I-39")
@pytest.mark.parametrize(
    "arguments",
    [
        ["lag", "g", f"--sasl.password={PASSWORD}"],
        ["ingest", "--topics", "t", f"--sasl.password={PASSWORD}"],
        ["ingest", "--topics", "t", "--set", "sasl.password", PASSWORD],
        ["ingest", "status", "--set", "sasl.password", PASSWORD],
        ["lag", "g", "-b", f"SASL_SSL://u:{PASSWORD}@h:1"],
        [
            "ingest",
            "-b",
            f"SASL_SSL://u:{PASSWORD}@h:1",
            "--topics",
            "t",
            "--sink",
            "parquet:/s",
            "--checkpoint",
            "/c",
        ],
        ["ingest", "gc", "--sink", f"parquet:s3://AKIAX:abc/{PASSWORD}@bucket/raw"],
        ["ingest", "status", "--checkpoint", f"s3://AKIAX:abc/{PASSWORD}@bucket/checkpoint"],
        ["ingest", "verify", "--sink", f"delta:s3://AKIAX:abc/{PASSWORD}@bucket/raw", "--job", "j"],
    ],
)
def test_what_was_typed_wrong_is_not_shown(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, *arguments)
    assert (done.code, done.out) == (2, "")
    assert PASSWORD not in done.err
