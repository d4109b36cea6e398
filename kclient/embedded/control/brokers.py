"""Brokers end, stop and come back.

A broker that is killed or paused replicates nothing any more, so while it counts as in sync the high watermark stays
where it is. When the others notice (at once, or when its session is over) they take it out of the in-sync replicas and
lead what it led.
"""

from __future__ import annotations

from typing import Final

from kclient.embedded import controller
from kclient.embedded.broker import Broker
from kclient.embedded.state import ClusterState
from kclient.errors import ArgumentError

HIGHEST_PORT: Final = 65_535


def find(state: ClusterState, node: int) -> Broker:
    """The broker with this id. Raises ArgumentError."""
    broker = state.brokers.get(node)
    if broker is None:
        raise ArgumentError(f"There is no broker {node}; there are {', '.join(map(str, state.brokers))}.")
    return broker


def kill(state: ClusterState, node: int, failover_ms: int) -> None:
    """End it as SIGKILL does; the others notice after so long. Nothing happens where it is down."""
    broker = find(state, node)
    if not broker.running:
        return
    broker.stop()
    if failover_ms:
        _notice_later(state, broker, failover_ms)
    else:
        controller.broker_went(state, node)
    _tell(state, node, "killed")


def shut_down(state: ClusterState, node: int) -> None:
    """End it as SIGTERM does: what it leads moves away first, then its connections are closed."""
    broker = find(state, node)
    if broker.running:
        controller.broker_went(state, node)
        broker.stop(gently=True)
        _tell(state, node, "shut down")


def pause(state: ClusterState, node: int) -> None:
    """Stop it as SIGSTOP does; the others notice when its session is over. Nothing happens where it does not run."""
    broker = find(state, node)
    if broker.running and not broker.paused:
        broker.pause()
        _tell(state, node, "paused")
        _notice_later(state, broker, state.settings.broker_session_timeout_ms)


def resume(state: ClusterState, node: int) -> None:
    """Let it go on, in step again; it leads again what was taken from it. Nothing happens where it is not paused."""
    broker = find(state, node)
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
    _tell(state, node, "resumed")


async def restart(state: ClusterState, node: int, port: int | None = None) -> None:
    """Start it on its old ports, or its first listener on another one; a broker that runs is killed first.

    Raises ArgumentError for a port that cannot be, OSError for one that is taken; the broker is down then.
    """
    broker = find(state, node)
    port = None if port is None else checked_port(port)
    async with broker.starting:
        kill(state, node, 0)
        if broker.up:  # killed, and nobody has noticed yet
            controller.broker_went(state, node)
        await broker.start(port)
        controller.broker_came(state, node)
        _tell(state, node, "started")


async def heal(state: ClusterState) -> None:
    """Every broker runs again, no fault is left, nobody is denied anything, markers come at once."""
    state.faults.clear()
    state.acl.clear()
    state.marker_delay = 0.0
    for node, broker in state.brokers.items():
        resume(state, node)
        if not broker.running:
            await restart(state, node)


def checked_port(port: int) -> int:
    """The port itself. Raises ArgumentError for one that cannot be."""
    if not 0 <= port <= HIGHEST_PORT:
        raise ArgumentError(f"There is no port {port}; ports go from 0 to {HIGHEST_PORT}.")
    return port


def _notice_later(state: ClusterState, broker: Broker, after_ms: int) -> None:
    def notice() -> None:
        broker.lost.extend(one for one in state.partitions() if one.leader == broker.node_id)
        controller.broker_went(state, broker.node_id)
        _tell(state, broker.node_id, "not counted on")

    for partition in state.partitions():
        if broker.node_id in partition.replicas and partition.leader != broker.node_id:
            partition.ends.setdefault(broker.node_id, partition.log.end)
    broker.lost.clear()
    if broker.expiry is not None:
        broker.expiry.cancel()
    broker.expiry = state.clock.call_later(after_ms / 1000, notice)


def _tell(state: ClusterState, node: int, change: str) -> None:
    for observer in state.observers:
        observer.broker_changed(node, change)
