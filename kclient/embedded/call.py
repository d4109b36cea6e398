"""One request on its way through a broker: what was asked, by whom, on which connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from kclient.protocol.message import Message

if TYPE_CHECKING:
    from kclient.embedded.broker import Broker
    from kclient.embedded.connection import ServerConnection
    from kclient.embedded.state import ClusterState


@attrs.define(eq=False)
class Call:
    """A decoded request. `api` is the request's name without "Request"."""

    broker: Broker
    connection: ServerConnection
    api: str
    version: int
    message: Message
    client_id: str
    correlation_id: int
    received_at: float  # in the cluster's time

    @property
    def state(self) -> ClusterState:
        """The cluster's state."""
        return self.broker.state

    @property
    def principal(self) -> str:
        """Who asks: "User:name", or "User:ANONYMOUS" without authentication."""
        return self.connection.principal

    @property
    def client_host(self) -> str:
        """The address of the client as a broker writes it, with a leading slash."""
        return f"/{self.connection.client_address}"

    def address_of(self, broker: Broker) -> tuple[str, int] | None:
        """Where who asks reaches a broker: at its listener with the name of theirs; None without one."""
        listener = broker.listener(self.connection.listener.name)
        return None if listener is None else listener.address

    def brokers(self) -> list[tuple[Broker, str, int]]:
        """The brokers that are up and can be reached by who asks, with host and port."""
        found = [(broker, self.address_of(broker)) for broker in self.state.alive()]
        return [(broker, *address) for broker, address in found if address is not None]

    def allowed(self, operation: str, resource: str) -> bool:
        """Whether nothing denies the principal this, say ("READ", "Group:billing")."""
        return self.state.acl.allows(self.principal, operation, resource)
