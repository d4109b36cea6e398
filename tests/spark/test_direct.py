"""Direct Parquet: a range becomes files whose names say what they hold, whole or not at all. No broker, no Spark."""

from __future__ import annotations

import errno
import json
import os
import resource
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kclient.errors import CorruptDataError, SinkError
from kclient.records.arrow import SCHEMA
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink import manifest, parquet
from kclient.spark.sink.manifest import Manifest, WrittenFile
from kclient.spark.sink.parquet import DirectTarget, WrittenRange, file_name, write_batches
from kclient.spark.sink.row_layout import RowLayout
from kclient.types import TopicPartition

NEW_YEAR_MS = 1_356_998_400_000  # 2013-01-01T00:00Z
RANGE = OffsetRange("flights", 3, 100, 250)
NAME = "topic=flights/00003-00000000000000000100-00000000000000000250.parquet"


def records(
    first: int, count: int, times: list[int] | None = None, columns: tuple[str, ...] | None = None
) -> Any:
    """Records as a range is read: every seventh without a key, every tenth with headers."""
    numbers = range(first, first + count)
    arrays = {
        "offset": list(numbers),
        "timestamp": [(times or [NEW_YEAR_MS] * count)[n - first] * 1000 for n in numbers],
        "headers": [[{"key": "h", "value": b"%d" % n}] if n % 10 == 0 else None for n in numbers],
        "key": [None if n % 7 == 0 else b"k%d" % n for n in numbers],
        "value": [b"value %d" % n for n in numbers],
    }
    names = columns or RowLayout().read()
    schema = pa.schema([SCHEMA.field(name) for name in names])
    return pa.RecordBatch.from_arrays(
        [pa.array(arrays[name], schema.field(name).type) for name in names], schema=schema
    )


def write(root: Path, *batches: Any, **target: Any) -> WrittenRange:
    return write_batches(RANGE, batches, DirectTarget(root=str(root), **target))


def everything(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@pytest.mark.spec("SP-77", "SP-86")
def test_a_range_becomes_one_file_named_after_it(tmp_path: Path) -> None:
    written = write(tmp_path, records(100, 90), records(190, 60), layout=RowLayout(batch=12))
    assert everything(tmp_path) == [NAME]
    size = (tmp_path / NAME).stat().st_size
    assert written.files == (
        WrittenFile(
            path=NAME,
            topic="flights",
            partition=3,
            start=100,
            end=250,
            rows=150,
            bytes=size,
            first_ms=NEW_YEAR_MS,
            last_ms=NEW_YEAR_MS,
        ),
    )
    table = pq.read_table(tmp_path / NAME, partitioning=None)
    assert table.column_names == [
        "_topic",
        "_partition",
        "_offset",
        "_timestamp",
        "_headers",
        "_key",
        "value",
        "_ingest_batch",
    ]
    assert table.slice(40, 1).to_pylist() == [
        {
            "_topic": "flights",
            "_partition": 3,
            "_offset": 140,
            "_timestamp": table["_timestamp"][40].as_py(),
            "_headers": [{"key": "h", "value": b"140"}],
            "_key": None,
            "value": b"value 140",
            "_ingest_batch": 12,
        }
    ]
    assert table["_timestamp"].cast(pa.int64())[40].as_py() == NEW_YEAR_MS * 1000
    assert table["_offset"].to_pylist() == list(range(100, 250))
    assert table["_headers"].null_count == 135


@pytest.mark.spec("SP-86")
def test_days_are_those_of_the_records_in_utc(tmp_path: Path) -> None:
    last_of_2012 = NEW_YEAR_MS - 1
    times = [last_of_2012, NEW_YEAR_MS, last_of_2012, -1]
    written = write(tmp_path, records(100, 4, times), by_date=True)
    name = NAME.removeprefix("topic=flights/")
    assert everything(tmp_path) == [
        f"topic=flights/date={date}/{name}" for date in ("1969-12-31", "2012-12-31", "2013-01-01")
    ]
    assert {file.path: (file.rows, file.first_ms, file.last_ms) for file in written.files} == {
        f"topic=flights/date=1969-12-31/{name}": (1, -1, -1),
        f"topic=flights/date=2012-12-31/{name}": (2, last_of_2012, last_of_2012),
        f"topic=flights/date=2013-01-01/{name}": (1, NEW_YEAR_MS, NEW_YEAR_MS),
    }


@pytest.mark.spec("SP-86")
def test_times_outside_the_calendar_have_a_directory_of_their_own(tmp_path: Path) -> None:
    """As when a producer sends microseconds as milliseconds: year 57742, and nearly every record of another day."""
    last = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z
    first = -62_135_596_800_000  # 0001-01-01T00:00Z
    most, least = (2**63 - 1) // 1000, -(2**63 // 1000)
    wild = [NEW_YEAR_MS * 1000 + n * 86_400_000 for n in range(900)]
    times = [last, first, last + 1, first - 1, most, least, *wild]
    written = write(tmp_path, records(100, len(times), times), by_date=True)
    name = NAME.removeprefix("topic=flights/")
    assert {file.path: (file.rows, file.first_ms, file.last_ms) for file in written.files} == {
        f"topic=flights/date=0001-01-01/{name}": (1, first, first),
        f"topic=flights/date=9999-12-31/{name}": (1, last, last),
        f"topic=flights/date=__HIVE_DEFAULT_PARTITION__/{name}": (904, least, most),
    }
    read = pq.read_table(tmp_path / "topic=flights")
    assert read.filter(read["date"].is_null()).num_rows == 904


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.spec("SP-77", "SP-79", "SP-86")
def test_any_number_of_days_needs_few_descriptors(tmp_path: Path) -> None:
    """More days than files may be open at a time, twice over and mixed: each has one file with the names of any run."""
    days, before, most = 300, _descriptors(), 0
    numbers = range(100, 120)
    times = {n: [NEW_YEAR_MS + (n * 7 + k) % days * 86_400_000 for k in range(200)] for n in numbers}

    def batches() -> Iterator[Any]:
        nonlocal most
        for n in numbers:
            yield records(n * 200, 200, times[n])
            most = max(most, _descriptors())

    target = DirectTarget(root=str(tmp_path), by_date=True)
    written = write_batches(RANGE, batches(), target)
    assert most <= before + parquet.OPEN_FILES + 2
    wanted = Counter(time for of_batch in times.values() for time in of_batch)
    assert len(wanted) == days
    found = {file.path: (file.rows, file.first_ms, file.last_ms) for file in written.files}
    assert found == {
        f"topic=flights/date={datetime.fromtimestamp(time / 1000, UTC):%Y-%m-%d}/{NAME[14:]}": (
            count,
            time,
            time,
        )
        for time, count in wanted.items()
    }
    assert everything(tmp_path) == sorted(found)
    for path in found:
        offsets = pq.read_table(tmp_path / path, partitioning=None)["_offset"].to_pylist()
        assert (len(offsets), offsets) == (found[path][0], sorted(set(offsets)))


@pytest.mark.spec("SP-77")
@pytest.mark.parametrize("at", [1, 200, 250])
def test_days_that_break_off_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """The first, one that waited on the disk, and one when all of them are being closed."""
    finish, left = parquet.ParquetFile.finish, at

    def failing(file: parquet.ParquetFile) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise SinkError("no room")
        finish(file)

    monkeypatch.setattr(parquet.ParquetFile, "finish", failing)
    before, times = _descriptors(), [NEW_YEAR_MS + n * 86_400_000 for n in range(300)]
    with pytest.raises(SinkError, match="no room"):
        write(tmp_path, records(100, 300, times), by_date=True)
    assert everything(tmp_path) == []
    assert _descriptors() == before


@pytest.mark.spec("SP-85")
def test_too_many_open_files_are_reported_as_such(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (_descriptors() + 20, hard))
    times = [NEW_YEAR_MS + n * 86_400_000 for n in range(100)]
    try:
        with pytest.raises(SinkError, match=r"Too many open files.*Raise the limit \(ulimit -n"):
            write(tmp_path, records(100, 100, times), by_date=True)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert everything(tmp_path) == []


@pytest.mark.spec("SP-80")
def test_row_groups_dictionary_and_codec(tmp_path: Path) -> None:
    thousand = records(0, 1_000)
    write(tmp_path, *[thousand] * 250)
    found = pq.ParquetFile(tmp_path / NAME).metadata
    assert [found.row_group(n).num_rows for n in range(found.num_row_groups)] == [122_880, 122_880, 4_240]
    columns = [found.row_group(0).column(n) for n in range(found.num_columns)]
    assert [part.path_in_schema for part in columns if "RLE_DICTIONARY" in part.encodings] == ["_topic"]
    assert {part.compression for part in columns} == {"ZSTD"}


def test_columns_of_raw_bytes_have_no_statistics_and_all_others_have(tmp_path: Path) -> None:
    (file,) = write(tmp_path, records(0, 20)).files
    group = pq.ParquetFile(tmp_path / file.path).metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    without = {column.path_in_schema for column in columns if not column.is_stats_set}
    assert without == {"_key", "value", "_headers.list.element.value"}


@pytest.mark.spec("SP-80")
def test_large_rows_make_smaller_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP_BYTES", 100_000)
    write(tmp_path, *(records(n * 1_000, 1_000) for n in range(6)), codec="snappy")
    found = pq.ParquetFile(tmp_path / NAME).metadata
    assert found.num_row_groups > 1
    assert found.num_rows == 6_000
    assert found.row_group(0).column(0).compression == "SNAPPY"


@pytest.mark.spec("SP-79")
def test_the_same_range_again_gives_the_same_file(tmp_path: Path) -> None:
    first = write(tmp_path, records(100, 150))
    content = (tmp_path / NAME).read_bytes()
    again = write(tmp_path, *(records(100 + n * 15, 15) for n in range(10)))
    assert (first.files[0].path, first.files[0].rows) == (again.files[0].path, again.files[0].rows)
    assert everything(tmp_path) == [NAME]
    assert pq.read_table(pa.BufferReader(content)).equals(pq.read_table(tmp_path / NAME, partitioning=None))


@pytest.mark.spec("SP-77")
def test_a_range_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[Any]:
        yield records(100, 50)
        assert [name for name in everything(tmp_path) if not Path(name).name.startswith(".")] == []
        raise CorruptDataError("a batch is damaged")

    with pytest.raises(CorruptDataError):
        write_batches(RANGE, broken(), DirectTarget(root=str(tmp_path)))
    assert everything(tmp_path) == []


def test_a_range_without_visible_records_gives_no_file(tmp_path: Path) -> None:
    assert write(tmp_path).files == ()
    assert everything(tmp_path) == []


@pytest.mark.spec("SP-85")
def test_a_full_disk_is_an_error_of_the_sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SinkError, match="No space left") as caught:
        write(tmp_path, records(100, 150))
    assert str(tmp_path) in caught.value.path
    assert everything(tmp_path) == []


@pytest.mark.spec("SP-85")
@pytest.mark.parametrize("limit", [4, 1_000])
def test_a_file_that_cannot_be_written_to_its_end_is_told_as_such(tmp_path: Path, limit: int) -> None:
    """And not as what fails when the file that was begun is given up."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))  # Python ignores the signal
    try:
        with pytest.raises(SinkError, match=r"Writing below .* failed: .*File too large"):
            write(tmp_path, records(100, 150))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert everything(tmp_path) == []


def test_headers_can_be_left_out(tmp_path: Path) -> None:
    layout = RowLayout(headers=False)
    assert "headers" not in layout.read()
    write(tmp_path, records(100, 3, columns=layout.read()), layout=layout)
    assert "_headers" not in pq.read_schema(tmp_path / NAME).names


def _manifest(name: str, start: int, end: int, *files: WrittenFile) -> Manifest:
    tp = TopicPartition("flights", 3)
    return Manifest(job="j1", name=name, start={tp: start}, end={tp: end}, files=files)


@pytest.mark.spec("SP-78", "SP-82")
def test_a_file_counts_when_a_manifest_names_it(tmp_path: Path) -> None:
    written = write(tmp_path, records(100, 150))
    whole = _manifest(manifest.batch_name(7), 100, 250, *written.files)
    for _ in range(2):
        manifest.write(tmp_path, whole)
        assert everything(tmp_path) == ["_manifest/000000000007.json", NAME]
        assert manifest.read(tmp_path, "000000000007") == whole
        assert manifest.files(tmp_path) == [str(tmp_path / NAME)]
        assert manifest.count(tmp_path) == 150 == pq.read_table(manifest.files(tmp_path)).num_rows


def test_a_path_without_manifests_is_no_empty_sink(tmp_path: Path) -> None:
    for ask in (manifest.files, manifest.count):
        with pytest.raises(SinkError, match=r"has no _manifest.*or it is another path"):
            ask(tmp_path)
    (tmp_path / manifest.DIRECTORY).mkdir()
    assert (manifest.files(tmp_path), manifest.count(tmp_path)) == ([], 0)


def test_manifests_come_in_the_order_of_batches(tmp_path: Path) -> None:
    for name in ("000000000010", "backfill-00112233445566aa", "000000000009"):
        manifest.write(tmp_path, _manifest(name, 0, 1))
    (tmp_path / "_manifest" / ".000000000011.json.0011.tmp").write_text("half")
    (tmp_path / "_manifest" / "notes.txt").write_text("mine")
    assert manifest.names(tmp_path) == ["000000000009", "000000000010", "backfill-00112233445566aa"]
    assert manifest.read(tmp_path, "000000000011") is None


@pytest.mark.parametrize(
    "content", ["", "{}", '{"version": 2}', "[]", '{"version": 1, "job": "j", "start": 3}', "[" * 100_000]
)
def test_a_damaged_manifest_is_reported_never_skipped(tmp_path: Path, content: str) -> None:
    manifest.write(tmp_path, _manifest("000000000000", 0, 1))
    (tmp_path / "_manifest" / "000000000000.json").write_text(content)
    with pytest.raises(SinkError, match=r"000000000000\.json cannot be read"):
        manifest.count(tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("path", 5),
        ("topic", None),
        ("partition", "0"),
        ("start", 0.5),
        ("end", []),
        ("rows", "x"),
        ("bytes", None),
        ("last_ms", "x"),
    ],
)
def test_a_file_in_a_manifest_has_values_of_its_types(tmp_path: Path, name: str, value: Any) -> None:
    path = tmp_path / "_manifest" / "000000000000.json"
    written = WrittenFile(path=NAME, topic="flights", partition=3, start=0, end=1, rows=1, bytes=5)
    manifest.write(tmp_path, _manifest("000000000000", 0, 1, written))
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "files": [{**content["files"][0], name: value}]}))
    with pytest.raises(SinkError, match=r"000000000000\.json cannot be read: "):
        manifest.count(tmp_path)


def test_the_count_of_nulled_values_in_a_manifest_is_a_number(tmp_path: Path) -> None:
    path = tmp_path / "_manifest" / "000000000000.json"
    manifest.write(tmp_path, _manifest("000000000000", 0, 1))
    path.write_text(json.dumps({**json.loads(path.read_text()), "nulled": None}))
    with pytest.raises(SinkError, match=r"000000000000\.json cannot be read: "):
        manifest.count(tmp_path)


@pytest.mark.spec("SP-89")
@pytest.mark.parametrize(
    ("start", "end", "name"), [(0, 10, None), (0, 11, "a"), (19, 25, "a"), (20, 30, None)]
)
def test_ranges_that_two_manifests_cover_are_found(start: int, end: int, name: str | None) -> None:
    assert manifest.overlap([_manifest("a", 10, 20)], _manifest("b", start, end)) == name
    assert manifest.overlap([_manifest("b", 10, 20)], _manifest("b", start, end)) is None


def test_names_sort_as_offsets_do() -> None:
    names = [file_name(OffsetRange("t", 0, start, start + 1)) for start in (9, 10, 2**40)]
    assert names == sorted(names)


@pytest.mark.parametrize("days", [5, 6])
def test_more_days_than_a_reader_could_work_with_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    """Whoever may write to a topic chooses the times of records."""
    monkeypatch.setattr(parquet, "OPEN_FILES", 2)
    monkeypatch.setattr(parquet, "MAX_PARTS", 5)
    batch = records(100, days, [NEW_YEAR_MS + n * 86_400_000 for n in range(days)])
    if days == 5:
        assert len(write(tmp_path, batch, by_date=True).files) == 5
        return
    with pytest.raises(
        SinkError, match=r"flights-3 from 100 to 250 have more than 5 .* as topic alone: that lands"
    ):
        write(tmp_path, batch, by_date=True)
    assert everything(tmp_path) == []
    assert write(tmp_path, batch).files[0].rows == 6


def test_a_manifest_that_could_not_be_read_again_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, tp = write(tmp_path, records(100, 150)), TopicPartition("flights", 3)
    whole = Manifest(job="j", name="000000000000", start={tp: 100}, end={tp: 250}, files=written.files)
    manifest.write(tmp_path, whole)
    size = (tmp_path / "_manifest" / "000000000000.json").stat().st_size
    monkeypatch.setattr(manifest, "LARGEST_READ", size)
    manifest.write(tmp_path, whole)
    with pytest.raises(SinkError, match=r"000000000000 would name 2 files .* larger --target-file-mb"):
        manifest.write(tmp_path, attrs.evolve(whole, files=written.files * 2))
    assert manifest.count(tmp_path) == 150
