"""Who may log in, as methods: `EmbeddedCluster` has them all."""

from __future__ import annotations

from kclient.embedded.loop_thread import control
from kclient.embedded.state import ClusterState


class SecurityControls:
    """See the module. They bear on listeners that have SASL mechanisms."""

    state: ClusterState

    @control
    def add_user(self, name: str, password: str) -> None:
        """Let a user in with this password from now on; a user who is known gets a new password."""
        self.state.users.add(name, password, self.state.runtime)

    @control
    def remove_user(self, name: str) -> None:
        """Let a user in no more. Connections stay until their session ends (`connections.max.reauth.ms`)."""
        self.state.users.remove(name)
