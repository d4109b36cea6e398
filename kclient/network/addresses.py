"""Where to begin: the bootstrap servers of the configuration."""

from __future__ import annotations

from collections.abc import Iterable

from kclient.errors import ConfigError
from kclient.network.unreachable import Peer
from kclient.runtime import Runtime


def parse_server(text: str) -> Peer:
    """`host:port` or `[IPv6]:port` as a peer. Raises ConfigError. Spec: D-83."""
    host, _, port = text.strip().rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not bare or (":" in bare and bare == host) or not port.isdecimal() or not 0 < int(port) < 65_536:
        problem = (
            f"bootstrap_servers: {text!r} is not host:port. "
            "The port is missing or impossible, or an IPv6 address lacks its brackets. "
            "Write localhost:9092 or [::1]:9092."
        )
        raise ConfigError(problem, problems=(problem,))
    return Peer(bare, int(port))


def parse_servers(servers: Iterable[str]) -> list[Peer]:
    """All servers of the configuration, in their order."""
    return [parse_server(server) for server in servers]


async def canonical_servers(peers: Iterable[Peer], runtime: Runtime) -> list[Peer]:
    """Every address behind the servers' names, under its canonical name: what Kerberos needs behind an alias.

    A server that does not resolve now stays as it is: connecting to it tells why. Spec: B.1.1, client.dns.lookup.
    """
    found: dict[Peer, None] = {}
    for peer in peers:
        try:
            names = await runtime.canonical_names(peer.host, peer.port)
        except (OSError, ValueError):
            names = [peer.host]
        found.update({Peer(name, peer.port): None for name in names})
    return list(found)
