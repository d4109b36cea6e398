"""Small batches that the extension decodes together: that it does, and where it leaves a batch to the general way.

`tests/fuzz/fields.py` draws fields of all kinds and compares both ways; here each rule has its own field.
"""

from __future__ import annotations

import itertools
import struct
from typing import Any

import pytest

from kclient.errors import CorruptBatchError
from kclient.records.batch import BATCH_HEADER_BYTES
from kclient.records.compression import Compression
from kclient.records.decoder import PYTHON_DECODER, Decoder
from kclient.records.reader import Chunk, PartitionReader
from kclient.records.writer import NewRecord, build_batch, build_marker
from kclient.types import IsolationLevel, TimestampType
from tests.fuzz.fields import Fields, compare_field

pytest.importorskip("kclient.records._native", reason="the native decoder is not built")

from kclient.records import small_batches
from kclient.records.decoder_native import NativeDecoder

CODECS = [Compression.NONE, Compression.LZ4]
CRC_AT = 17
VALUE = b"v" * 50


def batch(base_offset: int, count: int = 3, **options: Any) -> bytes:
    records = [NewRecord(value=VALUE, timestamp=base_offset + n) for n in range(count)]
    return build_batch(records, base_offset=base_offset, **{"compression": Compression.LZ4} | options)


def batches(*base_offsets: int, **options: Any) -> bytes:
    return b"".join(batch(base_offset, **options) for base_offset in base_offsets)


def reader(data: bytes, fetch_offset: int = 0, **options: Any) -> PartitionReader:
    return PartitionReader("t", 0, data, fetch_offset, decoder=NativeDecoder(), **options)


def sizes(chunk: Chunk) -> list[int]:
    """The number of records in each run: batches that were decoded together are one run."""
    return [len(run) for run in chunk.runs]


@pytest.mark.parametrize("codec", CODECS)
def test_small_batches_become_one_run(codec: int) -> None:
    chunk = reader(batches(0, 3, 6, 9, compression=codec)).take(1_000)
    assert sizes(chunk) == [12]
    (run,) = chunk.runs
    assert list(run.offsets) == list(run.timestamps) == list(range(12))
    assert run.raw_values() == [VALUE] * 12
    assert chunk.next_offset == 12


@pytest.mark.spec("B.10.10")
def test_the_position_is_after_the_last_batch_whose_last_records_compaction_has_removed() -> None:
    chunk = reader(batch(0) + batch(3, last_offset=8)).take(1_000)
    assert sizes(chunk) == [6]
    assert chunk.next_offset == 9


def test_a_batch_that_is_wanted_in_part_is_read_the_general_way() -> None:
    found = reader(batches(0, 3, 6))
    assert [sizes(found.take(4)) for _ in range(3)] == [[3, 1], [2, 2], [1]]


@pytest.mark.spec("S2-26", "D-32", "B.11.7")
@pytest.mark.parametrize("fetch_offset", [1, 3, 4])
def test_batches_above_the_position_are_read_together(fetch_offset: int) -> None:
    chunk = reader(batches(0, 3, 6, 9), fetch_offset).take(1_000)
    assert [offset for run in chunk.runs for offset in run.offsets] == list(range(fetch_offset, 12))
    assert sizes(chunk)[-1] >= 6


@pytest.mark.spec("S2-48")
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("checks", [True, False])
def test_a_wrong_crc_ends_the_run_and_is_an_error_of_the_next_call(codec: int, checks: bool) -> None:
    damaged = bytearray(batch(6, compression=codec))
    damaged[CRC_AT] ^= 1
    data = batches(0, 3, compression=codec) + bytes(damaged) + batch(9, compression=codec)
    found = reader(data, check_crcs=checks)
    assert sizes(found.take(1_000)) == ([6] if checks else [12])
    if checks:
        with pytest.raises(CorruptBatchError, match="stored CRC") as caught:
            found.take(1_000)
        assert caught.value.base_offset == 6


@pytest.mark.parametrize(
    ("other", "sizes_of_runs"),
    [
        (batch(6, compression=Compression.GZIP), [6, 3, 3]),
        (batch(6, partition_leader_epoch=7), [6, 3, 3]),
        (batch(6, timestamp_type=TimestampType.LOG_APPEND_TIME), [6, 3, 3]),
        (batch(6, is_transactional=True, producer_id=1, producer_epoch=0), [12]),
        (build_marker(commit=True, offset=6, producer_id=1, producer_epoch=0), [6, 3]),
        (batch(6, compression=Compression.NONE), [6, 3, 3]),
    ],
)
def test_only_batches_that_are_alike_are_read_together(other: bytes, sizes_of_runs: list[int]) -> None:
    data = batches(0, 3) + other + batch(9)
    assert sizes(reader(data).take(1_000)) == sizes_of_runs


@pytest.mark.spec("B.12")
def test_transactions_are_read_one_by_one_where_aborted_ones_are_hidden() -> None:
    of_one = {"is_transactional": True, "producer_id": 1, "producer_epoch": 0}
    data = batches(0, 3) + batches(6, 9, **of_one) + batches(12, 15)
    chunk = reader(data, isolation_level=IsolationLevel.READ_COMMITTED, aborted_transactions=[]).take(1_000)
    assert sizes(chunk) == [6, 3, 3, 6]


def test_the_time_of_the_broker_is_that_of_each_batch() -> None:
    stamped = {"timestamp_type": TimestampType.LOG_APPEND_TIME}
    (run,) = (
        reader(batch(0, max_timestamp=70, **stamped) + batch(3, max_timestamp=80, **stamped)).take(9).runs
    )
    assert list(run.timestamps) == [70] * 3 + [80] * 3
    assert run.timestamp_type is TimestampType.LOG_APPEND_TIME


@pytest.mark.parametrize("most", [1, 200, 10_000])
def test_decompression_stops_where_enough_is_unpacked(most: int) -> None:
    data = batches(*range(0, 60, 3))
    ours, plain = reader(data), PartitionReader("t", 0, data, 0, decoder=PYTHON_DECODER)
    while not plain.exhausted:
        found, expected = ours.take(1_000, most), plain.take(1_000, most)
        assert (sum(sizes(found)), found.unpacked_bytes) == (sum(sizes(expected)), expected.unpacked_bytes)
    assert ours.exhausted


def test_a_run_is_bounded_by_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_batches, "MOST_BYTES", 1_000)
    runs = sizes(reader(batches(*range(0, 60, 3))).take(1_000))
    assert sum(runs) == 60
    assert 1 < len(runs) < 20


def test_a_large_batch_is_read_the_general_way() -> None:
    large = build_batch([NewRecord(value=bytes(70_000))], base_offset=6)
    assert sizes(reader(batches(0, 3, compression=Compression.NONE) + large + batch(7)).take(100)) == [7, 3]


def test_a_header_that_claims_more_than_the_field_has_is_left_alone() -> None:
    data = bytearray(batches(0, 3))
    struct.pack_into(">i", data, len(batch(0)) + 8, 2**31 - 1)
    found = reader(bytes(data))
    assert sizes(found.take(100)) == [3]
    assert found.exhausted


@pytest.mark.parametrize("decoder", [PYTHON_DECODER, NativeDecoder()], ids=["python", "native"])
def test_records_below_the_position_take_the_size_of_their_own_batch_along(decoder: Decoder) -> None:
    """A damaged log: the second batch begins before the first one ends, and its records are smaller."""
    small = build_batch([NewRecord(value=b"v", timestamp=1) for _ in range(4)], base_offset=1)
    data = batch(0, compression=Compression.NONE) + small
    chunk = PartitionReader("t", 0, data, 0, decoder=decoder).take(10)
    assert [offset for run in chunk.runs for offset in run.offsets] == [0, 1, 2, 3, 4]
    sections = [len(each) - BATCH_HEADER_BYTES for each in (batch(0, compression=Compression.NONE), small)]
    assert chunk.size_bytes == sections[0] + sections[1] // 2


def test_both_ways_return_the_same() -> None:
    native, ends = NativeDecoder(), set()
    for field in itertools.islice(Fields(seed=3), 400):
        ends.add(compare_field(native, field))
    assert {"sound field", "CorruptBatchError", "TooManyHeadersError", "BatchTooLargeError"} <= ends


@pytest.mark.parametrize(("data", "sizes"), [(70, None), (0, [1]), (10, [-1]), (10, [(1 << 63) - 1])])
def test_sizes_that_are_not_those_of_the_data_are_refused(data: int, sizes: list[int] | None) -> None:
    """The extension must not read beyond the data, whoever calls it."""
    field = bytes(build_batch([NewRecord(b"k", b"v", 1, ())] * 5))
    found, _, _ = small_batches.find_batches(field, 0, 0, 100, 10, len(field), True)
    with pytest.raises(ValueError, match="of what is in the data"):
        small_batches.decode_batches(field, found, field[:data], sizes, 10)
