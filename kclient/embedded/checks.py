"""What is checked of a partition before anything is looked up in it, in the order in which Kafka does."""

from __future__ import annotations

from kclient.embedded.call import Call
from kclient.embedded.topics import Partition
from kclient.protocol.errors import (
    FENCED_LEADER_EPOCH,
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_LEADER_EPOCH,
)


def hosted(call: Call, partition: Partition) -> int:
    """An error code if this broker has no replica of it, or none that can be read."""
    node = call.broker.node_id
    if node not in partition.replicas:
        return NOT_LEADER_OR_FOLLOWER
    return KAFKA_STORAGE_ERROR if node in partition.offline else NONE


def usable(call: Call, partition: Partition, leader_epoch: int, leader_only: bool = True) -> int:
    """An error code if this broker cannot speak for it, or not to a client that knows `leader_epoch` (−1: any)."""
    if error := hosted(call, partition):
        return error
    if leader_epoch >= 0 and leader_epoch < partition.leader_epoch:
        return FENCED_LEADER_EPOCH
    if leader_epoch > partition.leader_epoch:
        return UNKNOWN_LEADER_EPOCH
    if leader_only and partition.leader != call.broker.node_id:
        return NOT_LEADER_OR_FOLLOWER
    return NONE
