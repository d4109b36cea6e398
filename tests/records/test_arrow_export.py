"""The Arrow stream that the extension makes of records: the columns of `to_arrow`, without pyarrow, released once."""

from __future__ import annotations

import ctypes
import gc
import itertools
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.errors import ArgumentError, CorruptDataError
from kclient.records import decoder
from kclient.records.arrow import SCHEMA, to_batches, to_table
from kclient.records.arrow_columns import NAMES
from kclient.records.compression import Compression
from kclient.records.decoder import PYTHON_DECODER
from kclient.records.headers import Headers
from kclient.records.reader import Chunk, PartitionReader
from kclient.records.records import Records
from kclient.records.undecodable import Undecodable
from kclient.records.writer import NewRecord, build_batch
from kclient.types import TopicPartition
from tests.records.arrow_capsules import (
    batches_of,
    expected,
    moved,
    read,
    release,
    schema_of,
    stream_of,
    values,
)
from tests.records.support import golden_cases, take_all
from tests.records.test_records import sample
from tests.records.test_roundtrip import batches

arrow_native = pytest.importorskip("kclient.records.arrow_native", reason="the native extension is not built")

AnyRecords = Records[Any, Any]
MANY = 3_000
"""So many that they are copied without the GIL."""


@contextmanager
def decoder_of(name: str) -> Iterator[None]:
    """Choose the decoder, and with it who makes Arrow columns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KCLIENT_DECODER", name)
        decoder._in_use.cache_clear()
        yield
    decoder._in_use.cache_clear()


def both(records: AnyRecords, columns: list[str] | None = None) -> tuple[pa.Table, pa.Table]:
    """The table that the extension makes of the records, and the one that pyarrow makes."""
    chunks, keeps = records.chunks, records._keeps_errors
    with decoder_of("native"):
        native = to_table(chunks, columns, keeps_errors=keeps)
    with decoder_of("python"):
        return native, to_table(chunks, columns, keeps_errors=keeps)


def check(records: AnyRecords, columns: list[str] | None = None) -> pa.Table:
    """The table, the same both ways, and valid to the last bit."""
    native, other = both(records, columns)
    native.validate(full=True)
    assert native.schema.equals(other.schema, check_metadata=True)
    assert native.equals(other)
    assert [column.null_count for column in native.columns] == [column.null_count for column in other.columns]
    return native


def of(rows: list[NewRecord], partition: int = 0, **options: Any) -> list[Chunk]:
    reading = {
        name: options.pop(name)
        for name in ("decoder", "value_deserializer", "undecodable")
        if name in options
    }
    return take_all(PartitionReader("t", partition, build_batch(rows, **options), 0, **reading))


def many(count: int = MANY, **options: Any) -> list[Chunk]:
    draw = random.Random(1)
    headers = [(), (("h", b"1"),), (("h", None), ("é", b"22"), ("h", b""))]
    rows = [
        NewRecord(
            draw.choice((None, b"", b"%d" % number)),
            draw.choice((None, b"", draw.randbytes(draw.randrange(200)))),
            1_700_000_000_000 + number,
            draw.choice(headers),
        )
        for number in range(count)
    ]
    return of(rows, **options)


def invalid_names() -> list[Chunk]:
    """Headers whose names are not UTF-8; the writer takes text only, so their bytes are put in afterwards."""
    rows = [
        NewRecord(b"k", b"v", headers=[("ab", b"1"), ("cdef", None)]),
        NewRecord(b"k", b"v", headers=[("gé", b"")]),
    ]
    (chunk,) = of(rows, compression=Compression.GZIP)
    for run in chunk.runs:
        run.data = run.data.replace(b"ab", b"a\xff").replace(b"cdef", b"\xf0\x90\x80x")
    return [chunk]


def kept() -> AnyRecords:
    """Records of which every third could not be decoded, with the error beside it."""

    def refuse(topic: str, headers: Headers, data: bytes) -> int:
        return int(data)

    rows = [NewRecord(b"k", b"x" if number % 3 == 0 else b"%d" % number) for number in range(10)]
    rows.append(NewRecord(None, None))
    return Records(
        of(rows, value_deserializer=refuse, undecodable=Undecodable(keeps=True)), keeps_errors=True
    )


CASES: dict[str, Callable[[], AnyRecords]] = {
    "two partitions, nulls, headers": sample,
    "nothing": Records,
    "only positions": lambda: Records(take_all(PartitionReader("t", 0, build_batch([], last_offset=4), 0))),
    "tombstones": lambda: Records(of([NewRecord(b"k", None)] * 9)),
    "no keys": lambda: Records(of([NewRecord(None, b"v")] * 8)),
    "empty": lambda: Records(of([NewRecord(b"", b"")] * 7)),
    "all have headers": lambda: Records(of([NewRecord(b"k", b"v", headers=[("h", b"v")])] * 9)),
    "an epoch": lambda: Records(of([NewRecord(b"k", b"v")], partition_leader_epoch=2**31 - 1)),
    "decoded in Python": lambda: Records(many(decoder=PYTHON_DECODER)),
    "several batches": lambda: Records(many() + many(7, partition=1) + many(11, compression=Compression.LZ4)),
    "names that are not UTF-8": lambda: Records(invalid_names()),
    "deserialized": lambda: Records(
        of([NewRecord(b"k", b"abc"), NewRecord(None, None)], value_deserializer=lambda t, h, data: len(data))
    ),
    "undecoded": kept,
    "undecoded and others": lambda: Records([*kept().chunks, *many(5)], keeps_errors=True),
}


@pytest.mark.spec("D-79")
@pytest.mark.parametrize("case", CASES)
def test_the_extension_makes_the_columns_that_pyarrow_makes(case: str) -> None:
    table = check(CASES[case]())
    assert table.schema.names == [*NAMES, *(["error"] if case.startswith("undecoded") else [])]


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.startswith(("deserialized", "undecoded"))]
)
def test_the_rows_are_those_of_the_record_objects(case: str) -> None:
    records = CASES[case]()
    assert read(arrow_native.export(records.chunks)) == [expected(record) for record in records]


@settings(deadline=None, max_examples=60)
@given(st.lists(batches(), max_size=3), st.integers(1, 5))
def test_generated_batches_have_the_same_columns(made: list[Any], at_once: int) -> None:
    chunks = [
        chunk
        for partition, (data, *_) in enumerate(made)
        for chunk in take_all(PartitionReader("t", partition, data, 0), at_once)
    ]
    fits = all(abs(record.timestamp) <= (2**63 - 1) // 1000 for record in Records[Any, Any](chunks))
    check(Records(chunks), None if fits else [name for name in NAMES if name != "timestamp"])


@pytest.mark.parametrize("decoder", ["python", "native"])
def test_golden_batches_of_java_have_the_same_columns(decoder: str) -> None:
    """Formats 0 and 1 are among them, whose numbers are in lists."""
    for case in golden_cases():
        with decoder_of(decoder):
            reader = PartitionReader("t", 0, bytes.fromhex(case["hex"]), 0)
            try:
                chunks = take_all(reader)
            except CorruptDataError:
                continue
        check(Records(chunks))


@pytest.mark.parametrize("count", [1, 2])
def test_columns_can_be_chosen(count: int) -> None:
    for columns in itertools.permutations(NAMES, count):
        check(sample(), list(columns))
    check(sample(), [])
    check(sample(), ["offset", "offset"])
    check(kept(), ["error", "value"])


def test_an_unknown_column_is_named() -> None:
    for records, name in ((sample(), "valeu"), (sample(), "error")):
        with decoder_of("native"), pytest.raises(ArgumentError, match=rf"'{name}'.*leaderEpoch"):
            records.to_arrow([name])


@pytest.mark.parametrize("decoder", [None, PYTHON_DECODER])
@pytest.mark.parametrize("timestamp", [2**63 - 1, 2**62, (2**63 - 1) // 1000 + 1])
def test_a_timestamp_beyond_microseconds_is_reported(timestamp: int, decoder: Any) -> None:
    chunks = [*of([NewRecord(b"k")]), *of([NewRecord(timestamp=timestamp)], 1, decoder=decoder)]
    found = []
    for name in ("native", "python"):
        with (
            decoder_of(name),
            pytest.raises(CorruptDataError, match="A timestamp of t-1 before offset 1") as caught,
        ):
            Records(chunks).to_arrow()
        found.append(str(caught.value))
    assert found[0] == found[1]
    check(Records(chunks), ["offset", "value"])


def test_the_last_timestamp_that_fits_in_microseconds() -> None:
    check(Records(of([NewRecord(timestamp=(2**63 - 1) // 1000)])))


# --- 2 GiB


@pytest.mark.spec("ST-08")
@pytest.mark.parametrize("most", [16_000, 60_000])
def test_no_column_has_more_bytes_than_its_ends_can_count(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """2 GiB take a while to fill: the same guard with a smaller limit."""
    assert arrow_native.MOST_BYTES == 2**31 - 1
    monkeypatch.setattr(arrow_native, "MOST_BYTES", most)
    records = AnyRecords([*many(), *kept().chunks, *many(decoder=PYTHON_DECODER)], keeps_errors=True)
    table = check(records)
    assert len(table.to_batches()) > 2
    for batch in table.to_batches():
        assert all(
            len(buffer) <= most + 64
            for name in ("key", "value", "topic", "error")
            for buffer in batch.column(name).buffers()[2:]
        )


def test_a_record_that_fits_into_no_column_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_native, "MOST_BYTES", 10)
    records = AnyRecords(of([NewRecord(b"k", b"v", headers=[("h" * 11, b"")])]))
    with decoder_of("native"):
        with pytest.raises(CorruptDataError, match="t-0 has headers of more than 2 GiB"):
            records.to_arrow()
        assert records.to_arrow(["key", "value"]).num_rows == 1


# --- who takes a stream


def test_the_schema_is_that_of_to_arrow() -> None:
    with decoder_of("native"):
        for records in (Records(), sample()):
            assert pa.RecordBatchReader.from_stream(records).schema.equals(SCHEMA, check_metadata=True)


@pytest.mark.parametrize("name", ["native", "python"])
def test_the_schema_can_be_asked_for_alone(name: str) -> None:
    with decoder_of(name):
        assert pa.schema(sample()).equals(SCHEMA, check_metadata=True)
        assert pa.schema(kept()).names == [*NAMES, "error"]


def test_a_poll_is_one_batch_also_of_several_partitions() -> None:
    with decoder_of("native"):
        assert len(sample().to_arrow().to_batches()) == 1
        assert [batch.num_rows for batch in to_batches(sample().chunks[0], ["key"])] == [2]
        assert list(to_batches(sample().chunks[-1], ["key"])) == []


def test_duckdb_takes_records() -> None:
    records = sample()
    with decoder_of("native"):
        rows = duckdb.sql("select value, headers[1].value from records where topic = 'a'").fetchall()
    assert rows == [(b"value", b"1"), (b"", None), (None, None), (b"y", None)]
    assert len(rows) == len(records.of(TopicPartition("a", 0)))


def test_polars_takes_records() -> None:
    with decoder_of("native"):
        frame = polars.DataFrame(sample())
    assert frame.to_arrow().to_pylist() == sample().to_arrow().to_pylist()


def test_a_requested_schema_is_what_pyarrow_casts_to() -> None:
    wanted = SCHEMA.set(1, pa.field("value", pa.large_binary()))
    with decoder_of("native"):
        table = pa.table(sample(), schema=wanted)
        assert table.schema == wanted
        assert table.column("value").to_pylist() == sample().to_arrow().column("value").to_pylist()


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
from tests.records.arrow_capsules import read
from tests.records.support import take_all
from kclient.errors import ConfigError
from kclient.records.reader import PartitionReader
from kclient.records.records import Records
from kclient.records.writer import NewRecord, build_batch

records = Records(take_all(PartitionReader("t", 0, build_batch([NewRecord(b"k", b"v", 5)]), 0)))
try:
    print(read(records.__arrow_c_stream__(None)), read(records.__arrow_c_stream__(object())))
except ConfigError as exc:
    print(exc)
"""


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        (
            "native",
            "[(b'k', b'v', 't', 0, 0, 5000, 0, None, None)] [(b'k', b'v', 't', 0, 0, 5000, 0, None, None)]",
        ),
        ("python", "Records.to_arrow() needs pyarrow, which cannot be imported."),
    ],
)
def test_pyarrow_is_not_needed_where_the_extension_is(name: str, printed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYARROW],
        env={**os.environ, "KCLIENT_DECODER": name},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith(printed)


# --- what is released, and when


def exported(chunks: list[Chunk]) -> object:
    return arrow_native.export(chunks)


def test_a_stream_is_independent_of_the_records_it_was_made_of() -> None:
    chunks = many()
    rows = [expected(record) for record in AnyRecords(chunks)]
    capsule = exported(chunks)
    chunks[0].cut_at(10)
    del chunks
    gc.collect()
    assert read(capsule) == rows


def test_a_batch_is_read_after_its_stream_is_gone_and_columns_after_their_batch() -> None:
    rows = [expected(record) for record in AnyRecords(many())]
    capsule = exported(many())
    with moved(stream_of(capsule)) as stream:
        schema = schema_of(stream)
        (batch,) = batches_of(stream)
    del capsule
    with moved(batch.children[0].contents) as keys, moved(batch.children[7].contents) as headers:
        with moved(headers.children[0].contents) as header:
            release(batch)
            assert len(values(header, schema[2 + 7][2])) == sum(len(row[7] or ()) for row in rows)
        assert values(keys, schema[2]) == [row[0] for row in rows]


def test_a_large_value_alone_is_lent_and_given_back() -> None:
    """A copy would double the memory of a value of 100 MB. Its data stay as long as stream, batch or array."""
    (chunk,) = of([NewRecord(b"k", b"v" * 100_000)])
    data = chunk.runs[0].data
    unused = sys.getrefcount(data)
    rows = [expected(record) for record in AnyRecords([chunk])]
    for take in (lambda capsule: None, stream_of, read, drop_in_a_thread):
        capsule = exported([chunk])
        assert sys.getrefcount(data) == unused + 1
        take(capsule)
        del capsule
        assert sys.getrefcount(data) == unused
    capsule = exported([chunk])
    del chunk, data
    assert read(capsule) == rows


def drop_in_a_thread(capsule: object) -> None:
    """Release the stream in another thread, without the GIL."""
    stream = stream_of(capsule)
    thread = threading.Thread(target=stream.release, args=(ctypes.byref(stream),))
    thread.start()
    thread.join()


@pytest.mark.parametrize("rows", [[100], [65_535], [65_536], [65_536, 60_000], [65_536, 200_000]])
def test_only_a_value_that_is_most_of_its_data_is_lent(rows: list[int]) -> None:
    (chunk,) = of([NewRecord(b"k", bytes(size)) for size in rows])
    data = chunk.runs[0].data
    unused = sys.getrefcount(data)
    for cut in (len(rows), 1):
        chunk.cut_at(cut)
        capsule = exported([chunk])
        assert sys.getrefcount(data) - unused == (
            1 if cut == 1 and rows[0] >= max(65_536, sum(rows) / 2) else 0
        )
        assert [len(row[1]) for row in read(capsule)] == rows[:cut]


def test_a_taken_capsule_is_empty() -> None:
    capsule = exported(many(1))
    assert len(read(capsule)) == 1
    assert not stream_of(capsule).release
    with pytest.raises(ValueError, match="the stream was taken"):
        arrow_native.arrow_append(capsule, (), 1)
    with pytest.raises(ValueError, match="the stream was taken"):
        arrow_native.arrow_schema(capsule)


def resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="there is no /proc")
@pytest.mark.parametrize("use", ["never taken", "dropped early", "read", "by another thread", "refused"])
def test_memory_is_given_back(use: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """100 MB of streams one after another take little more than one of them."""
    rows = [NewRecord(b"k", bytes(10_000), headers=[("h", bytes(1_000))]) for _ in range(90)]
    chunks = of(rows)
    if use == "dropped early":
        monkeypatch.setattr(arrow_native, "MOST_BYTES", 300_000)
    if use == "refused":
        chunks += of([NewRecord(timestamp=2**62)])

    def once() -> None:
        if use == "refused":
            with pytest.raises(CorruptDataError):
                exported(chunks)
            return
        capsule = exported(chunks)
        if use == "read":
            read(capsule)
        elif use == "dropped early":
            with moved(stream_of(capsule)) as stream:
                release(next(batches_of(stream)))
        elif use == "by another thread":
            thread = threading.Thread(
                target=stream_of(capsule).release, args=(ctypes.byref(stream_of(capsule)),)
            )
            thread.start()
            thread.join()

    for _ in range(10):
        once()
    before = resident()
    for _ in range(100):
        once()
    assert resident() - before < 20_000_000


# --- columns that do not fit their data


@pytest.mark.parametrize(
    "column", ["key_starts", "key_sizes", "value_starts", "value_sizes", "header_starts"]
)
@pytest.mark.parametrize("number", [-2, 10, 2**31 - 1, -(2**31)])
def test_spans_outside_the_data_are_a_value_error(column: str, number: int) -> None:
    (chunk,) = of([NewRecord(b"k" * 9, b"v" * 90)] * 3)
    getattr(chunk.runs[0], column)[1] = number
    try:
        rows = read(exported([chunk]))
    except ValueError as exc:
        assert str(exc) == "the columns do not fit their data"  # noqa: PT017
    else:
        assert len(rows) == 3


def test_columns_of_different_lengths_are_a_value_error() -> None:
    (chunk,) = of([NewRecord(b"k", b"v")] * 3)
    chunk.runs[0].value_sizes.pop()
    with pytest.raises(ValueError, match="does not have one number for each record"):
        exported([chunk])
    with pytest.raises(ValueError, match="no such column"):
        arrow_native.arrow_stream(("nothing",))
    with pytest.raises(TypeError):
        arrow_native.arrow_stream(["key"])
