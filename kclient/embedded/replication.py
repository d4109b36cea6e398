"""Append to a partition's log as its leader, and wait for the replicas (acks=all).

Batches are trusted here; those of producers are checked in `produce_validation` first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from kclient.change_signal import ChangeSignal, wait_any
from kclient.embedded import topic_config
from kclient.embedded.log import StoredBatch
from kclient.embedded.partition import Partition
from kclient.embedded.state import BrokerState, ClusterState
from kclient.errors import InternalError
from kclient.generated.produce_response import PartitionProduceResponse
from kclient.protocol.errors import (
    NONE,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
)
from kclient.records.batch import LOG_APPEND_TIME_FLAG, crc32c

_BATCH_TIMES: Final = struct.Struct(">hiqq")  # attributes, last offset delta, base and max timestamp
_CRC: Final = struct.Struct(">I")
CRC_AT: Final = 17
CHECKED_FROM: Final = 21


def append(state: ClusterState, partition: Partition, data: bytes) -> StoredBatch:
    """Append one batch of format 2, and wake waiting fetches."""
    (stored,) = append_all(state, partition, [data])
    return stored


def append_all(state: ClusterState, partition: Partition, batches: Iterable[bytes]) -> list[StoredBatch]:
    """Append batches of format 2. Raise InternalError for a partition without a leader."""
    if partition.leader_epoch < 0:
        raise InternalError(f"{partition.tp} has never had a leader.")
    now = state.clock.wall_ms() if partition.topic.log_append_time else None
    stored = [
        partition.log.append(batch if now is None else stamped(batch, now), partition.leader_epoch)
        for batch in batches
    ]
    notify_appended(state, partition, stored)
    return stored


def notify_appended(state: ClusterState, partition: Partition, stored: Iterable[StoredBatch]) -> None:
    """Wake waiting fetches and notify observers of appended batches."""
    partition.changed.notify()
    for one in stored:
        for observer in state.observers:
            observer.appended(partition, one.header)


def stamped(batch: bytes, now_ms: int) -> bytes:
    """Return a batch of format 2 with this LogAppendTime."""
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


@attrs.define(eq=False)
class ProducePartitionStatus:
    """An appended partition of a Produce request, and its row of the response."""

    partition: Partition
    leader_epoch: int
    last_offset: int
    row: PartitionProduceResponse

    @property
    def waits(self) -> bool:
        """Whether it is not on all in-sync replicas yet, and the leader is still the same."""
        return self.leads and self.partition.high_watermark <= self.last_offset

    @property
    def leads(self) -> bool:
        """Whether the leader that appended it still leads."""
        return self.partition.leader_epoch == self.leader_epoch and self.partition.leader >= 0


def enough_replicas(state: ClusterState, partition: Partition) -> bool:
    """Whether as many replicas are in sync as acks=all wants."""
    wanted = topic_config.number("min.insync.replicas", partition.topic.config, state.settings)
    return len(partition.isr) >= wanted


async def replicated(broker: BrokerState, timeout_ms: int, written: Sequence[ProducePartitionStatus]) -> None:
    """Wait until all of it is on all in-sync replicas; what is not in time, or never will be, gets an error."""
    expired = ChangeSignal()
    timer = None
    while waiting := [one for one in written if one.waits]:
        if expired.count:
            break
        if timer is None:
            timer = broker.call_later(timeout_ms / 1000, expired.notify)
        seen = [(one.partition.changed, one.partition.changed.count) for one in waiting]
        await wait_any(*seen, (expired, 0))
    if timer is not None:
        timer.cancel()
    for one in written:
        code = _outcome(broker.state, one)
        if code != NONE:
            one.row.error_code, one.row.base_offset = code, -1


def _outcome(state: ClusterState, one: ProducePartitionStatus) -> int:
    if not one.leads:
        return NOT_LEADER_OR_FOLLOWER
    if one.waits:
        return REQUEST_TIMED_OUT
    return NONE if enough_replicas(state, one.partition) else NOT_ENOUGH_REPLICAS_AFTER_APPEND
