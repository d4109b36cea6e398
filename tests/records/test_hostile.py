"""Bytes that lie. Typed errors only, nothing allocated on a claim, time in proportion to the input."""

from __future__ import annotations

import struct
import time
import tracemalloc
import zlib

import pytest

from kclient.errors import CorruptBatchError, CorruptDataError, UnsupportedFormatError
from kclient.records.batch import BATCH_HEADER_BYTES, crc32c, read_batches
from kclient.records.compression import compress
from kclient.records.reader import PartitionReader
from kclient.records.varint import encode_signed
from kclient.records.writer import NewRecord, build_batch
from tests.records.support import records_of, take_all

GOOD = build_batch([NewRecord(b"k", b"v%d" % n, 1000 + n, [("h", b"x")]) for n in range(4)])


def patched(batch: bytes, position: int, layout: str, value: int) -> bytes:
    """The batch with one field overwritten and the CRC made right again."""
    changed = bytearray(batch)
    struct.pack_into(layout, changed, position, value)
    struct.pack_into(">I", changed, 17, crc32c(bytes(changed[21:])))
    return bytes(changed)


def batch_of(body: bytes, count: int, *, last_delta: int | None = None, attributes: int = 0) -> bytes:
    """A batch around a hand-made record section."""
    empty = build_batch([], last_offset=count - 1 if last_delta is None else last_delta)
    batch = bytearray(empty + body)
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">h", batch, 21, attributes)
    return patched(bytes(batch), 57, ">i", count)


def record(
    *, delta: int = 0, key: bytes = b"\x01", value: bytes = b"\x01", headers: bytes = b"\x00"
) -> bytes:
    body = b"\x00\x00" + encode_signed(delta) + key + value + headers
    return encode_signed(len(body)) + body


def refuse(data: bytes, match: str | None = None) -> CorruptBatchError:
    with pytest.raises(CorruptBatchError, match=match) as caught:
        records_of(data)
    error = caught.value
    assert (error.topic, error.partition) == ("t", 0)
    assert error.next_offset is not None
    assert error.next_offset > 0
    assert f"seek to offset {error.next_offset}" in str(error)
    return error


def test_the_tools_of_this_file_make_sound_batches() -> None:
    assert [r.offset for r in records_of(batch_of(record() + record(delta=1), 2))] == [0, 1]


@pytest.mark.spec("H-10", "B.11.2")
@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13])
def test_a_length_that_no_batch_has(length: int) -> None:
    refuse(patched(GOOD, 8, ">i", length), "short")


@pytest.mark.spec("H-10")
@pytest.mark.parametrize("length", [14, 48])
def test_a_length_below_the_header(length: int) -> None:
    refuse(patched(GOOD, 8, ">i", length), "header")


@pytest.mark.spec("H-10")
def test_a_bad_length_after_good_batches_gives_those_first() -> None:
    reader = PartitionReader("t", 0, GOOD + patched(GOOD, 8, ">i", -5), 0)
    assert len(reader.take(500)) == 4
    with pytest.raises(CorruptBatchError):
        reader.take(500)


@pytest.mark.spec("H-13")
@pytest.mark.parametrize("magic", [3, 127, -1])
def test_an_unknown_magic(magic: int) -> None:
    with pytest.raises(UnsupportedFormatError, match="magic") as caught:
        records_of(patched(GOOD, 16, ">b", magic))
    assert caught.value.magic == magic & 0xFF


@pytest.mark.spec("H-13")
def test_reserved_attribute_bits_are_ignored() -> None:
    assert len(records_of(patched(GOOD, 21, ">H", 0xFF00 & ~0x8000))) == 4


@pytest.mark.spec("H-13")
@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec(codec: int) -> None:
    with pytest.raises(UnsupportedFormatError, match="t-0") as caught:
        records_of(patched(GOOD, 21, ">h", codec))
    assert (caught.value.codec, caught.value.next_offset) == (codec, 4)


@pytest.mark.spec("H-12")
@pytest.mark.parametrize("count", [-(2**31), -1, 0, 3, 5, 2**31 - 1])
def test_a_count_that_is_not_that_of_the_records(count: int) -> None:
    refuse(patched(GOOD, 57, ">i", count))


@pytest.mark.spec("B.11.1", "H-12")
@pytest.mark.parametrize("codec", range(1, 5))
def test_an_empty_batch_may_hold_what_a_codec_makes_of_nothing(codec: int) -> None:
    data = batch_of(compress(codec, b""), 0, last_delta=3, attributes=codec)
    reader = PartitionReader("t", 0, data, 0)
    assert (sum(map(len, take_all(reader))), reader.next_offset) == (0, 4)
    refuse(batch_of(compress(codec, record()), 0, last_delta=3, attributes=codec), "claims no records")


@pytest.mark.spec("H-12", "B.10.12")
@pytest.mark.parametrize("codec", range(5))
def test_a_huge_count_allocates_nothing(codec: int) -> None:
    body = compress(codec, record())
    data = batch_of(body, 2**31 - 1, last_delta=2**31 - 1, attributes=codec)
    records_of(build_batch([NewRecord()], compression=codec))  # the library is imported
    tracemalloc.start()
    try:
        refuse(data, "2147483647 records")
        assert tracemalloc.get_traced_memory()[1] < 400_000
    finally:
        tracemalloc.stop()


@pytest.mark.spec("H-12")
@pytest.mark.parametrize(("base_offset", "last_delta"), [(-1, 3), (0, -1), (2**63 - 1, 0), (2**63 - 4, 3)])
def test_offsets_that_cannot_be(base_offset: int, last_delta: int) -> None:
    data = patched(patched(GOOD, 0, ">q", base_offset), 23, ">i", last_delta)
    with pytest.raises(CorruptBatchError, match="offset"):
        list(read_batches(data))


@pytest.mark.spec("H-12")
@pytest.mark.parametrize("deltas", [(0, 0), (1, 0), (0, 2), (-1, 0)])
def test_offset_deltas_must_ascend_within_the_batch(deltas: tuple[int, int]) -> None:
    body = b"".join(record(delta=delta) for delta in deltas)
    reader = PartitionReader("t", 0, batch_of(body, 2), 0)
    with pytest.raises(CorruptBatchError, match="offset delta"):
        take_all(reader)


@pytest.mark.spec("H-12")
def test_the_records_before_a_bad_one_are_given_and_it_is_never_passed() -> None:
    body = record() + record(delta=1) + record(delta=2, key=b"\x03")
    reader = PartitionReader("t", 0, batch_of(body, 3), 0)
    assert [list(run.offsets) for run in reader.take(500).runs] == [[0, 1]]
    assert reader.next_offset == 2
    with pytest.raises(CorruptBatchError, match="negative size"):
        reader.take(500)


@pytest.mark.spec("H-12", "H-26", "B.11.1")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"\x01" + record()[1:], id="length negative"),
        pytest.param(b"\x0e" + record()[1:], id="length one too long"),
        pytest.param(b"\x0a" + record()[1:], id="length one too short"),
        pytest.param(record(key=b"\x03"), id="key size −2"),
        pytest.param(record(value=b"\x05"), id="value size −3"),
        pytest.param(record(key=b"\xfe\xff\xff\xff\x0f"), id="key size 2³¹−1"),
        pytest.param(record(value=b"\xfe\xff\xff\xff\x0f"), id="value size 2³¹−1"),
        pytest.param(record(value=b"\xff\xff\xff\xff\xff\x01"), id="varint of six bytes"),
        pytest.param(record(headers=b"\x01"), id="header count −1"),
        pytest.param(record(headers=b"\xfe\xff\xff\xff\x0f"), id="header count 2³¹−1"),
        pytest.param(record(headers=b"\x02\x01\x00"), id="header key null"),
        pytest.param(record(headers=b"\x02\xfe\x01\x00"), id="header key beyond the record"),
        pytest.param(record(headers=b"\x02\x00\x03"), id="header value −2"),
        pytest.param(record(headers=b"\x02\x00\xfe\x01"), id="header value beyond the record"),
        pytest.param(record(headers=b"\x04\x00\x00"), id="second header missing"),
        pytest.param(record() + b"\x00" * 8, id="bytes behind the last record"),
    ],
)
@pytest.mark.parametrize("behind", [b"", GOOD])
def test_a_record_that_lies(body: bytes, behind: bytes) -> None:
    padding = b"" if len(body) >= 7 else bytes(7 - len(body))
    refuse(batch_of(body + padding, 1) + behind)


@pytest.mark.spec("H-12")
def test_a_record_must_not_reach_into_the_next_batch() -> None:
    value_bytes = (
        5  # they would come from the base offset of the next batch, whose sixth byte is 0: no headers
    )
    body = b"\x00\x00\x00\x01" + encode_signed(value_bytes)
    padded = batch_of(encode_signed(len(body) + value_bytes + 1) + body + b"\x00\x00", 1)
    following = build_batch([NewRecord()], base_offset=1)
    refuse(padded + following, "end")


@pytest.mark.spec("H-26", "D-79")
def test_empty_and_null_header_values_stay_apart() -> None:
    headers = (("a", None), ("a", b""), ("", b"x"))
    assert records_of(build_batch([NewRecord(headers=headers)]))[0].headers == headers


@pytest.mark.spec("H-26")
def test_a_header_key_that_is_not_utf_8_is_read_as_java_reads_it() -> None:
    body = record(headers=b"\x02\x04\xffA\x00")
    assert records_of(batch_of(body, 1))[0].headers == (("\ufffdA", b""),)


@pytest.mark.spec("H-12")
def test_a_timestamp_at_the_edge_of_64_bits_is_read() -> None:
    rows = [NewRecord(timestamp=0), NewRecord(timestamp=2**63 - 1)]
    assert [r.timestamp for r in records_of(build_batch(rows))] == [0, 2**63 - 1]


# --- formats 0 and 1


def message(
    offset: int = 0,
    key: bytes | None = None,
    value: bytes | None = b"v",
    *,
    magic: int = 1,
    attributes: int = 0,
    timestamp: int = 5,
    crc: int | None = None,
) -> bytes:
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for part in (key, value):
        body += struct.pack(">i", -1 if part is None else len(part)) + (part or b"")
    checksum = zlib.crc32(body) if crc is None else crc
    return struct.pack(">qiI", offset, len(body) + 4, checksum) + body


def wrapper(offset: int, inner: bytes, *, magic: int = 1, attributes: int = 1) -> bytes:
    return message(offset, None, compress(attributes & 7, inner), magic=magic, attributes=attributes)


@pytest.mark.spec("B.11.4")
def test_relative_and_absolute_offsets_within_a_wrapper() -> None:
    relative = wrapper(12, message(0) + message(1) + message(2))
    absolute = wrapper(12, message(10) + message(12))
    format_0 = wrapper(12, message(10, magic=0) + message(12, magic=0), magic=0)
    assert [r.offset for r in records_of(relative)] == [10, 11, 12]
    assert [r.offset for r in records_of(absolute)] == [10, 12]
    assert [(r.offset, r.timestamp) for r in records_of(format_0)] == [(10, -1), (12, -1)]


@pytest.mark.spec("B.11.4")
def test_a_wrapper_left_at_offset_0_holds_offsets_from_0() -> None:
    reader = PartitionReader("t", 0, wrapper(0, message(0) + message(1)), 0)
    assert [list(run.offsets) for run in reader.take(5).runs] == [[0, 1]]
    assert reader.next_offset == 2


@pytest.mark.spec("B.11.4")
def test_the_wrapper_overrides_timestamps_with_log_append_time() -> None:
    inner = message(0, timestamp=1) + message(1, timestamp=2)
    appended = message(1, None, compress(1, inner), attributes=1 | 8, timestamp=99)
    assert [(r.timestamp, r.timestamp_type) for r in records_of(appended)] == [(99, 1), (99, 1)]
    assert [r.timestamp for r in records_of(wrapper(1, inner))] == [1, 2]


@pytest.mark.spec("D-57", "B.11.4")
@pytest.mark.parametrize("cut", [1, 20, 35])
def test_a_cut_message_ends_a_wrapper_quietly(cut: int) -> None:
    data = wrapper(1, message(0) + message(1) + message(2)[:-cut])
    assert [r.offset for r in records_of(data)] == [0, 1]


@pytest.mark.spec("B.11.4", "H-13", "H-15")
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(wrapper(5, b""), id="nothing within"),
        pytest.param(wrapper(5, message(0)[:20]), id="no whole message within"),
        pytest.param(wrapper(1, message(0) + message(5)), id="wrapper below its last message"),
        pytest.param(wrapper(1, message(0, attributes=1)), id="compressed twice"),
        pytest.param(wrapper(1, message(0, magic=0)), id="another format within"),
        pytest.param(wrapper(1, message(0, crc=1)), id="wrong CRC within"),
        pytest.param(wrapper(3, message(1) + message(0) + message(3)), id="offsets do not ascend"),
        pytest.param(wrapper(3, b"\0" * 8 + b"\xff\xff\xff\xff" + bytes(30)), id="size −1 within"),
        pytest.param(message(1, None, None, attributes=1), id="wrapper without a value"),
        pytest.param(message(1, None, b"no gzip", attributes=1), id="value is not gzip"),
        pytest.param(message(1, crc=7), id="wrong CRC"),
        pytest.param(message(-1), id="offset −1"),
    ],
)
def test_messages_that_lie(data: bytes) -> None:
    with pytest.raises(CorruptBatchError, match="t-0"):
        records_of(data)


@pytest.mark.spec("H-13")
@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("size", [-2, 100, 2**31 - 1])
def test_message_fields_with_lying_sizes(position: int, size: int) -> None:
    sizes = [-1, -1]
    sizes[position] = size
    body = struct.pack(">bbqii", 1, 0, 0, *sizes)
    data = struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body
    with pytest.raises(CorruptBatchError, match="key or value"):
        records_of(data)


@pytest.mark.spec("B.11.4", "H-13")
def test_zstd_is_not_a_codec_of_old_formats() -> None:
    with pytest.raises(UnsupportedFormatError, match="format 1"):
        records_of(message(0, attributes=4))


# --- many of them


@pytest.mark.exclusive
@pytest.mark.spec("H-27")
@pytest.mark.parametrize(
    "batch", [build_batch([]), build_batch([NewRecord()]), message()], ids=["empty", "one", "message"]
)
def test_many_tiny_batches_take_time_in_proportion(batch: bytes) -> None:
    def seconds(count: int) -> float:
        data = b"".join(struct.pack(">q", offset) + batch[8:] for offset in range(count))
        start = time.process_time()
        reader = PartitionReader("t", 0, data, 0)
        take_all(reader, 500)
        assert reader.next_offset == count
        return time.process_time() - start

    seconds(100)
    small = min(seconds(2_000) for _ in range(3))
    assert seconds(40_000) < 20 * small * 3


@pytest.mark.spec("H-12", "H-16")
def test_objects_stay_within_64_times_the_input() -> None:
    data = build_batch([NewRecord()] * 10_000)
    records_of(GOOD)
    tracemalloc.start()
    try:
        chunks = take_all(PartitionReader("t", 0, data, 0))
        assert tracemalloc.get_traced_memory()[1] < 64 * len(data)
    finally:
        tracemalloc.stop()
    assert sum(map(len, chunks)) == 10_000


@pytest.mark.spec("H-11")
def test_every_flipped_bit_is_noticed_or_outside_the_crc() -> None:
    baseline = [tuple(r) for r in records_of(GOOD)]
    for bit in range(8 * len(GOOD)):
        data = bytearray(GOOD)
        data[bit // 8] ^= 1 << bit % 8
        try:
            read = [tuple(r)[3:8] for r in records_of(bytes(data))]
        except CorruptDataError:
            continue
        assert bit // 8 < 16  # base offset, length and leader epoch are not under the CRC
        assert read == [r[3:8] for r in baseline] or bit // 8 < 12


def test_the_header_is_61_bytes() -> None:
    assert len(build_batch([])) == BATCH_HEADER_BYTES == 61
