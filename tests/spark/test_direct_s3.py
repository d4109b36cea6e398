"""Direct Parquet on a real S3: an object appears whole, after the range, and no two attempts write the same one."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kclient.errors import CorruptDataError
from kclient.spark.ranges import COME_AGAIN, OffsetRange
from kclient.spark.sink import parquet
from kclient.spark.sink.parquet import DirectTarget, write_batches
from kclient.spark.sink.sources import options_of, parsed
from kclient.spark.sink.store import store_of
from tests.s3 import Bucket
from tests.spark.test_direct import NEW_YEAR_MS, records

RANGE = OffsetRange("flights", 3, 100, 250)
NAME = re.compile(
    r"topic=flights/(?:date=([0-9-]+)/)?00003-0{17}100-0{17}250-([0-9a-f]{16})-([0-9a-f]{8})\.parquet"
)
DAY_MS = 86_400_000


def table(bucket: Bucket, path: str) -> pa.Table:
    with store_of(bucket.url("raw")).open_read(path) as file:
        return pq.read_table(pa.PythonFile(file, mode="r"))


def test_a_range_becomes_one_object_after_its_last_record(s3: Bucket) -> None:
    target = DirectTarget(root=s3.url("raw"))

    def read() -> Iterator[Any]:
        yield records(100, 90)
        gc.collect()
        assert s3.listed() == []
        yield records(190, 60)

    [file] = write_batches(RANGE, read(), target).files
    found = NAME.fullmatch(file.path)
    assert found is not None
    assert found[2] == target.token
    assert s3.listed() == [f"raw/{file.path}"]
    assert (file.rows, file.bytes) == (150, (s3.server.data / s3.name / "raw" / file.path).stat().st_size)
    assert table(s3, file.path)["_offset"].to_pylist() == list(range(100, 250))


def test_an_attempt_never_writes_over_another(s3: Bucket) -> None:
    target = DirectTarget(root=s3.url("raw"))
    [first] = write_batches(RANGE, [records(100, 150)], target).files
    before = (s3.server.data / s3.name / "raw" / first.path).read_bytes()
    [second] = write_batches(RANGE, [records(100, 150)], target).files
    [other_run] = write_batches(RANGE, [records(100, 150)], DirectTarget(root=s3.url("raw"))).files
    assert len({first.path, second.path, other_run.path}) == 3
    assert len(s3.listed()) == 3
    assert (s3.server.data / s3.name / "raw" / first.path).read_bytes() == before


def test_a_range_that_cannot_be_read_leaves_no_object(s3: Bucket) -> None:
    def read() -> Iterator[Any]:
        yield records(100, 50)
        raise CorruptDataError("damaged")

    with pytest.raises(CorruptDataError, match="damaged"):
        write_batches(RANGE, read(), DirectTarget(root=s3.url("raw")))
    assert s3.listed() == []


def test_more_days_than_open_uploads_wait_in_a_spill_file(
    s3: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "OPEN_UPLOADS", 2)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    times = [NEW_YEAR_MS + DAY_MS * (n % 5) for n in range(150)]
    target = DirectTarget(root=s3.url("raw"), by_date=True)
    written = write_batches(RANGE, [records(100, 150, times)], target)
    assert sorted(file.rows for file in written.files) == [30] * 5
    offsets = [offset for file in written.files for offset in table(s3, file.path)["_offset"].to_pylist()]
    assert sorted(offsets) == list(range(100, 250))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_spark_passes_the_token_to_its_tasks_and_writes_no_fence_for_objects(s3: Bucket) -> None:
    target = DirectTarget(root=s3.url("raw")).of_new_run().of_manifest("backfill-0123456789abcdef")
    source = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "flights"}
    read, of_task = parsed(options_of(source, target), "batch")
    assert read.fatal_losses == COME_AGAIN
    assert (of_task.token, of_task.run) == (target.token, None)
    [file] = write_batches(RANGE, [records(100, 10)], of_task).files
    assert f"-backfill-0123456789abcdef-{target.token}-" in file.path
    assert s3.listed() == [f"raw/{file.path}"]
