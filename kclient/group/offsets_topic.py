"""Which partition of `__consumer_offsets` holds a group, and so which broker coordinates it.

The arithmetic is Java's: `String.hashCode` over UTF-16 code units in 32 bits, then an absolute value that maps the
smallest int to 0. It is neither the producer's partitioner nor a hash of UTF-8 bytes.
"""

from __future__ import annotations

import struct

from kclient.errors import ArgumentError


def java_hash(text: str) -> int:
    """Java's `String.hashCode` as a signed 32-bit number."""
    value = 0
    for (code_unit,) in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        value = (31 * value + code_unit) & 0xFFFF_FFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def offsets_topic_partition(group_id: str, partition_count: int) -> int:
    """The partition of `__consumer_offsets` for a group; `partition_count` is `offsets.topic.num.partitions`.

    The same arithmetic maps a transactional id to its partition of `__transaction_state`. Raises ArgumentError for a
    topic without partitions.
    """
    if partition_count < 1:
        raise ArgumentError(
            f"A topic has at least one partition, not {partition_count}."
            " Give offsets.topic.num.partitions, 50 by default."
        )
    value = java_hash(group_id)
    magnitude = 0 if value == -(1 << 31) else abs(value)
    return magnitude % partition_count
