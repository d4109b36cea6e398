"""What happens to brokers, leaders and coordinators."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kclient.embedded.partition import Partition
from tests.simulation.application import GROUP, TOPIC
from tests.simulation.faults.kinds import End, amount, broker, kind, nothing, partition, several_brokers
from tests.simulation.faults.logs import target
from tests.simulation.plan import Fault

if TYPE_CHECKING:
    from tests.simulation.stage import Stage


@kind("F-19", target=broker, amount=amount(0, 0, 500, 5_000))
def kill_broker(stage: Stage, fault: Fault) -> End | None:
    """kill -9, noticed by the others after so many ms; it comes back when the fault ends."""
    node = int(fault.target)
    stage.cluster.kill(node, int(fault.amount))
    return lambda: stage.cluster.restart(node)


@kind("F-09", "F-19", target=broker)
def power_off_broker(stage: Stage, fault: Fault) -> End | None:
    """The plug is pulled: no client hears a word until it is back."""
    node = int(fault.target)
    stage.world.network.by_name[f"broker-{node}"].power_off()
    stage.cluster.kill(node)
    return lambda: stage.cluster.restart(node)


@kind("F-20", target=broker)
def shut_down_broker(stage: Stage, fault: Fault) -> End | None:
    """SIGTERM; it comes back when the fault ends."""
    node = int(fault.target)
    stage.cluster.shutdown(node)
    return lambda: stage.cluster.restart(node)


@kind("F-21", target=broker)
def pause_broker(stage: Stage, fault: Fault) -> End | None:
    """It says nothing, its connections stay."""
    node = int(fault.target)
    stage.cluster.pause(node)
    return lambda: stage.cluster.resume(node)


@kind("F-26")
def all_down(stage: Stage, fault: Fault) -> End | None:
    """No broker is there."""
    nodes = list(stage.cluster.state.brokers)
    for node in nodes:
        stage.cluster.kill(node)
    return lambda: [stage.cluster.restart(node) for node in nodes]


@kind("F-27", fits=several_brokers)
def roll(stage: Stage, fault: Fault) -> End | None:
    """One broker after the other is shut down and started again."""

    async def one_by_one() -> None:
        for node in stage.cluster.state.brokers:
            stage.cluster.shutdown(node)
            await asyncio.sleep(fault.seconds / len(stage.cluster.state.brokers))
            await stage.cluster.restart(node)

    rolling = stage.background(one_by_one())
    return lambda: rolling.cancel() and None


@kind("F-28", target=broker)
def move_broker(stage: Stage, fault: Fault) -> End | None:
    """It comes back on another port, and in the end on its own: the only one that bootstrap servers name."""
    node = int(fault.target)

    def move(ports: int) -> object:
        stage.cluster.kill(node)
        for listener in stage.cluster.state.brokers[node].listeners:
            listener.port += ports
        return stage.cluster.restart(node)

    move(1)
    return lambda: move(-1)


@kind("F-34", target=partition, fits=several_brokers)
def move_leader(stage: Stage, fault: Fault) -> End | None:
    """Another replica leads, if one is in sync."""
    part = target(stage, fault)
    if part is not None and (others := stage.other_replicas(part)):
        stage.cluster.move_leader(TOPIC, part.number, others[0])
    return None


@kind("F-35", target=nothing, fits=several_brokers, amount=amount(0.0, 0.5, 5.0))
def move_coordinator(stage: Stage, fault: Fault) -> End | None:
    """Another broker coordinates the group, after it has read the group's partition for so many seconds."""
    state = stage.cluster.state
    part = stage.group_partition(GROUP)
    if part is None:
        return None
    others = stage.other_replicas(part)
    if others:
        state.coordinator_load_seconds = fault.amount
        stage.cluster.move_coordinator(GROUP, others[0])
    return lambda: setattr(state, "coordinator_load_seconds", 0.0)


@kind("F-44", target=partition, fits=several_brokers, amount=amount(0, 1))
def redirect(stage: Stage, fault: Fault) -> End | None:
    """Consumers of a partition are sent to a follower, one that lags behind the leader or one that does not."""
    part = target(stage, fault)
    followers = stage.other_replicas(part) if part is not None else []
    if part is None or not followers:
        return None
    if fault.amount:
        stage.cluster.lag(TOPIC, part.number, followers[0], max(part.log.start, part.high_watermark - 1))
        part.isr.remove(followers[0])  # it is known to lag: the high watermark does not wait for it
    stage.cluster.set_follower(TOPIC, part.number, followers[0])
    return lambda: _lead_again(stage, part)


def _lead_again(stage: Stage, part: Partition) -> None:
    """The leader serves for itself, and the follower catches up; unless the topic was deleted meanwhile."""
    if stage.cluster.state.partition(part.tp) is part:
        stage.cluster.set_follower(TOPIC, part.number, None)
        stage.cluster.catch_up(TOPIC, part.number)
