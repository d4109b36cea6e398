"""What applications themselves do that is hard on a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.faults.kinds import End, kind, member
from tests.simulation.plan import Fault

if TYPE_CHECKING:
    from tests.simulation.stage import Stage


@kind("F-53", target=member)
def close(stage: Stage, fault: Fault) -> End | None:
    """It is asked to end, whatever it does just now, and started again when the fault ends."""
    stage.members[fault.target].stop()
    return lambda: stage.start_member(fault.target) if stage.members[fault.target].over else None
