"""The log of a Delta table in each form that a writer may give it: what a job has landed is found, and kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest

from kclient.errors import SinkError
from kclient.spark.sink import atomic_files, delta
from kclient.spark.sink.delta import DeltaSink
from kclient.spark.sink.delta_log import TransactionLog
from kclient.spark.sink.tables import TableProgress
from kclient.types import TopicPartition
from tests.spark.delta_log_support import (
    checkpoint_in_parts,
    checkpoint_of_version_2,
    forget_before,
    log_of,
)
from tests.spark.delta_support import (
    JOB,
    LAYOUT,
    TP,
    commit,
    created,
    offsets,
    other_writer,
    progress,
    three_batches,
    written,
)

LATER = 2**60


@pytest.fixture
def sink(tmp_path: Path) -> DeltaSink:
    return three_batches(tmp_path)


# --- checkpoints


@pytest.mark.parametrize("checkpoint", [checkpoint_in_parts, checkpoint_of_version_2])
def test_files_that_only_a_checkpoint_names_are_no_garbage(
    sink: DeltaSink, checkpoint: Callable[[DeltaSink], object]
) -> None:
    checkpoint(sink)
    forget_before(sink, other_writer(sink).version())
    left = written(sink, 3).files
    assert progress(sink) == TableProgress(batch=2, offsets={TP: 30}, first={TP: 0})
    for _ in range(2):
        found = sink.garbage(LATER)
        sink.remove(found)
        assert [file.path for file in found] == [file.path for file in left]
        left = ()
    assert commit(sink, written(sink, 3))
    rows = sum(len(batch) for batch in sink.coordinates(sink.load(), ["orders"]))
    assert (rows, sink.rows(sink.load())) == (40, 40)


@pytest.mark.parametrize(
    "hint",
    [
        "[" * 100_000,
        "",
        '{"version":',
        "\udcff",
        "[]",
        "{}",
        '{"version":"3"}',
        '{"version":9}',
        '{"version":1}',
    ],
)
def test_a_hint_that_is_damaged_or_names_no_checkpoint_is_passed_over(sink: DeltaSink, hint: str) -> None:
    other_writer(sink).create_checkpoint()
    forget_before(sink, other_writer(sink).version())
    (log_of(sink) / "_last_checkpoint").write_bytes(hint.encode(errors="surrogateescape"))
    assert progress(sink) == TableProgress(batch=2, offsets={TP: 30}, first={TP: 0})
    assert commit(DeltaSink(sink.url), written(sink, 3))


def test_a_hint_at_an_older_checkpoint_that_nothing_follows_is_passed_over(sink: DeltaSink) -> None:
    for _ in range(2):
        table = other_writer(sink)
        table.create_checkpoint()
        kept = (log_of(sink) / "_last_checkpoint").read_bytes()
        commit(sink, written(sink, table.version()))
    (log_of(sink) / "_last_checkpoint").write_bytes(kept.replace(b":4", b":3"))
    forget_before(sink, 5)
    assert progress(sink) == TableProgress(batch=4, offsets={TP: 50}, first={TP: 0})


OTHER = TopicPartition("orders", 1)


@pytest.fixture
def of_two(tmp_path: Path) -> DeltaSink:
    """A table with a batch of one partition, and two of another one."""
    sink = created(tmp_path)
    for batch, tp in enumerate((TP, OTHER, OTHER)):
        commit(sink, written(sink, batch, tp=tp))
    return sink


@pytest.mark.parametrize("kept", [1, 2])
def test_a_checkpoint_that_lacks_a_part_is_not_read(of_two: DeltaSink, kept: int) -> None:
    """A writer died between its parts: what is in the other one would be unknown, and land again."""
    checkpoint_in_parts(of_two, kept)
    assert progress(of_two) == TableProgress(batch=2, offsets={TP: 10, OTHER: 30}, first={TP: 0, OTHER: 10})
    again = attrs.evolve(written(of_two, 0), batch=3)
    with pytest.raises(SinkError, match=r"batch 3 does not follow on it \(orders-0\)"):
        commit(DeltaSink(of_two.url), again)
    assert offsets(of_two) == list(range(30))


def test_a_partition_that_delta_rs_knows_and_the_log_does_not_is_not_begun(
    of_two: DeltaSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = TransactionLog.transactions

    def overlooking(self: TransactionLog, *args: Any) -> Mapping[str, int]:
        return {name: number for name, number in works(self, *args).items() if "/orders/0" not in name}

    monkeypatch.setattr(TransactionLog, "transactions", overlooking)
    with pytest.raises(SinkError, match="delta-rs reads orders-0 of nightly up to 10, and kclient does not"):
        commit(of_two, attrs.evolve(written(of_two, 0), batch=3))
    assert offsets(of_two) == list(range(30))


# --- what a run has read before


def test_a_table_that_was_made_again_with_as_many_versions_is_another_one(sink: DeltaSink) -> None:
    running = DeltaSink(sink.url)
    assert running.progress(running.load(), JOB)
    shutil.rmtree(sink.url)
    created(Path(sink.url).parent)
    for batch in range(4):
        commit(sink, written(sink, batch, job="another", tp=OTHER))
    assert running.family(running.load(), JOB) == {}
    assert commit(running, written(sink, 0))
    wanted = TableProgress(batch=0, offsets={TP: 10}, first={TP: 0})
    assert progress(sink) == wanted == running.progress(running.load(), JOB)


# --- what survives a loss of power


def test_a_creation_and_new_columns_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As each commit is: else the checkpoint of a job could know a table that is not there any more."""
    synced, syncs = list[Path](), atomic_files.sync

    def sync(path: Path) -> None:
        synced.append(path)
        syncs(path)

    monkeypatch.setattr(atomic_files, "sync", sync)
    monkeypatch.setattr(delta, "sync", sync)
    sink = created(tmp_path / "new")
    log, table = log_of(sink), Path(sink.url)
    assert synced == [tmp_path / "new", tmp_path, log / f"{0:020d}.json", log, table]
    synced.clear()
    sink.prepare(LAYOUT.schema().append(pa.field("note", pa.string())), ("topic",), evolves=True)
    assert synced == [log / f"{1:020d}.json", log]
