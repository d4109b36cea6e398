"""Member ids that the coordinator makes: as clients of the new protocol make theirs (KIP-1082)."""

from __future__ import annotations

import base64

from kclient.embedded.state import ClusterState


def new_member_id(state: ClusterState) -> str:
    """A random uuid, base64url, without padding."""
    return base64.urlsafe_b64encode(state.new_id()).decode().rstrip("=")
