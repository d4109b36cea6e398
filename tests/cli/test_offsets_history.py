"""`kclient offsets-history`: one run, the next one, and a watch that a signal ends."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from kclient import TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.spark.offsets_history.store import HistoryStore
from tests.cli.support import COMMAND, PATIENCE, call, run
from tests.lag.lag_setup import commit


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 1}) as cluster:
        cluster.produce("orders", ["x"] * 10)
        commit(cluster.bootstrap_servers, "billing", {TopicPartition("orders", 0): 7})
        yield cluster


def arguments(cluster: EmbeddedCluster, folder: Path, *more: str) -> list[str]:
    return ["offsets-history", "-b", cluster.bootstrap_servers, "--out", str(folder / "history"), *more]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("group.id=x", "group.id is not for offsets-history"),
        ("fetch.max.wait=1", "fetch.max.wait is unknown"),
    ],
)
def test_a_setting_that_cannot_be_is_named_as_it_was_typed(
    setting: str, message: str, cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call(capsys, *arguments(cluster, tmp_path, "--set", setting))
    assert (done.code, f"--set or --properties: {message}" in done.err) == (2, True)


def test_the_group_of_a_shared_file_is_left_out_and_reported(
    cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("group.id=billing\n")
    done = call(capsys, *arguments(cluster, tmp_path, "--properties", str(file), "--json"))
    assert (done.code, f"group.id of {file} is left out" in done.err) == (0, True)


@pytest.mark.spec("SP-91", "SP-95")
def test_each_run_reports_what_it_added(
    cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = call(capsys, *arguments(cluster, tmp_path, "--json"))
    assert (first.code, first.err) == (0, "")
    [event] = first.events
    assert (event["resumed"], event["groups"], event["rows"]["commits"]) == (False, 1, 1)
    assert " ".join(event) == "rows records partitions groups resumed seconds"
    second = call(capsys, *arguments(cluster, tmp_path))
    assert (second.code, second.out) == (0, "")
    assert second.err.startswith("went on  0 records of ")


@pytest.mark.spec("SP-95")
def test_a_log_that_ends_too_early_is_one_line_on_standard_error(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    assert run(*arguments(cluster, tmp_path)).code == 0
    store = HistoryStore(tmp_path / "history")
    state = store.state()
    assert state is not None
    ahead = {tp: offset + 2 for tp, offset in state.offsets.items() if offset}
    store.keep(attrs.evolve(state, offsets={**state.offsets, **ahead}))
    done = run(*arguments(cluster, tmp_path, "--json"))
    assert (done.code, len(done.events)) == (0, 1)
    assert [line.split("(")[0] for line in done.err.splitlines()] == ["warning  data loss "] * len(ahead)


@pytest.mark.spec("SP-95")
def test_a_watch_ends_in_order_by_sigterm(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    command = [*COMMAND, *arguments(cluster, tmp_path, "--watch", "--every", "1s", "--json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE)
    assert [run["resumed"] for run in seen] == [False, True]
    assert (process.returncode, err) == (0, "")


def test_another_cluster_is_refused(
    cluster: EmbeddedCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(capsys, *arguments(cluster, tmp_path)).code == 0
    with EmbeddedCluster(topics={"orders": 1}) as other:
        commit(other.bootstrap_servers, "billing", {TopicPartition("orders", 0): 0})
        done = call(capsys, *arguments(other, tmp_path))
    assert (done.code, done.out) == (2, "")
    assert "holds the history of the cluster" in done.err


def test_a_cluster_without_commits_is_not_a_misspelt_topic(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with EmbeddedCluster(topics={"orders": 1}) as quiet:
        done = call(capsys, *arguments(quiet, tmp_path))
    assert done.code == 5
    assert "No group has committed an offset on this cluster yet" in done.err
    assert "misspelt" not in done.err
