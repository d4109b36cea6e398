"""What happens to the processes of applications."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.faults.kinds import End, amount, kind, member
from tests.simulation.plan import Fault

if TYPE_CHECKING:
    from tests.simulation.stage import Stage


def start_again(stage: Stage, name: str) -> End:
    """Start an application once the fault is over, if nothing else has."""
    return lambda: stage.start_member(name) if stage.members[name].over else None


@kind("F-22", target=member)
def kill_member(stage: Stage, fault: Fault) -> End | None:
    """kill -9; started again when the fault ends."""
    stage.kill_member(fault.target)
    return start_again(stage, fault.target)


@kind("F-09", "F-22", target=member)
def power_off_member(stage: Stage, fault: Fault) -> End | None:
    """The plug is pulled: the brokers hear nothing."""
    stage.kill_member(fault.target, silently=True)
    return start_again(stage, fault.target)


@kind("F-23", target=member)
def pause_member(stage: Stage, fault: Fault) -> End | None:
    """SIGSTOP, and SIGCONT when the fault ends."""
    host = stage.hosts[fault.target]
    host.pause()
    return host.resume


@kind("F-24", target=member, amount=amount(1, 5, 20, 60))
def block_member(stage: Stage, fault: Fault) -> End | None:
    """Its loop stands still."""
    stage.hosts[fault.target].block(fault.amount)
    return None


@kind("F-25", target=member, amount=amount(-3600, -60, 60, 3600))
def skew_clock(stage: Stage, fault: Fault) -> End | None:
    """Its wall clock is wrong."""
    clock = stage.world.clock(fault.target)
    clock.skew = fault.amount
    return lambda: setattr(clock, "skew", 0.0)
