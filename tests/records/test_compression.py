"""Codecs: other people's framings, bombs, cut and damaged streams, missing libraries."""

from __future__ import annotations

import gzip
import random
import struct
import sys
import tracemalloc
import zlib
from collections.abc import Callable

import cramjam
import lz4.frame
import pyarrow as pa
import pytest

from kclient.errors import BatchTooLargeError, CorruptBatchError, UnsupportedFormatError
from kclient.records.compression import MAX_FRAMES, Compression, compress, decompress, load_zstd
from kclient.records.lz4_frame import header_checksum
from kclient.records.snappy import MAX_BLOCKS
from kclient.records.writer import NewRecord, build_batch
from tests.records.support import records_of
from tests.records.test_hostile import patched

zstd = load_zstd()
TEXT = b"".join(b"line %d of some text\n" % n for n in range(5000))
MEBIBYTE = 1 << 20
CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]
XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)


def xerial(*blocks: bytes, header: bytes = XERIAL_HEADER) -> bytes:
    packed = [bytes(cramjam.snappy.compress_raw(block)) for block in blocks]
    return header + b"".join(struct.pack(">i", len(block)) + block for block in packed)


@pytest.mark.spec("B.11.5")
@pytest.mark.parametrize("codec", CODECS)
def test_another_library_unpacks_what_we_pack(codec: Compression) -> None:
    packed = compress(codec, TEXT)
    if codec == Compression.SNAPPY:
        assert packed.startswith(XERIAL_HEADER)
        position, parts = 16, []
        while position < len(packed):
            (size,) = struct.unpack_from(">i", packed, position)
            block = packed[position + 4 : position + 4 + size]
            parts.append(
                pa.Codec("snappy").decompress(block, min(32768, len(TEXT) - 32768 * len(parts)), asbytes=True)
            )
            position += 4 + size
        assert b"".join(parts) == TEXT
    else:
        assert pa.input_stream(pa.BufferReader(packed), compression=codec.name.lower()).read() == TEXT


@pytest.mark.spec("B.11.5", "D-57", "H-16")
@pytest.mark.parametrize(
    ("codec", "packed"),
    [
        pytest.param(1, gzip.compress(TEXT[:999]) + gzip.compress(TEXT[999:]), id="gzip, two members"),
        pytest.param(2, bytes(cramjam.snappy.compress_raw(TEXT)), id="snappy, one raw block"),
        pytest.param(2, xerial(TEXT[:999], TEXT[999:]), id="snappy, xerial"),
        pytest.param(
            2, xerial(TEXT, header=XERIAL_HEADER[:8] + b"\1\0\0\0\1\0\0\0"), id="snappy, other versions"
        ),
        pytest.param(2, xerial(TEXT[:999]) + xerial(TEXT[999:]), id="snappy, header in mid-stream"),
        pytest.param(3, lz4.frame.compress(TEXT, block_linked=True), id="lz4, linked blocks"),
        pytest.param(
            3, lz4.frame.compress(TEXT, block_linked=False, content_checksum=True), id="lz4, checksummed"
        ),
        pytest.param(
            3, lz4.frame.compress(TEXT, store_size=False, block_checksum=True), id="lz4, block checksums"
        ),
        pytest.param(
            3, lz4.frame.compress(TEXT[:999]) + lz4.frame.compress(TEXT[999:]), id="lz4, two frames"
        ),
        pytest.param(4, zstd.compress(TEXT), id="zstd, with content size"),
        pytest.param(4, zstd.compress(TEXT[:999]) + zstd.compress(TEXT[999:]), id="zstd, two frames"),
        pytest.param(4, b"\x50\x2a\x4d\x18\x03\0\0\0abc" + zstd.compress(TEXT), id="zstd, skippable frame"),
    ],
)
@pytest.mark.parametrize("limit", [len(TEXT), 1 << 27])
def test_all_framings_are_unpacked(codec: int, packed: bytes, limit: int) -> None:
    assert decompress(codec, packed, limit) == TEXT
    assert decompress(codec, memoryview(packed), limit) == TEXT


@pytest.mark.spec("D-55", "B.11.5")
@pytest.mark.parametrize("versions", [(1, 1), (0, 0), (7, -1), (1 << 24, 1 << 24)])
def test_the_versions_in_a_snappy_header_are_not_looked_at(versions: tuple[int, int]) -> None:
    """Seen: data of Redpanda refused, which writes the two numbers the other way round."""
    batch = build_batch([NewRecord(value=TEXT)], compression=Compression.SNAPPY)
    assert batch[61:].startswith(XERIAL_HEADER)
    for position, version in zip((69, 73), versions, strict=True):
        batch = patched(batch, position, ">i", version)
    assert [record.value for record in records_of(batch)] == [TEXT]


@pytest.mark.spec("H-14", "H-16")
@pytest.mark.parametrize("codec", CODECS)
def test_every_cut_is_refused(codec: Compression) -> None:
    packed = compress(codec, TEXT[:3000])
    for size in range(0, len(packed), 7):
        try:
            unpacked = decompress(codec, packed[:size], 1 << 20)
        except CorruptBatchError:
            continue
        # xerial blocks have no end mark: a cut between two of them is for the record count to find
        assert codec == Compression.SNAPPY
        assert TEXT.startswith(unpacked)
        assert size in (0, 16) or len(unpacked) % 32768 == 0


@pytest.mark.spec("H-16")
@pytest.mark.parametrize("codec", [1, 3, 4])
def test_garbage_after_the_stream_is_refused(codec: int) -> None:
    with pytest.raises(CorruptBatchError):
        decompress(codec, compress(codec, TEXT) + b"garbage", 1 << 20)


@pytest.mark.spec("H-14")
@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused_while_it_goes_off(codec: Compression) -> None:
    packed = compress(codec, bytes(64 * MEBIBYTE))
    tracemalloc.start()
    try:
        with pytest.raises(BatchTooLargeError) as caught:
            decompress(codec, packed, MEBIBYTE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.limit == MEBIBYTE
    assert peak < 8 * MEBIBYTE + 2 * len(packed)


@pytest.mark.spec("H-14")
@pytest.mark.parametrize("codec", CODECS)
def test_the_limit_itself_is_allowed(codec: Compression) -> None:
    assert len(decompress(codec, compress(codec, bytes(MEBIBYTE)), MEBIBYTE)) == MEBIBYTE
    with pytest.raises(BatchTooLargeError):
        decompress(codec, compress(codec, bytes(MEBIBYTE + 1)), MEBIBYTE)


@pytest.mark.spec("H-14")
def test_a_bomb_in_a_fetch_names_the_setting_and_the_way_past_it() -> None:
    batch = build_batch([NewRecord(value=bytes(MEBIBYTE))] * 3, compression=Compression.ZSTD)
    with pytest.raises(
        BatchTooLargeError, match=r"max_decompressed_batch_bytes, or seek to offset 3"
    ) as caught:
        records_of(batch, max_decompressed_batch_bytes=MEBIBYTE)
    assert (caught.value.topic, caught.value.base_offset, caught.value.next_offset) == ("t", 0, 3)


@pytest.mark.spec("H-14", "H-16")
@pytest.mark.parametrize(
    "block", [b"\xff\xff\xff\x3f" + bytes(40), b"\xff\xff\xff\xff\xff\xff", b"\x80", b""]
)
def test_a_lying_snappy_size_allocates_nothing(block: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(CorruptBatchError):
            decompress(Compression.SNAPPY, block, 1 << 27)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.spec("H-16")
@pytest.mark.parametrize("size", [-1, 0, 100, 2**31 - 1])
def test_a_lying_xerial_block_size_is_refused(size: int) -> None:
    with pytest.raises(CorruptBatchError, match="snappy block"):
        decompress(Compression.SNAPPY, XERIAL_HEADER + struct.pack(">i", size) + b"\x00", 1 << 20)


@pytest.mark.spec("H-16")
def test_a_zstd_window_above_128_mib_is_refused() -> None:
    parameter = zstd.CompressionParameter
    compressor = zstd.ZstdCompressor(options={parameter.window_log: 28, parameter.content_size_flag: 0})
    packed = compressor.compress(b"x", zstd.ZstdCompressor.FLUSH_BLOCK) + compressor.flush()
    with pytest.raises(CorruptBatchError):
        decompress(Compression.ZSTD, packed, 1 << 20)


@pytest.mark.spec("H-16")
@pytest.mark.parametrize(
    ("codec", "pack"),
    [
        pytest.param(1, gzip.compress, id="gzip"),
        pytest.param(3, lz4.frame.compress, id="lz4"),
        pytest.param(4, zstd.compress, id="zstd"),
    ],
)
def test_as_many_frames_as_are_allowed_are_unpacked_and_no_more(
    codec: int, pack: Callable[[bytes], bytes]
) -> None:
    frames = pack(b"") * (MAX_FRAMES - 1) + compress(codec, TEXT)
    assert decompress(codec, frames, 1 << 20) == TEXT
    with pytest.raises(CorruptBatchError, match="more than 4096 frames"):
        decompress(codec, frames + pack(b""), 1 << 20)


def test_as_many_snappy_blocks_as_are_allowed_are_unpacked_and_no_more() -> None:
    blocks = XERIAL_HEADER + struct.pack(">ib", 1, 0) * (MAX_BLOCKS - 1) + compress(2, TEXT[:100])
    assert decompress(2, blocks, 1 << 20) == TEXT[:100]
    with pytest.raises(CorruptBatchError, match="more than 65536 snappy blocks"):
        decompress(2, blocks + struct.pack(">ib", 1, 0), 1 << 20)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [MEBIBYTE - 1, MEBIBYTE, MEBIBYTE + 1, 3 * MEBIBYTE + 7])
def test_what_is_larger_than_a_step_is_whole(codec: Compression, size: int) -> None:
    noise = random.Random(size).randbytes(200_000)
    data = (noise + bytes(size))[:size] + noise
    assert decompress(codec, compress(codec, data), len(data)) == data


@pytest.mark.parametrize("codec", CODECS)
def test_unpacking_takes_the_memory_once(codec: Compression) -> None:
    packed = compress(codec, bytes(64 * MEBIBYTE))
    tracemalloc.start()
    try:
        decompress(codec, packed, 64 * MEBIBYTE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.2 * 64 * MEBIBYTE + 2 * len(packed) + 2 * MEBIBYTE


def as_format_0(frame: bytes) -> bytes:
    """What Kafka's producers of format 0 wrote: the checksum covers the magic as well."""
    return frame[:6] + bytes((header_checksum(frame[:6]),)) + frame[7:]


@pytest.mark.spec("B.11.5", "D-56")
def test_format_0_takes_either_lz4_header_checksum() -> None:
    frame = lz4.frame.compress(TEXT, store_size=False)
    assert frame[6] == header_checksum(frame[4:6])
    assert as_format_0(frame) != frame
    assert decompress(Compression.LZ4, frame, 1 << 20, magic=0) == TEXT
    assert decompress(Compression.LZ4, as_format_0(frame), 1 << 20, magic=0) == TEXT
    sized = lz4.frame.compress(TEXT, store_size=True)
    assert decompress(Compression.LZ4, sized, 1 << 20, magic=0) == TEXT


@pytest.mark.spec("D-56", "H-16")
def test_formats_1_and_2_and_any_other_checksum_are_refused() -> None:
    frame = lz4.frame.compress(TEXT, store_size=False)
    with pytest.raises(CorruptBatchError):
        decompress(Compression.LZ4, as_format_0(frame), 1 << 20, magic=1)
    known = {frame[6], as_format_0(frame)[6]}
    for checksum in set(range(256)) - known:
        with pytest.raises(CorruptBatchError, match="checksum"):
            decompress(Compression.LZ4, frame[:6] + bytes((checksum,)) + frame[7:], 1 << 20, magic=0)


@pytest.mark.spec("H-16")
@pytest.mark.parametrize(
    "frame",
    [b"", b"\x02\x21\x4c\x18" + bytes(20), b"\x04\x22\x4d\x18\x40", b"\x04\x22\x4d\x18\x69\x40\x00\x00"],
)
def test_format_0_refuses_what_is_no_lz4_frame(frame: bytes) -> None:
    with pytest.raises(CorruptBatchError, match="lz4"):
        decompress(Compression.LZ4, frame, 1 << 20, magic=0)


@pytest.mark.spec("H-13", "B.11.4")
@pytest.mark.parametrize(("codec", "magic"), [(5, 2), (6, 2), (7, 1), (4, 1), (4, 0)])
def test_codecs_that_a_format_does_not_have(codec: int, magic: int) -> None:
    with pytest.raises(UnsupportedFormatError) as caught:
        decompress(codec, b"", 1, magic=magic)
    assert (caught.value.codec, caught.value.magic) == (codec, magic)


@pytest.mark.spec("D-54", "B.11.5")
@pytest.mark.parametrize(("codec", "module"), [(2, "cramjam"), (3, "lz4.frame"), (4, "backports")])
def test_a_missing_codec_is_named_with_the_partition(
    codec: int, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if module == "backports" and sys.version_info >= (3, 14):
        module = "compression"
    data = build_batch([NewRecord(value=b"x")], compression=codec)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        UnsupportedFormatError, match=f"t-0.*{Compression(codec).name.lower()}.*seek to offset 1"
    ) as caught:
        records_of(data)
    assert caught.value.codec == codec


def test_gzip_output_has_the_checksum_of_the_input() -> None:
    assert compress(Compression.GZIP, TEXT)[-8:] == struct.pack("<II", zlib.crc32(TEXT), len(TEXT))
