"""The broker connections of one cluster: bootstrap servers, and the brokers of the metadata, one per purpose.

Each purpose has its own connection: heartbeats and commits to the coordinator must not wait until the same broker
has answered a long-polling Fetch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from kclient.errors import AuthenticationError, ConnectError
from kclient.network.broker import BrokerConnection, ConnectionContext
from kclient.network.connection import Connection
from kclient.network.errors import unknown_node
from kclient.network.metadata import MetadataCache
from kclient.network.peer import Peer
from kclient.runtime import Runtime

T = TypeVar("T")

MOST_ERRORS: Final = 20  # errors of other servers that are added as notes to the last one
STAGGER_SECONDS: Final = 0.25  # how long the next server waits for the one before, when any of them will do


class ConnectionPool:
    """All broker connections, and the choice of one for a request that any broker can answer."""

    def __init__(
        self, bootstrap: Iterable[Peer], metadata: MetadataCache, context: ConnectionContext
    ) -> None:
        self.bootstrap: Final = [BrokerConnection(peer, "bootstrap", context) for peer in bootstrap]
        self._metadata = metadata
        self._context = context
        self._nodes: dict[tuple[int, str], BrokerConnection] = {}

    def node(self, node_id: int, purpose: str) -> BrokerConnection:
        """Return the connection to a broker. Raise ConnectError (stage metadata) if metadata does not name it.

        If the broker's address has changed, the old connection is closed. A broker that metadata no longer names
        keeps its open connection, because the metadata response may be older than the connection.
        """
        node = self._nodes.get((node_id, purpose))
        broker = self._metadata.brokers.get(node_id)
        if node is not None and (node.connection is not None if broker is None else node.is_at(broker)):
            return node
        if node is not None:
            node.close()
            del self._nodes[node_id, purpose]
        if broker is None:
            raise unknown_node(node_id)
        node = BrokerConnection(Peer(broker.host, broker.port, node_id), purpose, self._context)
        self._nodes[node_id, purpose] = node
        return node

    def is_connected(self, node_id: int, purpose: str) -> bool:
        """Return whether there is a connection to a broker for this purpose."""
        node = self._nodes.get((node_id, purpose))
        return node is not None and node.connection is not None

    def drop(self, node_id: int, purpose: str) -> None:
        """Close the connection to a broker for one purpose, if there is one."""
        node = self._nodes.pop((node_id, purpose), None)
        if node is not None:
            node.close()

    def known(self, node_id: int) -> BrokerConnection | None:
        """Return a ready connection to a broker, whatever its purpose; None if there is none."""
        connected = [node for (known, _), node in self._nodes.items() if known == node_id and node.connection]
        return connected[0] if connected else None

    def each(self) -> Iterator[BrokerConnection]:
        """Iterate over the brokers of the metadata, else the bootstrap servers, from a random start."""
        if not self._metadata.brokers:
            yield from shuffled(self.bootstrap, self._context.runtime)
            return
        for node_id in shuffled(sorted(self._metadata.brokers), self._context.runtime):
            if node_id in self._metadata.brokers:  # not gone since the round began
                yield self.node(node_id, "")

    def _candidates(self) -> list[BrokerConnection]:
        """Return the nodes that were used before, and the first that was not: all other unused ones are equal."""
        if not self._metadata.brokers:
            return shuffled(self.bootstrap, self._context.runtime)
        found, has_new = [], False
        for node_id in shuffled(sorted(self._metadata.brokers), self._context.runtime):
            is_new = (node_id, "") not in self._nodes
            if not (is_new and has_new):
                found.append(self.node(node_id, ""))
            has_new = has_new or is_new
        return found

    def least_loaded(self) -> BrokerConnection | None:
        """Return the connection for a request that any broker can answer; None if all are backing off.

        Order of preference as in Java: ready with the fewest requests in flight, connecting, the one whose last
        attempt is longest ago.
        """
        nodes = self._candidates()
        ready = [node for node in nodes if node.load is not None]
        if ready:
            return min(ready, key=lambda node: node.load or 0)
        connecting = [node for node in nodes if node.connecting and not node.backing_off]
        if connecting:
            return connecting[0]
        now = self._context.runtime.now()
        possible = [node for node in nodes if node.may_connect(now)]
        return min(possible, key=lambda node: node.last_attempt, default=None)

    def soonest(self) -> BrokerConnection:
        """Return the connection whose next attempt comes first."""
        return min(self._candidates(), key=lambda node: node.retry_at)

    @property
    def lost(self) -> bool:
        """Whether connecting to every broker of the metadata has failed and nothing else is connected.

        A lost connection alone does not count: the address is tried once more.
        """
        return bool(self._metadata.brokers) and self.all_unreachable

    @property
    def all_unreachable(self) -> bool:
        """Whether nothing is connected and the last attempt at every broker has failed."""
        if self.has_connection:
            return False
        if not self._metadata.brokers:
            return all(node.failed_attempts for node in self.bootstrap)
        tried = (self._nodes.get((node_id, "")) for node_id in self._metadata.brokers)
        return all(node is not None and node.failed_attempts for node in tried)

    @property
    def has_connection(self) -> bool:
        """Whether any connection is ready."""
        return any(node.connection is not None for node in self._all())

    def disconnect(self) -> None:
        """Close every connection. The bootstrap servers can be connected again."""
        for node in self._nodes.values():
            node.close()
        for node in self.bootstrap:
            node.disconnect()
        self._nodes.clear()

    async def close(self, timeout: float) -> None:
        """Close every connection and wait at most `timeout` seconds for the transports to end."""
        nodes = self._all()
        endings = [asyncio.ensure_future(node.close_and_wait()) for node in nodes]
        if endings:
            _, late = await asyncio.wait(endings, timeout=timeout)
            for ending in late:
                ending.cancel()

    def _all(self) -> list[BrokerConnection]:
        return [*self.bootstrap, *self._nodes.values()]


def shuffled(ordered: Sequence[T], runtime: Runtime) -> list[T]:
    """Return the items in their order, rotated to a random start."""
    start = int(runtime.rng.uniform(0, len(ordered))) if ordered else 0
    return [*ordered[start:], *ordered[:start]]


async def first_ready(nodes: Iterable[BrokerConnection]) -> BrokerConnection:
    """Return the first connection that becomes ready.

    Attempts overlap: each begins when the one before has failed, or STAGGER_SECONDS after it. Raise the ConnectError
    of the last one if none becomes ready, with the errors of the others as notes.
    """
    rest = iter(nodes)
    waiting = next(rest, None)
    attempts: dict[asyncio.Task[Connection], BrokerConnection] = {}
    failures: list[ConnectError] = []
    try:
        while waiting is not None or attempts:
            if waiting is not None:
                attempts[asyncio.ensure_future(waiting.ready())] = waiting
                waiting = next(rest, None)
            stagger = None if waiting is None else STAGGER_SECONDS
            await asyncio.wait(attempts, timeout=stagger, return_when=asyncio.FIRST_COMPLETED)
            for attempt in [attempt for attempt in attempts if attempt.done()]:
                node = attempts.pop(attempt)
                error = attempt.exception()
                if error is None:
                    return node
                if not isinstance(error, ConnectError):
                    raise error
                if isinstance(error, AuthenticationError):
                    raise error  # the other brokers have the same users, and each failed login counts
                failures = [*failures[-MOST_ERRORS:], error]
    finally:
        for attempt in attempts:
            attempt.cancel()
    for error in failures[:-1]:
        failures[-1].add_note(f"before it: {error.text}")
    raise failures[-1]
