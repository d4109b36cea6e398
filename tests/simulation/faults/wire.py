"""What goes wrong on the way between an application and a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.faults.kinds import End, amount, kind, link
from tests.simulation.plan import Fault

if TYPE_CHECKING:
    from tests.simulation.stage import Stage


@kind("F-05", target=link)
def reset(stage: Stage, fault: Fault) -> End | None:
    """Every connection between the two is reset."""
    for connection in list(stage.world.network.between(*fault.target.split())):
        connection.reset()
    return None


@kind("F-10", target=link)
def part(stage: Stage, fault: Fault) -> End | None:
    """Nothing passes, in either direction."""
    ends = fault.target.split()
    stage.world.network.part(*ends)
    return lambda: stage.world.network.heal(*ends)


@kind("F-11", target=link, amount=amount(0, 1))
def cut(stage: Stage, fault: Fault) -> End | None:
    """Nothing passes in one direction."""
    member, broker = fault.target.split()
    ends = (member, broker) if fault.amount else (broker, member)
    stage.world.network.cut(*ends)
    return lambda: stage.world.network.heal(member, broker)
