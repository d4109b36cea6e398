"""The one way into a log: offsets and leader epoch given, LogAppendTime set where the topic says so, watchers told.

Batches are trusted here; what a producer sends is checked in `admission` first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from kclient.embedded.log import Stored
from kclient.embedded.state import ClusterState
from kclient.embedded.topics import Partition
from kclient.errors import InternalError
from kclient.records.batch import LOG_APPEND_TIME_FLAG, crc32c

_BATCH_TIMES: Final = struct.Struct(">hiqq")  # attributes, last offset delta, base and max timestamp
_CRC: Final = struct.Struct(">I")
CRC_AT: Final = 17
CHECKED_FROM: Final = 21


def append(state: ClusterState, partition: Partition, data: bytes) -> Stored:
    """Append one batch of format 2 with a record or marker of any kind; whoever waits for records is woken."""
    (stored,) = append_all(state, partition, [data])
    return stored


def append_all(state: ClusterState, partition: Partition, batches: Iterable[bytes]) -> list[Stored]:
    """Append batches of format 2 one behind the other. Raises InternalError for a partition without a leader."""
    if partition.leader_epoch < 0:
        raise InternalError(f"{partition.tp} has never had a leader.")
    now = state.clock.wall_ms() if partition.topic.log_append_time else None
    stored = [
        partition.log.append(batch if now is None else stamped(batch, now), partition.leader_epoch)
        for batch in batches
    ]
    tell(state, partition, stored)
    return stored


def tell(state: ClusterState, partition: Partition, stored: Iterable[Stored]) -> None:
    """Wake and notify everybody of what was appended."""
    partition.changed.notify()
    for one in stored:
        for observer in state.observers:
            observer.appended(partition, one.header)


def stamped(batch: bytes, now_ms: int) -> bytes:
    """A batch of format 2 whose records all have this LogAppendTime."""
    attributes, delta, base, _ = _BATCH_TIMES.unpack_from(batch, CHECKED_FROM)
    return with_times(batch, attributes | LOG_APPEND_TIME_FLAG, delta, base, now_ms)


def with_max_timestamp(batch: bytes, max_timestamp: int) -> bytes:
    """A batch of format 2 with the highest timestamp that its records really have."""
    attributes, delta, base, _ = _BATCH_TIMES.unpack_from(batch, CHECKED_FROM)
    return with_times(batch, attributes & ~LOG_APPEND_TIME_FLAG, delta, base, max_timestamp)


def with_times(batch: bytes, attributes: int, delta: int, base: int, max_timestamp: int) -> bytes:
    """The same records under other header fields, and the CRC that they give."""
    times = _BATCH_TIMES.pack(attributes, delta, base, max_timestamp)
    checked = times + batch[CHECKED_FROM + _BATCH_TIMES.size :]
    return batch[:CRC_AT] + _CRC.pack(crc32c(checked)) + checked
