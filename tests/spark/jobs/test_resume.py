"""Where a job goes on whose checkpoint and table disagree."""

from __future__ import annotations

import itertools
import logging
import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError, DataLossError, SinkError
from kclient.spark.ingest.checkpoint import Checkpoint, Position
from kclient.spark.ingest.progress import BatchProgress
from kclient.spark.ingest.resume import position_in
from kclient.spark.sink.tables import LakeTable, TableCommit, TableProgress, next_progress, topic_mark
from kclient.types import TopicPartition
from tests.spark.jobs.delta_job_support import DeltaLake
from tests.spark.jobs.iceberg_support import Lake
from tests.spark.jobs.support import Landed, RecordingReporter, fill, offsets_file, rows, run
from tests.spark.jobs.table_support import TableLake, assert_exactly_once
from tests.spark.memory_table import MemoryTable, Version

TP, OTHER = TopicPartition("flights", 0), TopicPartition("flights", 1)
STANDS = TableProgress(batch=4, offsets={TP: 101, OTHER: 159})


class FoundTable(MemoryTable):
    """A table that is there."""

    def find(self) -> Version:
        return self.newest


def resumed(tmp_path: Path, position: Position) -> tuple[Position | None, TableProgress | None]:
    table = cast(LakeTable[Any], FoundTable(newest=Version(jobs={"j": STANDS})))
    return position_in(table, "j", Checkpoint(tmp_path), position)


def test_a_batch_that_was_begun_after_the_table_ends_where_it_was_to_end(tmp_path: Path) -> None:
    position = Position(5, STANDS.offsets, {TP: 120, OTHER: 159})
    assert resumed(tmp_path, position) == (position, None)


@pytest.mark.parametrize("end", [{TP: 66, OTHER: 180}, {TP: 120}], ids=["behind", "without a partition"])
def test_an_end_that_a_run_of_another_history_has_begun_is_not_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, end: dict[TopicPartition, int]
) -> None:
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        found = resumed(tmp_path, Position(5, STANDS.offsets, end))
    assert found == (Position(5, STANDS.offsets), STANDS)
    assert "up to batch 4: the job goes on after that, as the table says" in caplog.text


class Died(BaseException):
    """As if the process were killed."""


class DyingStore:
    """A store that goes along with so many changes, and dies before the next one."""

    def __init__(self, checkpoint: Checkpoint, changes: int) -> None:
        self._store, self._left = checkpoint._store, changes
        checkpoint._store = self  # type: ignore[misc, assignment]

    def __getattr__(self, name: str) -> Any:
        if name in ("put", "put_if_absent", "delete"):
            self._left -= 1
            if self._left < 0:
                raise Died
        return getattr(self._store, name)


def filled(directory: Path, batches: int, *, begun: bool) -> None:
    """A checkpoint of some batches that are done, and of one that is begun."""
    checkpoint = Checkpoint(directory)
    if batches or begun:
        checkpoint.store_start({TP: 0, OTHER: 0})
    for number in range(batches + begun):
        checkpoint.begin(number, {TP: number, OTHER: number})
    for number in range(batches):
        checkpoint.commit(number)


@pytest.mark.parametrize("begun", [False, True], ids=["done", "begun"])
@pytest.mark.parametrize("batches", [0, 2, 5, 9])
def test_a_run_that_dies_while_it_adopts_leaves_a_checkpoint_that_the_next_one_can_adopt(
    tmp_path: Path, batches: int, *, begun: bool
) -> None:
    table = cast(LakeTable[Any], FoundTable(newest=Version(jobs={"j": STANDS})))
    for changes in itertools.count():
        directory = tmp_path / str(changes)
        filled(directory, batches, begun=begun)
        dying = Checkpoint(directory)
        DyingStore(dying, changes)
        try:
            dying.adopt(STANDS.batch, STANDS.offsets, STANDS.first)
        except Died:
            pass
        else:
            break
        checkpoint = Checkpoint(directory)
        position, adopted = position_in(table, "j", checkpoint, checkpoint.position())
        assert position == Position(5, STANDS.offsets)
        assert adopted is not None
        checkpoint.adopt(adopted.batch, adopted.offsets, adopted.first)
        assert checkpoint.position() == position
        assert checkpoint.offsets(3) == STANDS.offsets  # which Spark wants too
    assert changes > 4


@pytest.mark.parametrize("batches", [0, 2])
def test_a_batch_that_a_run_of_before_begins_in_a_checkpoint_without_its_start_is_left_out(
    tmp_path: Path, batches: int
) -> None:
    filled(tmp_path, batches, begun=False)
    before = Checkpoint(tmp_path).position()
    Checkpoint(tmp_path).begin(batches + 1, {TP: 66, OTHER: 70})
    with pytest.raises(SinkError, match="it is missing"):  # in a directory, where a lock excludes such a run
        Checkpoint(tmp_path).position()
    shared = Checkpoint(tmp_path)
    shared._is_shared = True  # type: ignore[misc]
    assert shared.position() == before


# --- a topic that was recreated


@pytest.mark.parametrize("kind", [Lake, DeltaLake])
def test_a_recreated_topic_is_recognised_without_the_checkpoint(
    cluster: EmbeddedCluster, tmp_path: Path, kind: type[TableLake]
) -> None:
    """Its offsets begin at 0 again: the table would take those of other records for landed ones."""
    lake, wanted = kind(tmp_path), fill(cluster, 30)
    lake.run(cluster)
    shutil.rmtree(lake.checkpoint)
    wanted += fill(cluster, 3, first=30)
    lake.run(cluster)
    shutil.rmtree(lake.checkpoint)
    cluster.recreate_topic("orders")
    fill(cluster, 60)
    with pytest.raises(ConfigError, match=r"topic orders was deleted and recreated since: .* a --job and a"):
        lake.run(cluster)
    assert not lake.checkpoint.exists()
    assert_exactly_once(lake, wanted)


# --- offsets that come again under a job with --accept-data-loss


LOSSY: dict[str, Any] = {"fail_on_data_loss": False, "options": {"fetchOffset.numRetries": "0"}}


def test_a_log_that_was_cut_ends_the_job_of_a_table_and_another_job_lands_what_is_new(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    lake, wanted = DeltaLake(tmp_path), fill(cluster, 150)
    lake.run(cluster, **LOSSY)
    cluster.truncate("orders", 0, 10)
    values = [b"new %d" % n for n in range(20)]
    places = cluster.produce("orders", values, partition=0)
    before = Checkpoint(lake.checkpoint).position()
    for _ in range(2):
        with pytest.raises(
            DataLossError, match=r"was changed from 50 to 30.* with --start at a file of offsets"
        ):
            lake.run(cluster, **LOSSY)
    assert Checkpoint(lake.checkpoint).position() == before
    assert_exactly_once(lake, wanted)
    start = offsets_file(tmp_path, 10, 50, 50)
    lake.run(cluster, job="new", checkpoint=str(tmp_path / "new"), start=start, **LOSSY)
    wanted += [Landed("orders", *at, value) for at, value in zip(places, values, strict=True)]
    assert_exactly_once(lake, wanted)


@pytest.mark.parametrize("into", ["delta", "parquet"])
def test_a_topic_that_is_recreated_under_a_job_ends_it(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, into: str
) -> None:
    wanted, real = fill(cluster, 150), RecordingReporter.batch

    def recreated(self: RecordingReporter, progress: BatchProgress) -> None:
        real(self, progress)
        if progress.batch == 2:
            cluster.recreate_topic("orders")
            fill(cluster, 150)

    monkeypatch.setattr(RecordingReporter, "batch", recreated)
    lake = DeltaLake(tmp_path)
    changed = lake.settings(**LOSSY) if into == "delta" else LOSSY
    with pytest.raises(DataLossError, match="topic orders was recreated: its id was"):
        run(cluster, tmp_path, **changed)
    if into == "delta":
        assert_exactly_once(lake, wanted)
    else:
        assert rows(tmp_path / "sink") == sorted(wanted)


def test_progress_names_topics_whose_id_has_changed() -> None:
    old, new = "00112233445566778899aabbccddeeff", "f0112233445566778899aabbccddeeff"
    progress = next_progress(
        None, TableCommit(job="j", batch=0, start={}, end={TP: 7}, topics={"flights": topic_mark(old)})
    )
    assert progress.recreated({"flights": old, "other": new}) == []
    assert progress.recreated({"flights": new, "other": new}) == ["flights"]
    assert progress.recreated({}) == []  # a broker without ids
    assert TableProgress.parse(progress.dump()) == progress
    assert 0 <= topic_mark("f" * 32) < 2**63
    with pytest.raises(ValueError, match="its topics cannot be"):
        TableProgress.parse(progress.dump().replace(str(topic_mark(old)), '"x"'))
