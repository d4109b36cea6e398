"""Ingest without Spark into an object store, which has no lock: exactly once, whatever is killed or runs twice."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError, SinkError
from kclient.spark.ingest import run as ingest
from kclient.spark.ingest.batch_commit import BatchCommitter
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.ingest.progress import CheckpointState
from kclient.spark.ingest.run_epoch import RunEpoch
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.sink import manifest, parquet
from kclient.spark.sink.store import ObjectStore, store_of
from tests.s3 import Bucket
from tests.spark.jobs import killing
from tests.spark.jobs.support import (
    Landed,
    RecordingReporter,
    assert_exactly_once,
    ends,
    fill,
    given,
    rows,
    run,
)

pytestmark = pytest.mark.timeout(90)


def places(s3: Bucket, **changed: Any) -> dict[str, Any]:
    """The settings of a job whose sink and checkpoint are in a bucket."""
    return {"sink": f"parquet:{s3.url('raw')}", "checkpoint": s3.url("checkpoint"), **changed}


def unnamed(s3: Bucket, *places: str) -> list[str]:
    """The keys of files that count nowhere."""
    files = (path for place in places or ("raw",) for path in manifest.files(s3.url(place)))
    named = {path.removeprefix(f"s3://{s3.name}/") for path in files}
    return [key for key in s3.listed() if key.endswith(".parquet") and key not in named]


def test_what_is_there_lands_in_batches_and_the_next_run_continues(
    cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket
) -> None:
    wanted = fill(cluster, 150)
    reporter = run(cluster, tmp_path, **places(s3))
    assert [(batch.batch, batch.rows) for batch in reporter.batches] == [(0, 60), (1, 60), (2, 30)]
    assert cluster.committed("lake") == ends(wanted)
    wanted += fill(cluster, 10, first=150)
    again = run(cluster, tmp_path, **places(s3))
    assert again.plans[0].checkpoint == CheckpointState("resume", 3)
    assert_exactly_once(s3.url("raw"), wanted)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert unnamed(s3) == []


def test_workers_write_through_the_store(cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket) -> None:
    wanted = fill(cluster, 150)
    run(cluster, tmp_path, **places(s3, parallelism=2))
    assert_exactly_once(s3.url("raw"), wanted)


@pytest.mark.parametrize(
    ("step", "times"),
    [(step, 0) for step in killing.OBJECT_STORE_STEPS]
    + [(step, 2) for step in ("after the offsets are written", "after an upload", "after the manifest")],
)
def test_killed_at_any_step_each_record_counts_once(
    cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket, step: str, times: int
) -> None:
    """Every tenth record is a dead letter, so both manifests are written."""
    wanted, dead = with_bad_records(cluster, 150)
    more = decoding(s3)
    settings = given(cluster.bootstrap_servers, tmp_path, **places(s3, **more))
    assert killing.killed(settings, step, times) == -9
    added, bad = with_bad_records(cluster, 20, first=150)
    wanted, dead = wanted + added, dead + bad
    reporter = run(cluster, tmp_path, **places(s3, **more))
    assert reporter.results[0].ended == "drained"
    assert_places(s3, wanted, dead)
    assert cluster.committed("lake") == ends(wanted + dead)
    batches = reporter.plans[0].checkpoint.next_batch + len(reporter.batches)
    assert manifest.names(s3.url("raw")) == [f"{n:012d}" for n in range(batches)]
    manifest.gc(s3.url("raw"), apply=True, min_age_ms=0)
    manifest.gc(s3.url("dead"), apply=True, min_age_ms=0)
    assert unnamed(s3, "raw", "dead") == []
    assert_places(s3, wanted, dead)


def decoding(s3: Bucket) -> dict[str, Any]:
    return {
        "format": "json",
        "schema": "n bigint",
        "on_bad_record": "dlq",
        "dlq": f"parquet:{s3.url('dead')}",
    }


def with_bad_records(
    cluster: EmbeddedCluster, count: int, first: int = 0
) -> tuple[list[Landed], list[Landed]]:
    """Publish JSON, every tenth damaged. The rows that land, and the dead letters, without their values."""
    values = [b"no json" if n % 10 == 9 else b'{"n": %d}' % n for n in range(first, first + count)]
    found = [
        (Landed("orders", *at, None), value)
        for at, value in zip(cluster.produce("orders", values), values, strict=True)
    ]
    good = [row for row, value in found if value != b"no json"]
    return good, [row for row, value in found if value == b"no json"]


def assert_places(s3: Bucket, wanted: list[Landed], dead: list[Landed]) -> None:
    assert_exactly_once(s3.url("raw"), wanted)
    assert_exactly_once(s3.url("dead"), dead)


# --- two runs at once ------------------------------------------------------------------------------------------------


def during(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, when: str, act: Callable[[], object]
) -> None:
    """Do something once in the middle of a run: the rest of that run is the zombie's."""
    works, done = getattr(owner, name), False

    def interrupted(*args: Any, **named: Any) -> Any:
        nonlocal done
        if not done and when == "before":
            done = True
            act()
        result = works(*args, **named)
        if not done:
            done = True
            act()
        return result

    monkeypatch.setattr(owner, name, interrupted)


MOMENTS = [
    (Checkpoint, "begin", "before"),
    (Checkpoint, "begin", "after"),
    (parquet.Upload, "finish", "before"),
    (parquet.Upload, "finish", "after"),
    (RunEpoch, "check", "after"),  # it goes on although a newer run has begun
    (manifest, "create", "before"),
    (manifest, "create", "after"),
    (Checkpoint, "commit", "before"),
    (Checkpoint, "commit", "after"),
]


@pytest.mark.parametrize(("owner", "name", "when"), MOMENTS)
def test_a_run_that_goes_on_after_a_newer_one_is_fenced(
    cluster: EmbeddedCluster,
    tmp_path: Path,
    s3: Bucket,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    when: str,
) -> None:
    """The newer run begins and ends, with more records, while the older one stands still at this moment."""
    wanted = fill(cluster, 150)

    def newer() -> None:
        wanted.extend(fill(cluster, 40, first=150))
        assert run(cluster, tmp_path, **places(s3, max_per_trigger=50)).results[0].ended == "drained"

    during(monkeypatch, owner, name, when, newer)
    with pytest.raises(SinkError, match=r"A newer run of this job works on .*this run is fenced"):
        run(cluster, tmp_path, **places(s3))
    assert_exactly_once(s3.url("raw"), wanted)
    counted = rows(s3.url("raw"))
    manifest.gc(s3.url("raw"), apply=True, min_age_ms=0)
    assert unnamed(s3) == []
    assert rows(s3.url("raw")) == counted
    wanted += fill(cluster, 10, first=190)
    run(cluster, tmp_path, **places(s3))
    assert_exactly_once(s3.url("raw"), wanted)


@pytest.mark.parametrize(("owner", "name", "when"), MOMENTS)
def test_two_runs_that_no_check_fences_count_nothing_twice(
    cluster: EmbeddedCluster,
    tmp_path: Path,
    s3: Bucket,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    when: str,
) -> None:
    """As if every check came just before the newer run began: what is created once must do it alone."""
    wanted = fill(cluster, 150)
    real_check = RunEpoch.check

    def newer() -> None:
        monkeypatch.setattr(RunEpoch, "check", real_check)
        wanted.extend(fill(cluster, 40, first=150))
        run(cluster, tmp_path, **places(s3, max_per_trigger=50))
        monkeypatch.setattr(RunEpoch, "check", lambda self: None)

    during(monkeypatch, owner, name, when, newer)
    if name != "check":
        monkeypatch.setattr(RunEpoch, "check", lambda self: None)
    with suppress(SinkError):
        run(cluster, tmp_path, **places(s3))
    monkeypatch.setattr(RunEpoch, "check", real_check)
    wanted += fill(cluster, 10, first=190)
    run(cluster, tmp_path, **places(s3))
    assert_exactly_once(s3.url("raw"), wanted)


def test_two_first_runs_at_once_agree_on_one_job(
    cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = fill(cluster, 50)
    during(monkeypatch, Checkpoint, "claim", "before", lambda: run(cluster, tmp_path, **places(s3)))
    with pytest.raises(SinkError, match=r"Another run has made the checkpoint .* its own meanwhile"):
        run(cluster, tmp_path, **places(s3))
    run(cluster, tmp_path, **places(s3))
    assert_exactly_once(s3.url("raw"), wanted)


def test_another_checkpoint_cannot_land_in_the_sink_of_a_job(
    cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other job begins at the same time, so only the manifest can tell."""
    wanted = fill(cluster, 150)
    other = places(s3, checkpoint=s3.url("other"))
    during(monkeypatch, manifest, "create", "before", lambda: run(cluster, tmp_path, **other))
    with pytest.raises(SinkError, match="is not this checkpoint's batch 0"):
        run(cluster, tmp_path, **places(s3))
    assert_exactly_once(s3.url("raw"), wanted)
    with pytest.raises(SinkError, match="of another job"):
        run(cluster, tmp_path, **places(s3))


def test_a_lost_answer_to_the_manifest_is_looked_up(
    cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The object was written, and the answer says that it was there already: it is this run's own."""
    wanted = fill(cluster, 150)
    real = ObjectStore.put_if_absent

    def twice(self: ObjectStore, key: str, content: bytes) -> bool:
        real(self, key, content)
        return real(self, key, content)

    monkeypatch.setattr(ObjectStore, "put_if_absent", twice)
    assert run(cluster, tmp_path, **places(s3)).results[0].rows == 150
    assert_exactly_once(s3.url("raw"), wanted)


def test_the_oldest_runs_are_forgotten_and_the_numbers_grow(s3: Bucket) -> None:
    where = s3.url("checkpoint")
    runs = [RunEpoch(where, f"token {n}") for n in range(15)]
    for epoch in runs:
        epoch.claim()
    assert [epoch.number for epoch in runs] == list(range(1, 16))
    assert len(list(store_of(where).list("kclient/runs"))) == 10
    runs[-1].check()
    for epoch in runs[:-1]:
        with pytest.raises(SinkError, match="fenced"):
            epoch.check()


def test_a_checkpoint_that_was_put_back_to_a_copy_fences_the_runs_from_before(
    cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket
) -> None:
    """Its runs are numbered lower than those that have landed in the sink."""
    wanted, store = fill(cluster, 50), store_of(s3.url("checkpoint"))
    run(cluster, tmp_path, **places(s3))
    kept = {found.key for found in store.list()}
    run(cluster, tmp_path, **places(s3))
    wanted += fill(cluster, 50, first=50)
    run(cluster, tmp_path, **places(s3))
    older = RunEpoch(s3.url("checkpoint"), "older")
    older.claim()
    assert older.number == 4
    for found in store.list():
        if found.key not in {*kept, "offsets/1"}:  # batch 1 was begun when the copy was made
            store.delete(found.key)
    with pytest.raises(SinkError, match=r"has lost kclient/runs/000000000004, .* put back to a copy"):
        older.check()
    wanted += fill(cluster, 10, first=100)
    run(cluster, tmp_path, **places(s3))  # the manifest of batch 1 is of run 3
    assert max(found.key for found in store.list("kclient/runs")) == "kclient/runs/000000000004"
    assert_exactly_once(s3.url("raw"), wanted)


# --- what is cleaned up, shown and refused ---------------------------------------------------------------------------


def test_gc_keeps_what_a_batch_may_still_name(cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket) -> None:
    """The files of a batch without a manifest stay, whatever their age; another attempt's go once it has landed."""
    wanted = fill(cluster, 50)
    settings = given(cluster.bootstrap_servers, tmp_path, **places(s3))
    assert killing.killed(settings, "before the manifest", 0) == -9
    left = [key for key in s3.listed() if key.endswith(".parquet")]
    assert len(left) == 3
    assert manifest.gc(s3.url("raw"), apply=True, min_age_ms=0) == []
    run(cluster, tmp_path, **places(s3))
    assert manifest.gc(s3.url("raw"), apply=True) == [], "younger than an hour"
    found = manifest.gc(s3.url("raw"), min_age_ms=0)
    assert [f"raw/{file.path}" for file in found] == sorted(left)
    assert manifest.gc(s3.url("raw"), apply=True, min_age_ms=0) == found
    assert unnamed(s3) == []
    assert_exactly_once(s3.url("raw"), wanted)


def test_gc_keeps_dead_letters_whose_manifest_is_about_to_be_replaced(
    cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sink is in a directory, so the manifest of the dead letters comes first: a killed run has left one."""
    wanted, dead = with_bad_records(cluster, 50)
    more = {**decoding(s3), "max_per_trigger": None}
    settings = given(cluster.bootstrap_servers, tmp_path, **more)
    assert killing.killed(settings, "after the manifest", 0) == -9  # the first one is of the dead letters
    left = set(s3.listed())
    for key in left:  # a while ago: the service knows only seconds
        path = s3.server.data / s3.name / key
        os.utime(path, (path.stat().st_mtime - 10,) * 2)
    during(
        monkeypatch,
        manifest,
        "write",
        "before",
        lambda: manifest.gc(s3.url("dead"), apply=True, min_age_ms=0),
    )
    run(cluster, tmp_path, **more)
    assert_exactly_once(tmp_path / "sink", wanted)
    assert_exactly_once(s3.url("dead"), dead)
    assert left & set(s3.listed()) == {"dead/_kclient/owner.json", "dead/_manifest/000000000000.json"} | {
        key for key in left if key.endswith(".parquet")
    }
    manifest.gc(s3.url("dead"), apply=True, min_age_ms=0)
    assert unnamed(s3, "dead") == []
    assert_exactly_once(s3.url("dead"), dead)


def test_dead_letters_land_again_from_an_object_store(
    cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket
) -> None:
    wanted, dead = with_bad_records(cluster, 50)
    run(cluster, tmp_path, **places(s3, **decoding(s3)))
    assert_places(s3, wanted, dead)
    again = {"from_dlq": f"parquet:{s3.url('dead')}", "format": "string"}
    for _ in range(2):
        run(cluster, tmp_path, **places(s3, **again))
    assert [(row.partition, row.offset) for row in rows(s3.url("raw"))] == [
        (row.partition, row.offset) for row in sorted(wanted + dead)
    ]
    manifest.gc(s3.url("raw"), apply=True, min_age_ms=0)
    assert manifest.count(s3.url("raw")) == len(rows(s3.url("raw"))) == 50


def test_sink_and_checkpoint_may_be_in_different_places(
    cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket
) -> None:
    wanted = fill(cluster, 50)
    run(cluster, tmp_path / "one", sink=f"parquet:{s3.url('one')}")
    run(cluster, tmp_path / "two", checkpoint=s3.url("two"), group=None)
    assert_exactly_once(s3.url("one"), wanted)
    assert_exactly_once(tmp_path / "two" / "sink", wanted)


def test_a_dry_run_writes_nothing(cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket) -> None:
    fill(cluster, 50)
    settings = IngestSettings.parse(given(cluster.bootstrap_servers, tmp_path, **places(s3)))
    assert ingest.plan(settings).backlog_rows == 50
    assert s3.listed() == []


def test_a_sink_that_lost_its_newest_batch_is_refused(
    cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket
) -> None:
    fill(cluster, 50)
    run(cluster, tmp_path, **places(s3))
    store_of(s3.url("raw")).delete("_manifest/000000000000.json")
    with pytest.raises(SinkError, match=r"s3://.*/raw does not hold batch 0"):
        run(cluster, tmp_path, **places(s3))


@pytest.mark.parametrize("where", ["sink", "checkpoint", "dlq"])
def test_a_store_that_ignores_conditions_is_refused_before_anything_is_written(
    cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def refuse(self: ObjectStore) -> None:
        if self.url.endswith({"sink": "raw", "checkpoint": "checkpoint", "dlq": "dead"}[where]):
            raise SinkError("ignores conditional writes")

    fill(cluster, 50)
    monkeypatch.setattr(ObjectStore, "check_conditional_writes", refuse)
    with pytest.raises(SinkError, match="ignores conditional writes"):
        run(cluster, tmp_path, **places(s3, **decoding(s3)))
    assert s3.listed() == []


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"engine": "spark", "writer": "spark"}, "--checkpoint must be a directory with --writer spark"),
        ({"engine": "spark", "writer": "spark"}, "--writer spark writes through Hadoop's file systems"),
        (
            {"sink": "parquet:s3://user:canary@b/raw"},
            "--sink cannot be used: The URL s3://… holds credentials",
        ),
        ({"checkpoint": "hdfs://a/b"}, "--checkpoint cannot be used: hdfs://"),
    ],
)
def test_what_cannot_be_done_there_is_refused(s3: Bucket, changed: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        IngestSettings.parse(given("localhost:1", Path("/nowhere"), **places(s3, **changed)))
    assert "canary" not in str(caught.value)


def test_an_epoch_is_kept_in_the_manifest(cluster: EmbeddedCluster, tmp_path: Path, s3: Bucket) -> None:
    fill(cluster, 50)
    reporter = RecordingReporter()
    run(cluster, tmp_path, **places(s3))
    fill(cluster, 50, first=50)
    ingest.run(
        IngestSettings.parse(given(cluster.bootstrap_servers, tmp_path, **places(s3))),
        reporter,
    )
    content = [
        json.loads(store_of(s3.url("raw")).read(f"_manifest/{name}.json") or b"")
        for name in manifest.names(s3.url("raw"))
    ]
    assert [found["epoch"] for found in content] == [1, 2]
    newer = manifest.read(s3.url("raw"), "000000000001")
    assert newer is not None
    older = BatchCommitter(s3.url("raw"), newer.job, epoch=RunEpoch(s3.url("checkpoint"), "a", 1))
    with pytest.raises(SinkError, match="fenced"):
        older.committed_manifest(1, newer.end)
