"""The context of a request in a broker: message, connection and principal, and the checks that APIs share.

The coordinators are imported with the first request that needs them: that takes a fifth of a cluster's start.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeVar

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.auth import CODES
from kclient.embedded.connection import ServerConnection
from kclient.embedded.partition import Partition
from kclient.embedded.received_request import ReceivedRequest
from kclient.embedded.releases import Release
from kclient.embedded.state import BrokerState, ClusterState
from kclient.generated import fetch_response, produce_response
from kclient.protocol.errors import (
    FENCED_LEADER_EPOCH,
    KAFKA_STORAGE_ERROR,
    NONE,
    NOT_CONTROLLER,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_LEADER_EPOCH,
)

if TYPE_CHECKING:
    from kclient.embedded.groups.coordinator import GroupCoordinator
    from kclient.embedded.transactions.coordinator import TransactionCoordinator

FORWARDED_SINCE: Final = Release.parse("3.0")
HINTED: Final = (NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH)

Hint = TypeVar("Hint", fetch_response.LeaderIdAndEpoch, produce_response.LeaderIdAndEpoch)
Endpoint = TypeVar("Endpoint", fetch_response.NodeEndpoint, produce_response.NodeEndpoint)


@attrs.define(eq=False)
class RequestContext(ReceivedRequest):
    """A request with the broker that handles it and the connection that it came on."""

    broker: BrokerState
    connection: ServerConnection

    @property
    def state(self) -> ClusterState:
        """The cluster's state."""
        return self.broker.state

    @property
    def groups(self) -> GroupCoordinator:
        """The groups that the broker coordinates."""
        from kclient.embedded.groups.loading import groups_of

        return groups_of(self.broker)

    @property
    def transactions(self) -> TransactionCoordinator:
        """The transactional ids that the broker coordinates."""
        from kclient.embedded.transactions.coordinator import transactions_of

        return transactions_of(self.broker)

    def address_of(self, broker: BrokerState) -> tuple[str, int] | None:
        """Return a broker's address at the client's listener; None without one."""
        listener = broker.listener(self.connection.listener.name)
        return None if listener is None else listener.address

    def brokers(self) -> list[tuple[BrokerState, str, int]]:
        """Return the brokers that are up and reachable at the client's listener, with host and port."""
        found = [(broker, self.address_of(broker)) for broker in self.state.alive()]
        return [(broker, *address) for broker, address in found if address is not None]

    def allowed(self, operation: str, resource: str) -> bool:
        """Whether the principal is authorized for, say, ("READ", "Group:billing")."""
        return self.state.acl.allows(self.principal, operation, resource)

    def authorized_operations(self, operations: Iterable[str], resource: str) -> int:
        """Return the bit set of those operations that are allowed on, say, "Topic:orders"."""
        return sum(1 << CODES[operation] for operation in operations if self.allowed(operation, resource))


def forwards(context: RequestContext) -> bool:
    """Whether brokers of this release forward requests to the KRaft controller."""
    return context.state.release >= FORWARDED_SINCE


def check_controller(context: RequestContext) -> None:
    """Raise ApiError if this broker cannot change topics."""
    if not forwards(context) and context.broker.node_id != context.state.controller_id:
        raise ApiError(NOT_CONTROLLER)


def check_replica(context: RequestContext, partition: Partition) -> int:
    """Return an error code if this broker has no replica, or its disk failed."""
    node = context.broker.node_id
    if node not in partition.replicas:
        return NOT_LEADER_OR_FOLLOWER
    return KAFKA_STORAGE_ERROR if node in partition.offline else NONE


def check_partition(
    context: RequestContext, partition: Partition, leader_epoch: int, leader_only: bool = True
) -> int:
    """Return an error code if this broker cannot serve a client with this leader epoch (−1: any)."""
    if error := check_replica(context, partition):
        return error
    if leader_epoch >= 0 and leader_epoch < partition.leader_epoch:
        return FENCED_LEADER_EPOCH
    if leader_epoch > partition.leader_epoch:
        return UNKNOWN_LEADER_EPOCH
    if leader_only and partition.leader != context.broker.node_id:
        return NOT_LEADER_OR_FOLLOWER
    return NONE


def leader(kind: type[Hint], partition: Partition) -> Hint:
    """Leader and epoch of a partition."""
    return kind(leader_id=partition.leader, leader_epoch=partition.leader_epoch)


def endpoints(kind: type[Endpoint], context: RequestContext, nodes: Iterable[int]) -> list[Endpoint]:
    """Return the addresses of these nodes at the client's listener."""
    found = []
    for node in dict.fromkeys(nodes):
        broker = context.state.brokers.get(node)
        if broker is not None and (address := context.address_of(broker)) is not None:
            host, port = address
            found.append(kind(node_id=node, host=host, port=port, rack=broker.rack))
    return found
