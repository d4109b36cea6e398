"""A connection: its two ends and its two directions, made together."""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING, Final

import attrs

from tests.simulation.hosts import HOST, State, host_name, state_of
from tests.simulation.pipe import Pipe
from tests.simulation.transport import SimTransport

if TYPE_CHECKING:
    from tests.simulation.network import Network
    from tests.simulation.server import SimServer

LOOPBACK: Final = "127.0.0.1"


@attrs.frozen
class Connection:
    """Both ends and both directions of a connection, for faults."""

    number: int
    client: SimTransport
    server: SimTransport

    @property
    def forward(self) -> Pipe:
        """From client to server."""
        return self.client.out

    @property
    def backward(self) -> Pipe:
        """From server to client."""
        return self.server.out

    def names(self) -> tuple[str, str]:
        """Of the two hosts, the client's first."""
        return host_name(self.client.host), host_name(self.server.host)

    def reset(self) -> None:
        """Something on the way ends it: both ends see RST (F-05)."""
        self.forward.reset()
        self.backward.reset()

    def refresh(self, network: Network) -> None:
        """See what passes now."""
        client, server = self.names()
        off = State.OFF in (state_of(self.client.host), state_of(self.server.host))
        self.forward.set_cut(off or not network.passes(client, server))
        self.backward.set_cut(off or not network.passes(server, client))


def join(network: Network, number: int, ip: str, server: SimServer) -> Connection:
    """A connection from the host that runs to a listening port at `ip`; the server hears of it soon."""
    here = HOST.get()
    names = host_name(here), host_name(server.host)
    own = LOOPBACK if ip == LOOPBACK or here is None else here.addresses[0]
    near, far = (own, network.next_port(names[0])), (ip, server.port)
    there = server.context.copy()
    extra = {"sockname": near, "peername": far}
    client = SimTransport(network, number, here, contextvars.copy_context(), extra)
    end = SimTransport(network, number, server.host, there, {"sockname": far, "peername": near})
    forward = Pipe(network, network.wire(*names), client, end)
    backward = Pipe(network, network.wire(*reversed(names)), end, client)
    forward.back, backward.back = backward, forward
    client.plug(forward, backward)
    end.plug(backward, forward)
    network.loop.call_soon(server.accept, end, context=there)
    return Connection(number, client, end)
