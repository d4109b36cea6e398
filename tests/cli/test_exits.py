"""Exit codes are the same for every command, and every failure says in one place what to do next."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path
from time import monotonic

import pytest

from kclient import TopicPartition
from kclient.cli import app
from kclient.embedded import EmbeddedCluster
from tests.cli.support import COMMAND, PATIENCE, Done, call, job
from tests.lag.lag_setup import commit

PAGES = Path(__file__).parents[2] / "docs" / "errors"
NOWHERE = "127.0.0.1:1"
IMPATIENT = ("--set", "default.api.timeout.ms=2000")
PATIENT = ("--set", "default.api.timeout.ms=600000")


def commands(servers: str, folder: Path) -> dict[str, list[str]]:
    """Every command that speaks with a cluster, with all that it needs."""
    return {
        "consume": ["consume", "orders", "-e", "-b", servers],
        "topics describe": ["topics", "describe", "orders", "-b", servers],
        "groups reset": ["groups", "reset", "billing", "--all-topics", "--to-earliest", "-b", servers],
        "groups delete": ["groups", "delete", "billing", "-b", servers],
        "lag": ["lag", "billing", "-b", servers],
        "ingest": job(servers, folder),
        "ingest status": ["ingest", "status", "--checkpoint", str(folder / "checkpoint"), "-b", servers],
        "offsets-history": ["offsets-history", "--out", str(folder / "history"), "-b", servers],
    }


TAKES_MORE = (
    "consume",
    "lag",
    "topics describe",
    "groups delete",
)  # names of topics or groups, as many as are typed
NAMES = sorted(commands("", Path()))


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a checkpoint that `ingest status` can look at."""
    folder = tmp_path_factory.mktemp("begun")
    with EmbeddedCluster(topics={"orders": 1}) as cluster:
        cluster.produce("orders", ["x"] * 3)
        done = subprocess.run(
            [*COMMAND, *job(cluster.bootstrap_servers, folder)],
            timeout=PATIENCE,
            check=False,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == 0, done.stderr
    return folder


def where(name: str, begun: Path, fresh: Path) -> Path:
    """Only `ingest status` looks at what is there; a job needs a folder of its own."""
    return begun if name == "ingest status" else fresh


def check_failure(done: Done, code: int) -> None:
    """A failure is talk that begins with the command and ends with what to do: a command, or a page that has it."""
    assert (done.code, done.out) == (code, ""), done.err
    assert done.err.startswith("python -m kclient ")
    assert "Traceback" not in done.err
    page = re.search(r"\[(KC-\d+)\] kclient explain \1$", done.err.rstrip())
    assert page or "Type: " in done.err
    assert page is None or "## What to do" in (PAGES / f"{page[1]}.md").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_2_for_settings_that_cannot_be(
    name: str, begun: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = commands(NOWHERE, where(name, begun, tmp_path))[name]
    check_failure(call(capsys, *arguments, "--set", "isolation.levl=x"), 2)
    check_failure(call(capsys, *arguments, "--set", "isolation.level"), 2)
    check_failure(call(capsys, *arguments, "--properties", str(tmp_path / "none")), 2)
    if name in TAKES_MORE:
        check_failure(call(capsys, *name.split()), 2)
    else:
        check_failure(call(capsys, *arguments, "something", "else"), 2)


def test_2_for_a_properties_file_that_says_a_thing_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\nsecurity.protocol=PLAINTEXT\n")
    for name in ("ingest", "lag", "offsets-history"):
        done = call(capsys, *commands(NOWHERE, tmp_path)[name], "--properties", str(file))
        check_failure(done, 2)
        assert "client.properties, line 2" in done.err


@pytest.mark.parametrize("name", NAMES)
def test_3_where_nothing_listens(
    name: str, begun: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At once, however long responses are waited for: an address that was typed wrong stays wrong."""
    began = monotonic()
    done = call(capsys, *commands(NOWHERE, where(name, begun, tmp_path))[name], *PATIENT)
    check_failure(done, 3)
    assert NOWHERE in done.err
    assert monotonic() - began < 60


@pytest.mark.parametrize("name", NAMES)
def test_4_where_it_may_not_look(
    name: str, begun: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with EmbeddedCluster(topics={"orders": 1}) as cluster:
        cluster.produce("orders", ["x"])
        commit(cluster.bootstrap_servers, "billing", {TopicPartition("orders", 0): 0})
        cluster.deny("User:ANONYMOUS", "DESCRIBE", "Group:billing")
        cluster.deny("User:ANONYMOUS", "READ", "Topic:__consumer_offsets")
        cluster.deny("User:ANONYMOUS", "READ", "Topic:orders")
        cluster.deny("User:ANONYMOUS", "DESCRIBE", "Topic:orders")
        check_failure(
            call(
                capsys, *commands(cluster.bootstrap_servers, where(name, begun, tmp_path))[name], *IMPATIENT
            ),
            4,
        )


@pytest.mark.parametrize("name", ["lag", "ingest"])
def test_5_for_what_does_not_exist(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedCluster(topics={"ordres": 1}) as cluster:
        check_failure(call(capsys, *commands(cluster.bootstrap_servers, tmp_path)[name], *IMPATIENT), 5)


@pytest.mark.parametrize("name", NAMES)
def test_7_for_brokers_that_advertise_an_address_that_leads_nowhere(
    name: str, begun: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with EmbeddedCluster(topics={"orders": 1}) as cluster:
        cluster.advertise(1, "kafka.invalid", 9092)
        done = call(
            capsys, *commands(cluster.bootstrap_servers, where(name, begun, tmp_path))[name], *IMPATIENT
        )
    check_failure(done, 7)
    assert "kafka.invalid:9092" in done.err


@pytest.mark.parametrize(
    "arguments", [["version"], ["--help"], ["completion", "zsh"], ["spark", "doctor", "--json"]]
)
def test_8_for_a_full_disk(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 8
    assert "the output cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_8_and_no_word_for_who_has_seen_enough() -> None:
    script = f"{' '.join(COMMAND)} spark doctor --json | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (8, "")


def test_130_for_a_watch_that_is_interrupted() -> None:
    with EmbeddedCluster(topics={"orders": 1}) as cluster:
        commit(cluster.bootstrap_servers, "billing", {TopicPartition("orders", 0): 0})
        command = [*COMMAND, "lag", "billing", "--json", "--watch", "1", "-b", cluster.bootstrap_servers]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watch:
            assert watch.stdout is not None
            watch.stdout.readline()
            watch.send_signal(signal.SIGINT)
            _, err = watch.communicate(timeout=PATIENCE)
    assert (watch.returncode, err) == (130, "")


INTERRUPTED_IMPORT = """
import signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "kclient.cli.app":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from kclient.cli.main import main
sys.exit(main(["version"]))
"""


def test_130_for_an_interrupt_before_all_is_imported() -> None:
    command = [COMMAND[0], "-c", INTERRUPTED_IMPORT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_1_for_a_bug_with_the_traceback_and_what_to_do_with_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def planted() -> str:
        raise KeyError("planted")

    monkeypatch.setattr(app, "_version", planted)
    done = call(capsys, "--version")
    assert (done.code, done.out) == (1, "")
    assert "Traceback" in done.err
    assert "in planted" in done.err
    assert "This is a bug of kclient. Please report it." in done.err.splitlines()[-1]
