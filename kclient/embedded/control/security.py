"""Controls of authentication and authorization."""

from __future__ import annotations

from kclient.embedded.loop_thread import control
from kclient.embedded.state import ClusterState


class SecurityControls:
    """Methods of `EmbeddedCluster`. Users apply to listeners that have SASL mechanisms."""

    state: ClusterState

    @control
    def add_user(self, name: str, password: str) -> None:
        """Let a user authenticate with this password from now on; a known user gets the new password."""
        self.state.users.add(name, password, self.state.runtime)

    @control
    def remove_user(self, name: str) -> None:
        """Reject a user from now on. Connections stay until their session expires (`connections.max.reauth.ms`)."""
        self.state.users.remove(name)

    @control
    def deny(self, principal: str, operation: str, resource: str) -> None:
        """Deny from now on, say, ("User:alice", "READ", "Topic:orders"); "*" stands for anything."""
        self.state.acl.deny(principal, operation, resource)

    @control
    def allow(self, principal: str, operation: str, resource: str) -> None:
        """Remove a denial."""
        self.state.acl.allow(principal, operation, resource)
