"""Where a job goes on whose checkpoint and table disagree."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, cast

import pytest

from kclient.spark.ingest.checkpoint import Checkpoint, Position
from kclient.spark.ingest.resume import position_in
from kclient.spark.sink.tables import LakeTable, TableProgress
from kclient.types import TopicPartition
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
