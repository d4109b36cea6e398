"""Several small batches decoded at once by the extension `_native` (`native/batches.c`).

With 140 records in a batch of 16 kB, what Python does for each batch costs more than its records. Here a piece of the
field is read in three steps:

    find_batches       headers        up to the first batch that is not plain
    here               CRC, lz4       up to the first one that is damaged, or not one frame
    decode_batches     records        up to the first one with a bad record

A batch is plain if it is whole, of format 2, uncompressed or lz4, not a marker, small, wholly above the position, and
has no more records than are wanted. Where a step ends early, `PartitionReader` goes on with the next batch one by one:
it handles and names every case, so nothing is refused here, and no text is twice.

Decompressed batches are joined, because columns have one `data`.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import attrs

from kclient.records._native import decode_batches, find_batches
from kclient.records.batch import BATCH_HEADER_BYTES, CODEC_MASK, CRC32C_FROM, LOG_APPEND_TIME_FLAG, crc32c
from kclient.records.columns import Columns
from kclient.records.decoder_native import ArrayColumns
from kclient.records.sections import UNPACKED_BYTES_A_UNIT, WORK_A_BATCH
from kclient.types import TimestampType

LARGEST_BYTES: Final = 65_536  # of a batch; a larger one has enough records to share its cost
LARGEST_UNPACKED_BYTES: Final = 262_144  # of one, decompressed; the library allocates that much for each
MOST_BYTES: Final = 4 << 20  # of all together, decompressed
FIRST_STEP_BYTES: Final = 65_536

Found: TypeAlias = tuple[int, int, int, int]
"""Of a batch: start and end in the field, the stored CRC, the offset after it."""


@attrs.frozen(kw_only=True)
class Wanted:
    """What may be taken at once, and how it is checked. `work` is counted as in `reader`."""

    records: int
    unpacked_bytes: int
    work: int
    check_crcs: bool
    max_batch_bytes: int  # decompressed
    max_headers: int
    with_transactions: bool

    def work_of(self, unpacked_bytes: int) -> int:
        """Return what a batch costs."""
        return WORK_A_BATCH + unpacked_bytes // UNPACKED_BYTES_A_UNIT


@attrs.frozen(kw_only=True)
class SmallBatches:
    """Batches that were decoded together: their records, where they end, and what they cost."""

    columns: Columns
    next_offset: int
    end: int  # in the field
    work: int
    unpacked_bytes: int


def read_small_batches(field: bytes, position: int, next_offset: int, wanted: Wanted) -> SmallBatches | None:
    """Decode the plain batches at the position of the field. Return None if there is none."""
    most_batches = -(-wanted.work // WORK_A_BATCH)
    found, attributes, leader_epoch = find_batches(
        field, position, next_offset, wanted.records, most_batches, LARGEST_BYTES, wanted.with_transactions
    )
    data, sizes = _data_of(field, found, attributes & CODEC_MASK, wanted)
    done, *numbers = decode_batches(field, found, data, sizes, wanted.max_headers)
    if not done:
        return None
    is_stamped = attributes & LOG_APPEND_TIME_FLAG
    kind = TimestampType.LOG_APPEND_TIME if is_stamped else TimestampType.CREATE_TIME
    columns = ArrayColumns(data, kind, leader_epoch if leader_epoch >= 0 else None)
    columns.append(numbers)
    _, end, _, after = found[done - 1]
    unpacked = [0] * done if sizes is None else sizes[:done]
    columns.size_bytes = end - position - done * BATCH_HEADER_BYTES if sizes is None else sum(unpacked)
    return SmallBatches(
        columns=columns,
        next_offset=after,
        end=end,
        work=sum(map(wanted.work_of, unpacked)),
        unpacked_bytes=sum(unpacked),
    )


def _data_of(field: bytes, found: list[Found], codec: int, wanted: Wanted) -> tuple[bytes, list[int] | None]:
    """Return the data in which the records are, and their sizes if they were decompressed.

    Batches from the first one that is damaged on are taken off the list.
    """
    if not codec:
        if wanted.check_crcs:
            del found[_intact(field, found) :]
        return field, None
    parts = _decompressed(field, found, wanted)
    del found[len(parts) :]
    return b"".join(parts), list(map(len, parts))


def _intact(field: bytes, found: list[Found]) -> int:
    """Return how many of the batches have the CRC of their bytes, up to the first that has not."""
    view = memoryview(field)
    for index, (start, end, crc, _) in enumerate(found):
        if crc32c(view[start + CRC32C_FROM : end]) != crc:
            return index
    return len(found)


def _decompressed(field: bytes, found: list[Found], wanted: Wanted) -> list[bytes]:
    """Decompress batches, up to the first that is damaged or not one frame, or until enough was done."""
    parts: list[bytes] = []
    try:
        import lz4.frame
    except ImportError:
        return parts
    view, left, work = memoryview(field), min(wanted.unpacked_bytes, MOST_BYTES), wanted.work
    context = lz4.frame.create_decompression_context()  # begins again after each frame
    for start, end, crc, _ in found:
        if left <= 0 or work <= 0 or (wanted.check_crcs and crc32c(view[start + CRC32C_FROM : end]) != crc):
            break
        frame = view[start + BATCH_HEADER_BYTES : end]
        room = min(max(FIRST_STEP_BYTES, 4 * len(frame)), LARGEST_UNPACKED_BYTES)
        try:
            part, read, is_whole = lz4.frame.decompress_chunk(context, frame, max_length=room)
        except RuntimeError:
            break
        if not is_whole or read != len(frame) or len(part) > wanted.max_batch_bytes:
            break
        parts.append(part)
        left -= len(part)
        work -= wanted.work_of(len(part))
    return parts
