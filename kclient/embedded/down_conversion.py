"""Batches of format 2 for clients that came before it: rewritten as messages of format 0 or 1.

What these formats cannot hold is lost, as behind a real broker: headers, producers, and with them transactions. The
answer keeps the size that it had before: what does not fit is cut off, what is missing is filled with the beginning of
a message so large that every client takes it for one that was cut off.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from kclient.embedded.legacy import log_append_time_of, message_set
from kclient.embedded.log import Stored
from kclient.embedded.refusal import Refused
from kclient.embedded.unpacked import records_of
from kclient.protocol.errors import UNSUPPORTED_COMPRESSION_TYPE
from kclient.records.batch import BATCH_HEADER_BYTES
from kclient.records.compression import Compression

_SIZED: Final = struct.Struct(">qi")


def newest_magic(version: int) -> int:
    """The newest format that a client of this Fetch version reads."""
    if version <= 1:
        return 0
    return 1 if version <= 3 else 2


def converted(batches: Iterable[Stored], magic: int, offset: int, size: int) -> bytes:
    """These batches in an older format, in `size` bytes; more if the first whole one needs more.

    Raises Refused for zstd, which no older format has.
    """
    parts: list[bytes] = []
    left = size
    for stored in batches:
        left -= len(stored.data)
        if left >= 0 and (new := _converted(stored, magic, offset)):
            parts.append(new)
    size = max(size, len(parts[0])) if parts else size
    whole = b"".join(parts)
    missing = size - len(whole)
    return whole + _filler(missing) if missing > 0 else whole[:size]


def _converted(stored: Stored, magic: int, offset: int) -> bytes:
    header = stored.header
    if header.magic <= magic:
        return stored.data
    if header.compression == Compression.ZSTD:
        raise Refused(UNSUPPORTED_COMPRESSION_TYPE)
    records = [] if header.is_control else records_of(header)
    if not header.compression:
        records = [one for one in records if one.offset is not None and one.offset >= offset]
    if not records:
        return b""
    time = log_append_time_of(header)
    return b"".join(message_set(records, magic, header.compression, log_append_time=time))


def _filler(size: int) -> bytes:
    head = _SIZED.pack(-1, max(size + 1, BATCH_HEADER_BYTES))
    return head.ljust(size, b"\0")[:size]
