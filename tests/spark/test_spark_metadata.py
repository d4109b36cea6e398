"""What counts in a directory of Spark's own sink, read from its log without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kclient.errors import SinkError
from kclient.spark.sink import spark_metadata
from kclient.spark.sink.spark_metadata import LoggedFile


def log(sink: Path, name: str, *files: str, version: str = "v1", **changed: Any) -> None:
    """Write one file of the log as Spark does."""
    directory = sink / "_spark_metadata"
    directory.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"path": f"file://{sink}/{file}", "size": 5, "isDir": False, "action": "add", **changed})
        for file in files
    ]
    (directory / name).write_text("\n".join([version, *lines]))


def names(sink: Path) -> list[str]:
    return [Path(path).name for path in spark_metadata.files(sink)]


@pytest.mark.spec("SP-81")
def test_only_files_that_the_log_names_count(tmp_path: Path) -> None:
    for name, rows in (("part-0.parquet", 3), ("part-1.parquet", 4), ("killed.parquet", 9)):
        pq.write_table(pa.table({"a": range(rows)}), tmp_path / name)
    (tmp_path / "empty.parquet").touch()
    for ask in (spark_metadata.files, spark_metadata.count):
        with pytest.raises(SinkError, match=r"has no _spark_metadata.*or it is another path"):
            ask(tmp_path)
    log(tmp_path, "0", "part-0.parquet")
    log(tmp_path, "1", "part-1.parquet")
    (tmp_path / "_spark_metadata" / ".1.crc").write_bytes(b"\0crc")
    (tmp_path / "_spark_metadata" / ".2.0a1b.tmp").write_text("v1\nhalf of")
    assert spark_metadata.batches(tmp_path) == [0, 1]
    assert (names(tmp_path), spark_metadata.count(tmp_path)) == (["part-0.parquet", "part-1.parquet"], 7)
    assert spark_metadata.added(tmp_path, 1) == [LoggedFile(str(tmp_path / "part-1.parquet"), 5)]
    assert spark_metadata.added(tmp_path, 2) == []


@pytest.mark.spec("SP-81")
def test_a_compacted_log_stands_for_all_before_it(tmp_path: Path) -> None:
    log(tmp_path, "8", "from-8")
    log(tmp_path, "9.compact", *(f"from-{n}" for n in range(10)))
    log(tmp_path, "10", "from 10%25")
    assert names(tmp_path) == [*(f"from-{n}" for n in range(10)), "from 10%"]
    assert [Path(file.path).name for file in spark_metadata.added(tmp_path, 10)] == ["from 10%"]
    log(tmp_path, "11", "from-3", action="delete")
    assert "from-3" not in names(tmp_path)


DEEP = "v1\n" + "[" * 100_000
WORD = 'v1\n{"path": "a", "size": "x"}'


@pytest.mark.parametrize(
    "content", ["", "v2\n", "v1\n{}", "v1\nnonsense", 'v1\n{"path": 3, "size": 1}', DEEP, WORD]
)
def test_a_log_that_cannot_be_understood_is_reported(tmp_path: Path, content: str) -> None:
    log(tmp_path, "0")
    (tmp_path / "_spark_metadata" / "0").write_text(content)
    with pytest.raises(SinkError, match="_spark_metadata/0 cannot be read"):
        spark_metadata.files(tmp_path)


def test_a_file_that_counts_and_is_gone_is_reported(tmp_path: Path) -> None:
    log(tmp_path, "0", "part-0.parquet")
    with pytest.raises(SinkError, match=r"part-0.parquet counts by _spark_metadata"):
        spark_metadata.count(tmp_path)
