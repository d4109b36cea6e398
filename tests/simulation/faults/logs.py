"""What happens to records that are in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.application import TOPIC
from tests.simulation.faults.kinds import End, amount, kind, partition
from tests.simulation.plan import Fault

if TYPE_CHECKING:
    from tests.simulation.stage import Stage


@kind("F-38", target=partition, amount=amount(0.1, 0.5, 1.0))
def expire(stage: Stage, fault: Fault) -> End | None:
    """The log start moves over a part of what there is."""
    part = stage.partitions()[int(fault.target)]
    span = part.high_watermark - part.log.start
    stage.cluster.delete_records(TOPIC, part.number, part.log.start + int(span * fault.amount))
    return None
