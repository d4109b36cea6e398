"""The log of a Delta table in each form that a writer may give it: what a job has landed is found, and kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kclient.spark.sink import tables
from kclient.spark.sink.delta import DeltaSink
from kclient.spark.sink.tables import TableCommit, TableProgress
from tests.spark.delta_log_support import checkpoint_in_parts, checkpoint_of_version_2, forget_before
from tests.spark.delta_support import JOB, TP, created, other_writer, written
from tests.spark.memory_table import PausedRuntime

LATER = 2**60


@pytest.fixture
def sink(tmp_path: Path) -> DeltaSink:
    """A table with three batches of ten rows, in its versions 1 to 3."""
    sink = created(tmp_path)
    for batch in range(3):
        commit(sink, written(sink, batch))
    return sink


def commit(sink: DeltaSink, wanted: TableCommit) -> bool:
    return tables.commit(sink, wanted, PausedRuntime.seeded(1))


def progress(sink: DeltaSink, job: str = JOB) -> TableProgress | None:
    """What a new process reads."""
    fresh = DeltaSink(sink.url)
    return fresh.progress(fresh.load(), job)


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
