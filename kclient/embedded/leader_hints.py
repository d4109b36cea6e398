"""Who leads, told along with the error that says "not me", so that the client need not ask. See KIP-951."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

from kclient.embedded.call import Call
from kclient.embedded.topics import Partition
from kclient.generated import fetch_response, produce_response
from kclient.protocol.errors import FENCED_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER

HINTED: Final = (NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH)

Hint = TypeVar("Hint", fetch_response.LeaderIdAndEpoch, produce_response.LeaderIdAndEpoch)
Endpoint = TypeVar("Endpoint", fetch_response.NodeEndpoint, produce_response.NodeEndpoint)


def leader(kind: type[Hint], partition: Partition) -> Hint:
    """Leader and epoch of a partition."""
    return kind(leader_id=partition.leader, leader_epoch=partition.leader_epoch)


def endpoints(kind: type[Endpoint], call: Call, nodes: Iterable[int]) -> list[Endpoint]:
    """Where these nodes are to be reached, on the listener of the connection that asks."""
    found = []
    for node in dict.fromkeys(nodes):
        broker = call.state.brokers.get(node)
        if broker is not None and (address := call.address_of(broker)) is not None:
            host, port = address
            found.append(kind(node_id=node, host=host, port=port, rack=broker.rack))
    return found
