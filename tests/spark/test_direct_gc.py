"""What killed batches left is taken away; a file that counts never is."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kclient.errors import SinkError
from kclient.runtime import Runtime
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink import manifest, store
from kclient.spark.sink.atomic_files import locked, temporary_name
from kclient.spark.sink.manifest import Garbage, Manifest, WrittenFile, batch_name, gc
from kclient.spark.sink.parquet import file_name
from kclient.spark.sink.store import ObjectStore, memory_store
from kclient.types import TopicPartition

RANGES = [OffsetRange("orders", 0, start, start + 10) for start in range(0, 100, 10)]
FILES = [file_name(wanted, date) for wanted in RANGES for date in (None, "2013-01-01")]


def put(sink: Path, name: str) -> None:
    (sink / name).parent.mkdir(parents=True, exist_ok=True)
    (sink / name).write_bytes(b"12345")


def name_in_manifest(sink: Path, names: list[str]) -> None:
    tp = TopicPartition("orders", 0)
    files = [
        WrittenFile(path=name, topic="orders", partition=0, start=0, end=10, rows=1, bytes=5)
        for name in names
    ]
    manifest.write(
        sink, Manifest(job="j", name=batch_name(0), start={tp: 0}, end={tp: 10}, files=tuple(files))
    )


@pytest.mark.spec("SP-79")
@given(there=st.sets(st.sampled_from(FILES)), named=st.sets(st.sampled_from(FILES)))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_named_file_is_never_taken_away(
    tmp_path_factory: pytest.TempPathFactory, there: set[str], named: set[str]
) -> None:
    sink = tmp_path_factory.mktemp("sink")
    for name in there | named:
        put(sink, name)
    name_in_manifest(sink, sorted(named))
    unnamed = sorted(there - named)
    assert [file.path for file in gc(sink, min_age_ms=0)] == unnamed
    assert all((sink / name).exists() for name in there | named)
    assert [file.path for file in gc(sink, min_age_ms=0, apply=True)] == unnamed
    assert {str(path.relative_to(sink)) for path in sink.rglob("*.parquet")} == named
    assert gc(sink, min_age_ms=0) == []


@pytest.mark.spec("SP-79")
def test_temporary_files_go_and_what_others_put_there_stays(tmp_path: Path) -> None:
    name_in_manifest(tmp_path, [])
    hidden = [
        temporary_name(tmp_path / FILES[1]),
        temporary_name(tmp_path / "_manifest" / "000000000001.json"),
    ]
    theirs = ["notes.txt", "topic=orders/mine.parquet", "_manifest/readme.tmp"]
    for name in [*(str(path.relative_to(tmp_path)) for path in hidden), *theirs]:
        put(tmp_path, name)
    assert gc(tmp_path, min_age_ms=0, apply=True) == [
        Garbage(str(path.relative_to(tmp_path)), 5) for path in sorted(hidden)
    ]
    assert all((tmp_path / name).exists() for name in theirs)
    assert (tmp_path / "_manifest" / "000000000000.json").exists()


@pytest.mark.spec("SP-79")
def test_hidden_files_of_a_sink_below_stay(tmp_path: Path) -> None:
    """Its job may be running: it holds a lock of its own."""
    name_in_manifest(tmp_path, [])
    name_in_manifest(tmp_path / "orders", [])
    wanted = [
        temporary_name(tmp_path / place / name)
        for place in ("orders", "topic=orders/orders")
        for name in (FILES[0], FILES[1], "_manifest/000000000001.json")
    ]
    for path in wanted:
        put(tmp_path, str(path.relative_to(tmp_path)))
    assert gc(tmp_path, min_age_ms=0, apply=True) == []
    assert all(path.exists() for path in wanted)


@pytest.mark.spec("SP-79")
def test_what_is_young_stays_for_an_hour(tmp_path: Path) -> None:
    name_in_manifest(tmp_path, [])
    put(tmp_path, FILES[0])
    assert gc(tmp_path) == []
    later = attrs.evolve(Runtime(), wall_clock=lambda: (tmp_path / FILES[0]).stat().st_mtime + 3601)
    assert [file.path for file in gc(tmp_path, runtime=later)] == [FILES[0]]


@pytest.mark.spec("SP-79")
def test_a_sink_at_work_is_left_alone(tmp_path: Path) -> None:
    name_in_manifest(tmp_path, [])
    put(tmp_path, FILES[0])
    with locked(tmp_path / "_manifest", "The test"), pytest.raises(SinkError, match="in use"):
        gc(tmp_path, min_age_ms=0, apply=True)
    assert (tmp_path / FILES[0]).exists()


def test_a_directory_without_a_manifest_is_no_sink(tmp_path: Path) -> None:
    put(tmp_path, FILES[0])
    assert gc(tmp_path, min_age_ms=0, apply=True) == []
    assert (tmp_path / FILES[0]).exists()


@pytest.mark.spec("SP-78")
@pytest.mark.parametrize(
    "path", ["../../etc/passwd", "topic=orders/../../x.parquet", "/etc/passwd", "a\0b", ".."]
)
def test_a_manifest_cannot_lead_out_of_its_sink(tmp_path: Path, path: str) -> None:
    name_in_manifest(tmp_path, [path])
    with pytest.raises(SinkError, match="it names a file outside of the sink"):
        manifest.files(tmp_path)


@pytest.mark.spec("SP-78")
def test_a_lock_does_not_follow_a_link(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    (tmp_path / "sink").mkdir()
    (tmp_path / "sink" / ".lock").symlink_to(target)
    with pytest.raises(SinkError, match="Writing below"), locked(tmp_path / "sink", "A job"):
        pass
    assert not target.exists()


# --- in an object store, beside a job --------------------------------------------------------------------------------


URL = "s3://lake/raw"
HERE = TopicPartition("orders", 0)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    found = memory_store()
    monkeypatch.setattr(store, "_remote_store", lambda url, options: found)
    return found


def attempt(batch: int, token: str) -> str:
    """The name that one attempt at ten records gives to its file."""
    return file_name(RANGES[0], suffix=f"-{batch_name(batch)}-{token * 16}-{token * 8}")


def commit(batch: int, start: int, end: int, *names: str, is_final: bool = True) -> None:
    files = tuple(
        WrittenFile(path=name, topic="orders", partition=0, start=0, end=10, rows=10, bytes=5)
        for name in names
    )
    whole = Manifest(
        job="j", name=batch_name(batch), start={HERE: start}, end={HERE: end}, files=files, is_final=is_final
    )
    assert manifest.create(URL, whole)


def collected() -> list[str]:
    return [file.path for file in gc(URL, apply=True, min_age_ms=-1000)]


def test_files_of_a_batch_at_work_stay_where_offsets_come_again(bucket: ObjectStore) -> None:
    """The log was cut to nothing after batch 0, so batch 2 has the same offsets."""
    names = [attempt(0, "a"), attempt(0, "b"), attempt(2, "c"), attempt(2, "d")]
    bucket.put(names[0], b"12345")
    commit(0, 0, 10, names[0])
    commit(1, 10, 0)
    for name in names[1:]:
        bucket.put(name, b"12345")
    assert collected() == [names[1]]
    commit(2, 0, 10, names[2])
    assert collected() == [names[3]]
    assert all(bucket.read(name) for name in (names[0], names[2]))


def test_a_manifest_need_not_have_an_end_of_each_partition_that_it_starts(bucket: ObjectStore) -> None:
    """As of a topic that was deleted meanwhile, of a job with --accept-data-loss."""
    left = attempt(1, "a")
    bucket.put(left, b"12345")
    gone = TopicPartition("gone", 0)
    manifest.create(
        URL, Manifest(job="j", name=batch_name(1), start={HERE: 0, gone: 7}, end={HERE: 0}, is_final=True)
    )
    assert collected() == [left]


def test_a_manifest_that_may_be_replaced_decides_about_older_files_only(
    bucket: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = attempt(0, "a"), attempt(0, "b")
    bucket.put(old, b"12345")
    commit(0, 0, 10, is_final=False)
    bucket.put(new, b"12345")
    times = {old: 1_000, manifest._key(batch_name(0)): 2_000, new: 3_000}
    real = ObjectStore.list
    monkeypatch.setattr(
        ObjectStore,
        "list",
        lambda self, prefix="": (
            attrs.evolve(found, modified_ms=times[found.key]) for found in real(self, prefix)
        ),
    )
    assert collected() == [old]
