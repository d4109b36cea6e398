"""Which replica a consumer in a rack should rather read from (KIP-392)."""

from __future__ import annotations

from typing import Final

from kclient.embedded.call import Call
from kclient.embedded.topics import Partition

NONE: Final = -1
RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def preferred_replica(call: Call, partition: Partition, rack: str, offset: int) -> int:
    """A follower in the rack that has the offset, the one that is furthest; −1 where the leader serves best.

    Nobody has an offset below the log start: the leader says so itself, or a reader would be sent to and fro for ever.
    """
    state, chosen = call.state, partition.read_from
    if offset < partition.log.start:
        return NONE
    if chosen is not None and partition.leader == call.broker.node_id != chosen and state.brokers[chosen].up:
        return chosen
    if partition.leader != call.broker.node_id or state.settings.replica_selector_class != RACK_AWARE:
        return NONE
    here = [
        node
        for node in partition.replicas
        if rack
        and state.brokers[node].up
        and state.brokers[node].rack == rack
        and partition.end_of(node) >= offset
    ]
    if not here or partition.leader in here:
        return NONE
    return max(here, key=partition.end_of)
