"""Controls of brokers: killed, shut down, paused, restarted.

A broker that is killed or paused stops replicating, so the high watermark stays where it is while the broker counts as
in sync. When the other brokers notice (at once, or when its session expires) they remove it from the in-sync replicas
and elect new leaders for its partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from kclient.embedded import controller
from kclient.embedded.broker import EmbeddedBroker
from kclient.embedded.listener import PLAINTEXT
from kclient.embedded.loop_thread import control
from kclient.embedded.state import BrokerState, ClusterState
from kclient.errors import ArgumentError

HIGHEST_PORT: Final = 65_535

Found = TypeVar("Found", bound=BrokerState)


class BrokerControls:
    """Methods of `EmbeddedCluster`. `_brokers` are those of the state, as servers that start and stop."""

    state: ClusterState
    _brokers: Mapping[int, EmbeddedBroker]

    @control
    def kill(self, node: int, failover_ms: int = 0) -> None:
        """End a running broker as SIGKILL does; after `failover_ms` other brokers lead its partitions."""
        kill(find(self._brokers, node), failover_ms)

    @control
    def shutdown(self, node: int) -> None:
        """End a broker as SIGTERM does: its partitions get other leaders, then its connections are closed."""
        broker = find(self._brokers, node)
        if broker.running:
            controller.broker_went(self.state, node)
            broker.stop(gently=True)
            _notify(self.state, node, "shut down")

    @control
    def restart(self, node: int, port: int | None = None) -> Any:
        """Start a broker again, on its old port or another one (0: any); one that runs is killed first.

        Raise ArgumentError for an invalid port, OSError for one in use; the broker is down then.
        """
        return _restart(find(self._brokers, node), port)

    @control
    def pause(self, node: int) -> None:
        """Stop a broker until `resume`, as SIGSTOP does; its connections stay open.

        After `broker.session.timeout.ms` of the cluster's time other brokers lead its partitions.
        """
        broker = find(self.state.brokers, node)
        if broker.running and not broker.paused:
            broker.pause()
            _notify(self.state, node, "paused")
            _fail_over_later(broker, self.state.settings.broker_session_timeout_ms)

    @control
    def resume(self, node: int) -> None:
        """Let a paused broker continue, in sync, and lead again the partitions that it lost."""
        _resume(find(self.state.brokers, node))

    @control
    def heal(self) -> Any:
        """Start and resume every broker, remove all faults and denials."""
        return _heal(self.state, self._brokers.values())

    @control
    def advertise(self, node: int, host: str, port: int, listener: str = PLAINTEXT) -> None:
        """Return this address of a broker in Metadata from now on, wherever it listens."""
        found = find(self.state.brokers, node).listener(listener)
        if found is None:
            raise ArgumentError(f"Broker {node} has no listener {listener!r}.")
        found.advertised = (host, _checked_port(port))


def find(brokers: Mapping[int, Found], node: int) -> Found:
    """Return the broker with this id. Raise ArgumentError if there is none."""
    broker = brokers.get(node)
    if broker is None:
        raise ArgumentError(f"There is no broker {node}; there are {', '.join(map(str, brokers))}.")
    return broker


def kill(broker: EmbeddedBroker, failover_ms: int = 0) -> None:
    """End a broker; the controller notices after `failover_ms`. Do nothing if it is down."""
    if not broker.running:
        return
    broker.stop()
    if failover_ms:
        _fail_over_later(broker, failover_ms)
    else:
        controller.broker_went(broker.state, broker.node_id)
    _notify(broker.state, broker.node_id, "killed")


def _resume(broker: BrokerState) -> None:
    state, node = broker.state, broker.node_id
    if not broker.paused:
        return
    if broker.expiry is not None:
        broker.expiry.cancel()
    controller.broker_came(state, node)
    for partition in state.partitions():
        if partition in broker.lost and node in partition.isr and partition.leader != node:
            controller.set_leader(state, partition, node)
    broker.lost.clear()
    broker.resume()
    _notify(state, node, "resumed")


async def _restart(broker: EmbeddedBroker, port: int | None = None) -> None:
    state, node = broker.state, broker.node_id
    port = None if port is None else _checked_port(port)
    async with broker.starting:  # two restarts of one broker must not bind its ports at the same time
        kill(broker)
        if broker.up:  # killed with failover_ms: the controller has not noticed yet
            controller.broker_went(state, node)
        await broker.start(port)
        controller.broker_came(state, node)
        _notify(state, node, "started")


async def _heal(state: ClusterState, brokers: Iterable[EmbeddedBroker]) -> None:
    state.faults.clear()
    state.acl.clear()
    state.marker_delay = 0.0
    for broker in brokers:
        _resume(broker)
        if not broker.running:
            await _restart(broker)


def _checked_port(port: int) -> int:
    if not 0 <= port <= HIGHEST_PORT:
        raise ArgumentError(f"There is no port {port}; ports go from 0 to {HIGHEST_PORT}.")
    return port


def _fail_over_later(broker: BrokerState, after_ms: int) -> None:
    state = broker.state

    def fail_over() -> None:
        broker.lost.extend(one for one in state.partitions() if one.leader == broker.node_id)
        controller.broker_went(state, broker.node_id)
        _notify(state, broker.node_id, "not counted on")

    for partition in state.partitions():
        if broker.node_id in partition.replicas and partition.leader != broker.node_id:
            partition.ends.setdefault(broker.node_id, partition.log.end)
    broker.lost.clear()
    if broker.expiry is not None:
        broker.expiry.cancel()
    broker.expiry = state.clock.call_later(after_ms / 1000, fail_over)


def _notify(state: ClusterState, node: int, change: str) -> None:
    for observer in state.observers:
        observer.broker_changed(node, change)
