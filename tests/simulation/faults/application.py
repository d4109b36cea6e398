"""What applications themselves do that is hard on a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.application import CLOSE_SECONDS
from tests.simulation.faults.hosts import start_again
from tests.simulation.faults.kinds import End, amount, kind, member
from tests.simulation.faults.wire import strand
from tests.simulation.plan import Fault

if TYPE_CHECKING:
    from tests.simulation.stage import Stage


@kind("F-48", target=member, amount=amount(5, 20, 70))
def work_slowly(stage: Stage, fault: Fault) -> End | None:
    """It works so many seconds on what its next poll returns; its loop is free meanwhile."""
    stage.members[fault.target].extra_work = fault.amount
    return None


@kind("F-50", target=member, amount=amount(0, 1, 2, 3))
def rebel(stage: Stage, fault: Fault) -> End | None:
    """Its next callback, which it asks for, raises (0), takes long (1), commits (2), or asks for the end (3)."""
    found = stage.members[fault.target]
    found.mood = int(fault.amount) + 1
    if found.consumer is not None and not found.consumer.closed and not stage.scenario.manual:
        found.consumer.enforce_rebalance("a callback is wanted")
    return None


@kind("F-51", target=member, amount=amount(0.0, 0.001, 0.05, 0.5))
def cancel(stage: Stage, fault: Fault) -> End | None:
    """The poll that it is in, or the next one, is cancelled after so many seconds; the consumer is used on."""
    stage.members[fault.target].cancel_after = fault.amount
    return None


@kind("F-53", target=member)
def close(stage: Stage, fault: Fault) -> End | None:
    """It is asked to end, whatever it does just now, and started again when the fault ends."""
    stage.members[fault.target].stop()
    return start_again(stage, fault.target)


@kind("F-53", "F-10", target=member)
def close_stranded(stage: Stage, fault: Fault) -> End | None:
    """It is asked to end while no broker can be reached, for longer than that may take."""
    reach = strand(stage, fault)
    stage.members[fault.target].stop()
    if reach is not None:
        stage.world.loop.call_later(CLOSE_SECONDS + 10.0, reach)
    return start_again(stage, fault.target)
