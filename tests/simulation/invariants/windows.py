"""Which faults a moment may blame: an exemption looks at what the plan did, never at how the client fared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tests.simulation.plan import Fault

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

STOPPING: Final = ("pause_member", "block_member")
OF_APPLICATIONS: Final = ("work_slowly", "rebel", "cancel")
AFTERMATH_SECONDS: Final = 10.0


def lasts(fault: Fault) -> float:
    """Seconds from the beginning of a fault to the end of what it does itself."""
    return (
        max(fault.seconds, fault.amount) if fault.kind in ("block_member", "work_slowly") else fault.seconds
    )


def stopped(stage: Stage, name: str, since: float) -> bool:
    """Whether the host of an application stood still at some time since then."""
    return any(
        fault.target == name and fault.start + lasts(fault) >= since - 1.0 and fault.start <= stage.now
        for fault in stage.plan.faults
        if fault.kind in STOPPING
    )


def others_than(stage: Stage, kinds: tuple[str, ...]) -> Iterator[Fault]:
    """The faults of the plan of all other kinds."""
    return (fault for fault in stage.plan.faults if fault.kind not in kinds)


def disturbed(stage: Stage, since: float) -> bool:
    """Whether a fault other than those of applications was active since then, or shortly before."""
    return any(
        fault.start + lasts(fault) + AFTERMATH_SECONDS >= since and fault.start <= stage.now
        for fault in others_than(stage, OF_APPLICATIONS)
    )


def keeps_partitions_back(stage: Stage) -> bool:
    """Whether responses left partitions out: what was never named cannot be missed until metadata is renewed by age."""
    return any(fault.kind == "partial_answer" and fault.target == "Metadata" for fault in stage.plan.faults)
