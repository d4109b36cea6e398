"""What happens to brokers and leaders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.application import TOPIC
from tests.simulation.faults.kinds import End, broker, kind, partition, several_brokers
from tests.simulation.plan import Fault

if TYPE_CHECKING:
    from tests.simulation.stage import Stage


@kind("F-19", target=broker)
def kill_broker(stage: Stage, fault: Fault) -> End | None:
    """kill -9; it comes back when the fault ends."""
    node = int(fault.target)
    stage.cluster.kill(node)
    return lambda: stage.cluster.restart(node)


@kind("F-21", target=broker)
def pause_broker(stage: Stage, fault: Fault) -> End | None:
    """It says nothing, its connections stay."""
    node = int(fault.target)
    stage.cluster.pause(node)
    return lambda: stage.cluster.resume(node)


@kind("F-34", target=partition, fits=several_brokers)
def move_leader(stage: Stage, fault: Fault) -> End | None:
    """Another replica leads, if one is in sync."""
    part = stage.partitions()[int(fault.target)]
    others = [node for node in part.isr if node != part.leader and stage.cluster.state.brokers[node].up]
    if others:
        stage.cluster.move_leader(TOPIC, part.number, others[0])
    return None
