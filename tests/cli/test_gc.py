"""`kclient ingest gc`: it lists first, removes with --apply, and never removes a file that counts."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.spark.sink import manifest
from kclient.spark.sink.atomic_files import locked
from tests.cli.support import call, job

LEFT = (
    "topic=orders/00000-00000000000000000090-00000000000000000099.parquet",
    "topic=orders/.x.0123456789ab.tmp",
)
TWO_HOURS = 7_200


@pytest.fixture
def sink(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A sink in which a job has landed, and two files that a killed batch left two hours ago."""
    with EmbeddedCluster(topics={"orders": 1}) as cluster:
        cluster.produce("orders", ["x"] * 10)
        assert call(capsys, *job(cluster.bootstrap_servers, tmp_path)).code == 0
    root = tmp_path / "raw"
    for name in LEFT:
        (root / name).write_bytes(b"12345")
        age(root / name, TWO_HOURS)
    (root / "notes.txt").write_text("somebody else's")
    age(root / "notes.txt", TWO_HOURS)
    return root


def age(path: Path, seconds: int) -> None:
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


@pytest.mark.spec("SP-79")
def test_without_apply_it_lists_and_says_what_to_type(sink: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "ingest", "gc", "--sink", f"parquet:{sink}")
    assert done.code == 0
    assert done.out.splitlines() == [f"{name}\t5" for name in sorted(LEFT)]
    assert done.err.startswith(
        "would remove 2 files, 10 B; nothing has changed yet. Type: python -m kclient "
    )
    assert all((sink / name).exists() for name in LEFT)
    typed = shlex.split(done.err.partition("python -m kclient ")[2])
    again = call(capsys, *typed)
    assert (again.code, again.err) == (0, "removed 2 files, 10 B\n")
    assert not any((sink / name).exists() for name in LEFT)
    assert (sink / "notes.txt").exists()
    assert all(Path(path).exists() for path in manifest.files(sink))
    assert manifest.count(sink) == 10
    assert call(capsys, "ingest", "gc", "--sink", f"parquet:{sink}").err == "nothing to remove\n"


@pytest.mark.spec("SP-79")
def test_young_files_stay_unless_asked_for(sink: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("ingest", "gc", "--sink", f"parquet:{sink}")
    assert call(capsys, *where, "--older-than", "3h").err == "nothing to remove\n"
    young = call(capsys, *where, "--older-than", "90m")
    assert young.err.rstrip().endswith("--older-than 90m --apply")
    [found] = call(capsys, *where, "--older-than", "0s", "--json").events
    assert list(found) == ["sink", "removed", "bytes", "files"]
    assert (found["removed"], found["bytes"]) == (False, 10)
    assert [file["path"] for file in found["files"]] == sorted(LEFT)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ([], 2, "Type: python -m kclient ingest gc --sink parquet:DIR"),
        (["--sink", "csv:x"], 2, "cannot be csv"),
        (["--sink", "table:lake.raw.orders"], 2, "which its own tools clean"),
        (["--sink", "parquet:/nowhere"], 2, "is not a sink with a manifest"),
        (["--sink", "parquet:/x", "--older-than", "soon"], 2, "must be a duration such as"),
    ],
)
def test_what_is_no_sink(
    arguments: list[str], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = call(capsys, "ingest", "gc", *arguments)
    assert (done.code, done.out) == (code, "")
    assert says in done.err


@pytest.mark.spec("SP-79")
def test_a_sink_at_work_is_left_alone(sink: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with locked(sink / manifest.DIRECTORY, "A job"):
        done = call(capsys, "ingest", "gc", "--sink", f"parquet:{sink}", "--apply")
    assert (done.code, done.out) == (8, "")
    assert "is in use" in done.err
    assert all((sink / name).exists() for name in LEFT)
