"""A request as it came in: what fault rules match, observers see, and groups keep of a member's request."""

from __future__ import annotations

import attrs

from kclient.protocol.message import Message


@attrs.define(eq=False)
class ReceivedRequest:
    """A decoded request and its sender. `api` is the request's name without "Request"."""

    node_id: int  # of the broker that received it
    connection_number: int
    api: str
    version: int
    message: Message
    client_id: str
    client_host: str  # the address as a broker writes it, with a leading slash
    principal: str  # "User:name", or "User:ANONYMOUS" without authentication
    correlation_id: int
    received_at: float  # in the cluster's time
