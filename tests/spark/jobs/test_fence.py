"""A driver that was killed, and tasks of its that live on: what the next run writes stays as it is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kclient.errors import SinkError
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink.atomic_files import begin_run, current_run
from kclient.spark.sink.manifest import DIRECTORY
from kclient.spark.sink.parquet import DirectTarget, write_batches
from kclient.spark.sink.row_layout import RowLayout
from kclient.spark.sink.sources import options_of, parsed
from tests.spark.test_direct import records

WANTED = OffsetRange("orders", 0, 0, 2)
FILE = f"topic=orders/00000-{0:020d}-{2:020d}.parquet"
SOURCE = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "orders"}


def old_and_new(root: Path, **settings: str) -> tuple[DirectTarget, DirectTarget]:
    """Targets of two runs with different schemas, as their tasks get them from Spark."""
    without = DirectTarget(root=str(root), layout=RowLayout(headers=False), **settings)
    _, old = parsed(options_of(SOURCE, without.of_new_run()), "batch")
    _, new = parsed(options_of(SOURCE, DirectTarget(root=str(root), **settings).of_new_run()), "batch")
    return old, new


def test_a_task_of_a_killed_driver_replaces_no_file_of_the_next_run(tmp_path: Path) -> None:
    without = DirectTarget(root=str(tmp_path), layout=RowLayout(headers=False)).of_new_run()

    def read_slowly() -> Iterator[pa.RecordBatch]:
        """The next run begins and ends while this task waits for records."""
        with_headers = DirectTarget(root=str(tmp_path)).of_new_run()
        write_batches(WANTED, [records(0, 2, columns=with_headers.layout.read())], with_headers)
        yield records(0, 2, columns=without.layout.read())

    with pytest.raises(SinkError, match="A newer run owns"):
        write_batches(WANTED, read_slowly(), without)
    assert "_headers" in pq.read_schema(tmp_path / FILE).names
    assert [path.name for path in (tmp_path / FILE).parent.iterdir()] == [Path(FILE).name]


def test_dead_letters_are_fenced_too(tmp_path: Path) -> None:
    old, _ = old_and_new(tmp_path / "sink", dead=str(tmp_path / "dead"))
    begin_run([tmp_path / "sink" / DIRECTORY])  # the sink's token alone
    with pytest.raises(SinkError, match=r"A newer run owns .*sink"):
        write_batches(WANTED, [records(0, 2, columns=old.layout.read())], old)
    _, new = old_and_new(tmp_path / "sink", dead=str(tmp_path / "dead"))
    begin_run([tmp_path / "dead" / DIRECTORY])
    with pytest.raises(SinkError, match=r"A newer run owns .*dead"):
        write_batches(WANTED, [records(0, 2, columns=new.layout.read())], new)


def test_a_new_run_waits_for_a_task_that_is_renaming(tmp_path: Path) -> None:
    token = begin_run([tmp_path])
    over = threading.Event()
    with current_run([tmp_path], token):
        waiting = threading.Thread(target=lambda: (begin_run([tmp_path]), over.set()))
        waiting.start()
        assert not over.wait(0.3)
    waiting.join(10)
    assert over.is_set()


def test_a_task_that_never_ends_its_renaming_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kclient.spark.sink.atomic_files.TRIES", 2)
    token = begin_run([tmp_path])
    with current_run([tmp_path], token), pytest.raises(SinkError, match="does not get on"):
        begin_run([tmp_path])
