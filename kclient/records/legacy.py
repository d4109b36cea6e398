"""Messages of formats 0 and 1, alone or inside a compressed wrapper.

    offset i64 │ size i32 │ CRC-32 u32 │ magic i8 │ attributes i8 │ timestamp i64 (format 1)
    │ key size i32, key │ value size i32, value

The value of a wrapper is a message set of its own. Its offsets are absolute in format 0; in format 1 they are
relative, and the wrapper carries the absolute offset of the last one. The wrapper's codec and timestamp type
hold for all in it. There is one level of compression, and a set may end within a message.
"""

from __future__ import annotations

import struct
import zlib

import attrs

from kclient.errors import CorruptBatchError
from kclient.records.batch import (
    CODEC_MASK,
    INT64_MAX,
    MAGIC_POSITION,
    MIN_MESSAGE_BYTES,
    SIZE_PREFIX_BYTES,
    Batch,
)
from kclient.records.columns import Columns
from kclient.records.compression import decompress
from kclient.records.headers import NO_HEADERS
from kclient.types import TimestampType

_PREFIX = struct.Struct(">qi")
_HEAD = struct.Struct(">Ibb")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


@attrs.define(eq=False)
class MessageSection:
    """The messages of one batch of format 0 or 1: those within a wrapper, or the single one that the batch
    is.

    They lie at `data[position:end]`; `base_offset` is added to the offsets that they carry.
    """

    batch: Batch
    data: bytes
    position: int
    end: int
    base_offset: int
    check_crcs: bool
    dropped_below: int = 0
    previous_offset: int = -1

    @property
    def is_finished(self) -> bool:
        return self.position == self.end

    @property
    def columns_type(self) -> type[Columns]:
        return Columns

    def read_into(self, columns: Columns, count: int) -> None:
        while count > 0 and self.position < self.end:
            self._read_message(columns)
            count -= 1

    def _read_message(self, columns: Columns) -> None:
        data = self.data
        inner_offset, size = _PREFIX.unpack_from(data, self.position)
        start = self.position + SIZE_PREFIX_BYTES
        end = start + size
        crc, magic, attributes = _HEAD.unpack_from(data, start)
        if magic != self.batch.magic:
            raise CorruptBatchError(f"a message of format {magic} within one of format {self.batch.magic}")
        offset = self.base_offset + inner_offset
        # As in Java: nothing is wrong with a damaged message that is dropped anyway.
        checked = self.check_crcs and offset >= self.dropped_below
        if checked and zlib.crc32(memoryview(data)[start + 4 : end]) != crc:
            raise CorruptBatchError("a message within it has a wrong CRC")
        if attributes & CODEC_MASK:
            raise CorruptBatchError("a compressed message lies within a compressed message")
        if not self.previous_offset < offset < INT64_MAX:
            raise CorruptBatchError(f"offset {offset} follows offset {self.previous_offset} within it")
        body = start + _HEAD.size + (_INT64.size if magic == 1 else 0)
        key_start, key_size = _read_span(data, body, end)
        value_start, value_size = _read_span(data, key_start + max(key_size, 0), end)
        if value_start + max(value_size, 0) != end:
            raise CorruptBatchError("a message does not end where its size says")
        columns.offsets.append(offset)
        columns.timestamps.append(self._timestamp(start))
        columns.key_starts.append(key_start)
        columns.key_sizes.append(key_size)
        columns.value_starts.append(value_start)
        columns.value_sizes.append(value_size)
        columns.header_starts.append(NO_HEADERS)
        self.previous_offset = offset
        self.position = end

    def _timestamp(self, start: int) -> int:
        if self.batch.timestamp_type is not TimestampType.CREATE_TIME:
            return self.batch.max_timestamp
        timestamp: int = _INT64.unpack_from(self.data, start + _HEAD.size)[0]
        return timestamp


def lies_below(batch: Batch, offset: int) -> bool:
    """Whether a batch of format 0 or 1 holds offsets below this one alone, so that its bytes do not matter.

    A wrapper with offset 0 does not say what lies within.
    """
    says_its_offset = batch.compression == 0 or batch.last_offset > 0
    return batch.magic < 2 and says_its_offset and batch.last_offset < offset


def open_message(batch: Batch, limit: int, check_crcs: bool, dropped_below: int = 0) -> MessageSection:
    """Unwrap a batch of format 0 or 1. Of messages at offsets `dropped_below` this one the CRC is not checked.

    Raises CorruptBatchError, BatchTooLargeError and UnsupportedFormatError.
    """
    if batch.compression == 0:
        # its offset stands in the message itself, and its CRC is the batch's
        return MessageSection(batch, batch.field, batch.start, batch.end, 0, check_crcs=False)
    data = decompress(batch.compression, _wrapper_value(batch), limit, magic=batch.magic)
    end, last_offset = _whole_messages(data)
    return MessageSection(batch, data, 0, end, _base_offset(batch, last_offset), check_crcs, dropped_below)


def _base_offset(batch: Batch, last_inner_offset: int) -> int:
    if batch.magic == 0:
        return 0
    if batch.last_offset == 0:  # old producers left it at 0 whatever was inside
        return 0
    if batch.last_offset < last_inner_offset:
        raise CorruptBatchError(
            f"its offset {batch.last_offset} is below {last_inner_offset}, the last one within it"
        )
    return batch.last_offset - last_inner_offset


def _wrapper_value(batch: Batch) -> memoryview:
    data = batch.view()
    body = SIZE_PREFIX_BYTES + _HEAD.size + (_INT64.size if batch.magic == 1 else 0)
    end = len(data)
    key_start, key_size = _read_span(data, body, end)
    start, size = _read_span(data, key_start + max(key_size, 0), end)
    if size < 0 or start + size != end:
        raise CorruptBatchError(f"the value of a compressed message has {size} bytes of {end - start}")
    return data[start:end]


def _whole_messages(data: bytes) -> tuple[int, int]:
    """Where the last whole message of a set ends, and its offset as stored; a cut-off rest is ignored."""
    position = 0
    last_offset = -1
    while len(data) - position > MAGIC_POSITION:
        offset, size = _PREFIX.unpack_from(data, position)
        shortest = (
            MIN_MESSAGE_BYTES if data[position + MAGIC_POSITION] == 0 else MIN_MESSAGE_BYTES + _INT64.size
        )
        if size < shortest:
            raise CorruptBatchError(f"a message of {size} bytes lies within it, none is that short")
        if position + SIZE_PREFIX_BYTES + size > len(data):
            break
        position += SIZE_PREFIX_BYTES + size
        last_offset = offset
    if position == 0:
        raise CorruptBatchError("there is no whole message within it")
    return position, last_offset


def _read_span(data: bytes | memoryview, position: int, end: int) -> tuple[int, int]:
    """Start and size of a nullable field; size −1 is null."""
    start = position + _INT32.size
    size: int = _INT32.unpack_from(data, position)[0] if start <= end else -2
    if not -1 <= size <= end - start:
        raise CorruptBatchError("the key or value of a message reaches beyond its end")
    return start, size
