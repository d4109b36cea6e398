"""`--profile` and `--config`: settings of clusters by name, and from a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.embedded.listener import Listener
from tests.cli.support import Done, call

PASSWORD = "known-to-alice"


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    listeners = [Listener("SASL_PLAINTEXT", mechanisms=("SCRAM-SHA-256",))]
    with EmbeddedCluster(topics={"orders": 1}, listeners=listeners, users={"alice": PASSWORD}) as cluster:
        cluster.produce("orders", ["x"])
        yield cluster


@pytest.fixture
def file(cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with the profiles dev, login and wrong."""
    (tmp_path / "password").write_text(PASSWORD)
    path = tmp_path / "profiles.toml"
    path.write_text(
        f"""
        [dev]
        bootstrap.servers = "{cluster.bootstrap_servers}"
        [login]
        bootstrap.servers = "{cluster.servers("SASL_PLAINTEXT")}"
        security.protocol = "SASL_PLAINTEXT"
        sasl.mechanism = "SCRAM-SHA-256"
        sasl.username = "alice"
        sasl.password.file = "{tmp_path / "password"}"
        group.id = "of-an-application"
        request.timeout.ms = 5000
        [wrong]
        bootstrap.servers = ["a", "b"]
        sasl.password = ["{PASSWORD}"]
        """
    )
    monkeypatch.setenv("KCLIENT_PROFILES", str(path))
    return path


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> Done:
    return call(capsys, *words)


@pytest.mark.parametrize("profile", ["dev", "login"])
@pytest.mark.parametrize(
    "command", [["topics"], ["consume", "orders", "-e"], ["doctor"], ["groups"]], ids=lambda words: words[0]
)
@pytest.mark.usefixtures("file")
def test_a_profile_is_all_that_a_command_needs(
    command: list[str], profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = ask(capsys, *command, "--profile", profile)
    assert done.code == 0, done.err + done.out
    assert PASSWORD not in done.out + done.err


@pytest.mark.usefixtures("file")
def test_the_environment_names_a_profile(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KCLIENT_PROFILE", "dev")
    assert "orders" in ask(capsys, "topics").out


def test_the_file_is_in_the_directory_for_configuration(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KCLIENT_PROFILES")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "kclient").mkdir(parents=True)
    file.rename(tmp_path / "config" / "kclient" / "profiles.toml")
    assert ask(capsys, "topics", "--profile", "dev").code == 0


def test_options_go_before_the_file_and_the_file_before_the_profile(
    file: Path, cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text("bootstrap.servers=127.0.0.1:1\n")
    of_file = ask(capsys, "topics", "--profile", "dev", "--config", str(properties))
    assert of_file.code == 3
    assert "127.0.0.1:1" in of_file.err
    for more in (
        ["-b", cluster.bootstrap_servers],
        ["--set", f"bootstrap_servers={cluster.bootstrap_servers}"],
    ):
        assert ask(capsys, "topics", "--profile", "dev", "--config", str(properties), *more).code == 0
        assert ask(capsys, "consume", "orders", "-e", "--config", str(properties), *more).code == 0


@pytest.mark.parametrize(
    ("profile", "says"),
    [
        ("dve", "has no such profile. Did you mean dev?"),
        ("zzz", "has no such profile. It has dev, login, wrong."),
        ("wrong", "bootstrap.servers"),
    ],
)
def test_a_profile_that_cannot_be_used(
    profile: str, says: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["topics"], ["consume", "orders"]):
        done = ask(capsys, *command, "--profile", profile)
        assert (done.code, done.out) == (2, "")
        assert says in done.err
        assert PASSWORD not in done.err


@pytest.mark.parametrize("content", [None, "[dev\n", "\xff"], ids=["missing", "no-toml", "no-text"])
def test_a_file_that_cannot_be_read(
    content: str | None, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.unlink() if content is None else file.write_bytes(content.encode("latin-1"))
    done = ask(capsys, "topics", "--profile", "dev")
    assert done.code == 2
    assert f"--profile dev: {file} cannot be read" in done.err
