"""Generated batches: what is written is read; what is cut or damaged gives typed errors and nothing else."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.errors import CorruptDataError
from kclient.records.batch import read_batches
from kclient.records.compression import decompress
from kclient.records.reader import PartitionReader
from kclient.records.records import Record
from kclient.records.writer import NewRecord, build_batch
from kclient.types import TimestampType
from tests.records.support import only_batch, records_of, take_all

BLOB = (
    st.none() | st.binary(max_size=200) | st.integers(60, 70).map(bytes) | st.integers(8190, 8195).map(bytes)
)
TIMESTAMP = (
    st.integers(0, 10_000) | st.integers(1_600_000_000_000, 1_800_000_000_000) | st.integers(-1, 2**63 - 1)
)
HEADER = st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=10))


@st.composite
def batches(draw: st.DrawFn) -> tuple[bytes, list[NewRecord], dict[str, Any]]:
    base_offset = draw(st.integers(0, 1000) | st.integers(2**62, 2**62 + 1000))
    rows: list[NewRecord] = []
    offset = base_offset
    for _ in range(draw(st.integers(0, 12))):
        offset += draw(st.just(0) | st.integers(0, 200) | st.integers(0, 2**20))
        headers = draw(st.lists(HEADER, max_size=3))
        rows.append(NewRecord(draw(BLOB), draw(BLOB), draw(TIMESTAMP), tuple(headers), offset))
        offset += 1
    options = {
        "compression": draw(st.integers(0, 4)),
        "base_offset": base_offset,
        "last_offset": (rows[-1].offset or 0) + draw(st.integers(0, 5)) if rows else base_offset,
        "partition_leader_epoch": draw(st.integers(-1, 2**31 - 1)),
        "producer_id": draw(st.integers(-1, 2**63 - 1)),
        "producer_epoch": draw(st.integers(-1, 2**15 - 1)),
        "base_sequence": draw(st.integers(-1, 2**31 - 1)),
        "delete_horizon_ms": draw(st.none() | st.integers(0, 2**41)),
    }
    return build_batch(rows, **options), rows, options


def plain(record: Record[Any, Any]) -> NewRecord:
    return NewRecord(record.key, record.value, record.timestamp, record.headers, record.offset)


@pytest.mark.spec("B.11.1", "B.10.10", "D-72", "D-79")
@settings(deadline=None)
@given(batches(), st.integers(1, 5))
def test_what_is_written_is_read(made: tuple[bytes, list[NewRecord], dict[str, Any]], at_once: int) -> None:
    data, rows, options = made
    base_offset = options["base_offset"]
    batch = only_batch(data)
    batch.check_crc()
    for name, value in options.items():
        assert getattr(batch, name) == value
    reader = PartitionReader("t", 0, data, base_offset)
    take_all(reader, at_once)
    assert reader.next_offset == options["last_offset"] + 1
    assert [plain(record) for record in records_of(data, base_offset, at_once)] == rows


@pytest.mark.spec("B.11.1")
@settings(deadline=None)
@given(batches())
def test_log_append_time_holds_for_all(made: tuple[bytes, list[NewRecord], dict[str, Any]]) -> None:
    _, rows, options = made
    data = build_batch(rows, **options, timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp=4711)
    read = records_of(data, options["base_offset"], 2)
    assert [(r.timestamp, r.timestamp_type) for r in read] == [(4711, TimestampType.LOG_APPEND_TIME)] * len(
        rows
    )


@pytest.mark.spec("S2-26", "B.11.7")
@settings(deadline=None)
@given(st.lists(batches(), max_size=3), st.data())
def test_any_position_gives_the_records_from_there_on(
    parts: list[tuple[bytes, list[NewRecord], dict[str, Any]]], data: st.DataObject
) -> None:
    parts.sort(key=lambda part: int(part[2]["base_offset"]))
    ends = [part[2]["last_offset"] for part in parts]
    parts = [p for n, p in enumerate(parts) if n == 0 or p[2]["base_offset"] > max(ends[:n])]
    offsets = [row.offset or 0 for _, rows, _ in parts for row in rows]
    position = data.draw(st.sampled_from(offsets) if offsets else st.just(0))
    read = records_of(b"".join(part[0] for part in parts), position, data.draw(st.integers(1, 20)))
    assert [record.offset for record in read] == [offset for offset in offsets if offset >= position]


@pytest.mark.spec("H-10", "B.11.2")
@settings(deadline=None)
@given(batches(), batches(), st.data())
def test_a_cut_second_batch_leaves_the_first(
    first: tuple[bytes, list[NewRecord], dict[str, Any]],
    second: tuple[bytes, list[NewRecord], dict[str, Any]],
    data: st.DataObject,
) -> None:
    kept = data.draw(st.integers(0, len(second[0]) - 1))
    assert [batch.size_in_bytes for batch in read_batches(first[0] + second[0][:kept])] == [len(first[0])]


@pytest.mark.spec("H-11", "H-12", "H-16")
@settings(deadline=None, max_examples=300)
@given(batches(), st.data())
def test_damage_gives_typed_errors_only(
    made: tuple[bytes, list[NewRecord], dict[str, Any]], data: st.DataObject
) -> None:
    damaged = bytearray(made[0])
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(12, len(damaged) - 1))
        damaged[position] = data.draw(st.integers(0, 255))
    try:
        records_of(
            bytes(damaged), made[2]["base_offset"], check_crcs=False, max_decompressed_batch_bytes=1 << 20
        )
    except CorruptDataError:
        return


@pytest.mark.spec("H-10", "H-12")
@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=200), st.sampled_from([0, 1, 2]))
def test_random_bytes_give_typed_errors_only(noise: bytes, magic: int) -> None:
    head = bytes(8) + len(noise).to_bytes(4, "big") + bytes(4) + bytes((magic,))
    for data in (noise, head + noise):
        try:
            records_of(data, check_crcs=False)
        except CorruptDataError:
            continue


@pytest.mark.spec("H-16")
@settings(deadline=None, max_examples=300)
@given(st.integers(0, 7), st.binary(max_size=100), st.sampled_from([0, 1, 2]))
def test_no_library_error_escapes(codec: int, noise: bytes, magic: int) -> None:
    prefixes = {
        1: zlib.compress(b"", wbits=31)[:10],
        2: b"\x82SNAPPY\x00" + bytes(8),
        3: b"\x04\x22\x4d\x18",
        4: b"\x28\xb5\x2f\xfd",
    }
    for data in (noise, prefixes.get(codec, b"") + noise):
        try:
            assert len(decompress(codec, data, 5000, magic=magic)) <= 5000
        except CorruptDataError:
            continue
