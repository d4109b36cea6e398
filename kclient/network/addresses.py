"""Where to begin: the bootstrap servers of the configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from kclient.errors import ConfigError
from kclient.log import get_logger
from kclient.network.unreachable import Peer, names_not_resolved
from kclient.runtime import Runtime

logger = get_logger("kclient.connection")


def parse_server(text: str) -> Peer:
    """`host:port` or `[IPv6]:port` as a peer. Raises ConfigError."""
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

    A server that does not resolve now stays as it is: connecting to it tells why.
    """
    found: dict[Peer, None] = {}
    for peer in peers:
        try:
            names = await runtime.canonical_names(peer.host, peer.port)
        except (OSError, ValueError):
            names = [peer.host]
        found.update({Peer(name, peer.port): None for name in names})
    return list(found)


async def until_resolved(peers: Sequence[Peer], runtime: Runtime, timeout: float, pause: float) -> None:
    """Look the servers' names up, every `pause` seconds, until one of them has an address (KIP-909).

    Raises NameResolutionError, which no other try can cure, when `timeout` seconds have passed without.
    """
    problem: Exception | None = None
    try:
        async with asyncio.timeout(timeout):
            while True:
                problem = await _unresolved(peers, runtime, problem)
                if problem is None:
                    return
                await asyncio.sleep(pause)
    except TimeoutError:
        raise names_not_resolved(peers, timeout, problem) from problem


async def _unresolved(peers: Sequence[Peer], runtime: Runtime, before: Exception | None) -> Exception | None:
    """None when any name has an address, else why the last one has none. The first time it is worth a WARNING."""
    problem: Exception | None = None
    for peer in peers:
        try:
            if await runtime.resolve(peer.host, peer.port):
                return None
            problem = OSError("no address")
        except (OSError, ValueError) as exc:
            problem = exc
    if before is None:
        logger.warning("no bootstrap server resolves (%s); kclient tries again", problem)
    return problem
