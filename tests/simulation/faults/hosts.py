"""What happens to the processes of applications."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.faults.kinds import End, amount, kind, member
from tests.simulation.plan import Fault

if TYPE_CHECKING:
    from tests.simulation.stage import Stage


@kind("F-22", target=member)
def kill_member(stage: Stage, fault: Fault) -> End | None:
    """kill -9; started again when the fault ends."""
    stage.kill_member(fault.target)
    return lambda: stage.start_member(fault.target) if stage.members[fault.target].over else None


@kind("F-23", "F-24", target=member, amount=amount(1, 5, 20, 60))
def block_member(stage: Stage, fault: Fault) -> End | None:
    """Its loop stands still."""
    stage.hosts[fault.target].block(fault.amount)
    return None


@kind("F-25", target=member, amount=amount(-3600, -60, 60, 3600))
def skew_clock(stage: Stage, fault: Fault) -> End | None:
    """Its wall clock is wrong."""
    stage.world.clock(fault.target).skew = fault.amount
    return lambda: setattr(stage.world.clock(fault.target), "skew", 0.0)
