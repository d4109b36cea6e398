"""Batches of format 2 for clients that came before it: rewritten as messages of format 0 or 1.

What these formats cannot hold is lost, as behind a real broker: headers, producers, and with them transactions.
"""

from __future__ import annotations

from collections.abc import Iterable

from kclient.embedded.legacy import log_append_time_of, message_set
from kclient.embedded.log import Stored
from kclient.embedded.refusal import Refused
from kclient.embedded.unpacked import records_of
from kclient.protocol.errors import UNSUPPORTED_COMPRESSION_TYPE
from kclient.records.compression import Compression


def newest_magic(version: int) -> int:
    """The newest format that a client of this Fetch version reads. Spec: C.2.1."""
    if version <= 1:
        return 0
    return 1 if version <= 3 else 2


def converted(batches: Iterable[Stored], magic: int, offset: int) -> bytes:
    """These batches in an older format. Raises Refused for zstd, which no older format has. Spec: B.11.5."""
    parts: list[bytes] = []
    for stored in batches:
        header = stored.header
        if header.magic <= magic:
            parts.append(stored.data)
            continue
        if header.compression == Compression.ZSTD:
            raise Refused(UNSUPPORTED_COMPRESSION_TYPE)
        if header.is_control:
            continue
        records = records_of(header)
        if not header.compression:
            records = [one for one in records if one.offset is not None and one.offset >= offset]
        if records:
            time = log_append_time_of(header)
            parts += message_set(records, magic, header.compression, log_append_time=time)
    return b"".join(parts)
