"""The other end of a connection: host, port and, once metadata has named it, the broker's id."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from kclient.errors import ConfigError


@attrs.frozen
class Peer:
    """The remote end of a connection. A bootstrap server has no node id; `ip` is known once the name is resolved."""

    host: str
    port: int
    node_id: int | None = None
    ip: str = ""

    @property
    def address(self) -> str:
        """`host:port`, with brackets around an IPv6 address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        at = self.address if self.ip in ("", self.host) else f"{self.address} [{self.ip}]"
        return f"bootstrap server {at}" if self.node_id is None else f"node {self.node_id} at {at}"


def parse_server(text: str) -> Peer:
    """Parse `host:port` or `[IPv6]:port`. Raise ConfigError if it is neither."""
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
    """Return all servers of the configuration, in their order."""
    return [parse_server(server) for server in servers]
