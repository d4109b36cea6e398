"""Helpers of the tests of connections."""

from __future__ import annotations

from typing import Any

import attrs

from kclient.network.connect import open_connection
from kclient.network.connection import Connection, ConnectionSettings
from kclient.network.peer import Peer
from kclient.runtime import Runtime
from tests.scripted_broker import ScriptedBroker

SETTINGS = ConnectionSettings(client_id="tester", max_frame_bytes=1_000_000, request_timeout=5.0)


async def connect(peer: ScriptedBroker, timeout: float = 5.0, **settings: Any) -> Connection:
    """A ready connection to a scripted peer."""
    where = Peer("localhost", peer.port, peer.node_id, peer.host)
    return await open_connection(
        where, attrs.evolve(SETTINGS, **settings), Runtime(), timeout, lambda connection, reason: None
    )
