"""What the jobs and tables of `kclient ingest` warn of reaches the user of the command line, and only that."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from kclient.embedded import EmbeddedCluster
from kclient.spark.sink.delta import DeltaSink
from kclient.spark.sink.tables import TableUnavailable
from tests.cli.support import Done, call, run
from tests.spark.delta_log_support import forget_before

LOST = re.compile(r"the checkpoint \S+ is new, and \S+ holds the job nightly up to batch 0: the job goes on")


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 2}) as cluster:
        cluster.produce("orders", ["x"] * 20)
        yield cluster


def ingest(cluster: EmbeddedCluster, folder: Path, *more: str) -> Done:
    """A job into a Delta table."""
    where = ("--sink", f"delta:{folder / 'table'}", "--checkpoint", str(folder / "checkpoint"))
    settings = ("--topics", "orders", "--engine", "direct", "--parallelism", "1", "--job", "nightly")
    return run("ingest", "-b", cluster.bootstrap_servers, *settings, *where, *more)


@pytest.fixture
def lost(cluster: EmbeddedCluster, tmp_path: Path) -> Path:
    """The folder of a job whose checkpoint is lost."""
    done = ingest(cluster, tmp_path)
    assert (done.code, done.err.count("warning")) == (0, 0), done.err
    (tmp_path / "checkpoint").rename(tmp_path / "away")
    return tmp_path


def test_a_lost_checkpoint_is_one_line_on_standard_error(cluster: EmbeddedCluster, lost: Path) -> None:
    cluster.produce("orders", ["x"] * 10)
    done = ingest(cluster, lost)
    warning, plan, batch, end = done.err.splitlines()
    assert (done.code, done.out) == (0, "")
    assert LOST.match(warning.removeprefix("warning  "))
    assert [line.split()[0] for line in (plan, batch, end)] == ["plan", "batch", "drained"]


def test_with_json_it_is_an_event_and_one_of_the_metrics_too(cluster: EmbeddedCluster, lost: Path) -> None:
    file = lost / "metrics.jsonl"
    done = ingest(cluster, lost, "--json", "--metrics", f"jsonl:{file}")
    assert (done.code, done.err) == (0, "")
    assert [event["event"] for event in done.events] == ["warning", "plan", "finished"]
    assert LOST.match(done.events[0]["text"])
    assert [json.loads(line)["event"] for line in file.read_text().splitlines()] == [
        event["event"] for event in done.events
    ]


def test_a_dry_run_warns_too(cluster: EmbeddedCluster, lost: Path) -> None:
    plain = ingest(cluster, lost, "--dry-run")
    assert LOST.match(plain.err.removeprefix("warning  "))
    assert (plain.err.count("\n"), plain.out.split()[0]) == (1, "plan")
    machine = ingest(cluster, lost, "--dry-run", "--json")
    assert ([event["event"] for event in machine.events], machine.err) == (["warning", "plan"], "")


def test_accepted_data_loss_is_shown(cluster: EmbeddedCluster, lost: Path) -> None:
    shutil.move(lost / "away", lost / "checkpoint")
    cluster.produce("orders", ["x"] * 10, partition=0)
    cluster.delete_records("orders", 0, 13)
    done = ingest(cluster, lost, "--accept-data-loss")
    assert done.code == 0
    assert re.search(
        r"^warning  data loss .*orders-0: asked from 10, the log starts at 13", done.err, re.MULTILINE
    )


def test_status_and_verify_warn_on_standard_error(cluster: EmbeddedCluster, lost: Path) -> None:
    shutil.move(lost / "away", lost / "checkpoint")
    table = str(lost / "table")
    DeltaTable(table).delete("_partition = 0")
    DeltaTable(table).delete()
    DeltaTable(table).create_checkpoint()
    forget_before(DeltaSink(table), DeltaTable(table).version())
    warned = f"warning  {table} has no rows of the job nightly from the offsets"
    where = ("--checkpoint", str(lost / "checkpoint"))
    status = run("ingest", "status", *where, "--json")
    assert json.loads(status.out)["rows"] == 0
    verify = run("ingest", "verify", *where, "-b", cluster.bootstrap_servers, "--json")
    assert json.loads(verify.out)["proven"] is False
    for done in (status, verify):
        assert [line.startswith(warned) for line in done.err.splitlines()] == [True], done.err


def test_gc_warns_on_standard_error(
    cluster: EmbeddedCluster, lost: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    works, tries = DeltaSink.load, list[DeltaSink]()

    def load(self: DeltaSink) -> Any:
        tries.append(self)
        if len(tries) < 3:
            raise TableUnavailable("the store answers 503")
        return works(self)

    monkeypatch.setattr(DeltaSink, "load", load)
    done = call(capsys, "ingest", "gc", "--sink", f"delta:{lost / 'table'}", "--json")
    assert (done.code, json.loads(done.out)["files"]) == (0, [])
    assert done.err == f"warning  {lost / 'table'} cannot be used yet: the store answers 503\n"
