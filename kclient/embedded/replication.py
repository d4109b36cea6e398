"""How far the replicas are, and waiting for them (acks=all)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kclient.change_signal import ChangeSignal, wait_any
from kclient.embedded import topic_config
from kclient.embedded.call import Call
from kclient.embedded.state import ClusterState
from kclient.embedded.topics import Partition
from kclient.generated.produce_response import PartitionProduceResponse
from kclient.protocol.errors import (
    NONE,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
)


@attrs.define(eq=False)
class Written:
    """What was appended to one partition, and the row of the answer that tells of it."""

    partition: Partition
    leader_epoch: int
    last_offset: int
    row: PartitionProduceResponse

    @property
    def waits(self) -> bool:
        """Whether it is not on all in-sync replicas yet, and still may get there."""
        return self.leads and self.partition.high_watermark <= self.last_offset

    @property
    def leads(self) -> bool:
        """Whether the leader that took it is still the one."""
        return self.partition.leader_epoch == self.leader_epoch and self.partition.leader >= 0


def enough_replicas(state: ClusterState, partition: Partition) -> bool:
    """Whether as many replicas are in sync as acks=all wants."""
    wanted = topic_config.number("min.insync.replicas", partition.topic.config, state.settings)
    return len(partition.isr) >= wanted


async def replicated(call: Call, timeout_ms: int, written: Sequence[Written]) -> None:
    """Wait until all of it is on all in-sync replicas; what is not in time, or never will be, gets an error."""
    expired = ChangeSignal()
    timer = None
    while waiting := [one for one in written if one.waits]:
        if expired.count:
            break
        if timer is None:
            timer = call.broker.call_later(timeout_ms / 1000, expired.notify)
        seen = [(one.partition.changed, one.partition.changed.count) for one in waiting]
        await wait_any(*seen, (expired, 0))
    if timer is not None:
        timer.cancel()
    for one in written:
        code = _outcome(call.state, one)
        if code != NONE:
            one.row.error_code, one.row.base_offset = code, -1


def _outcome(state: ClusterState, one: Written) -> int:
    if not one.leads:
        return NOT_LEADER_OR_FOLLOWER
    if one.waits:
        return REQUEST_TIMED_OUT
    return NONE if enough_replicas(state, one.partition) else NOT_ENOUGH_REPLICAS_AFTER_APPEND
