"""What happens to records that are in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kclient.embedded.topics import Partition
from tests.simulation.application import TOPIC
from tests.simulation.faults.kinds import End, amount, kind, partition
from tests.simulation.plan import Fault
from tests.simulation.publishing import write_some

if TYPE_CHECKING:
    from tests.simulation.stage import Stage


REWRITTEN_BATCHES: Final = 20


def target(stage: Stage, fault: Fault) -> Partition:
    """The partition that the fault names; there may be others than when it was drawn."""
    parts = stage.partitions()
    return parts[int(fault.target) % len(parts)]


@kind("F-38", target=partition, amount=amount(0.1, 0.5, 1.0))
def expire(stage: Stage, fault: Fault) -> End | None:
    """The log start moves over a part of what there is."""
    part = target(stage, fault)
    span = part.high_watermark - part.log.start
    stage.cluster.delete_records(TOPIC, part.number, part.log.start + int(span * fault.amount))
    return None


@kind("F-39", target=partition, amount=amount(0.5, 0.9, 0.99))
def truncate(stage: Stage, fault: Fault) -> End | None:
    """An unclean election loses the tail; of a short one producers write over it before anybody looks."""
    part = target(stage, fault)
    if stage.writable(part):
        before = part.log.end
        span = before - part.log.start
        stage.cluster.truncate(TOPIC, part.number, part.log.start + int(span * fault.amount))
        for _ in range(REWRITTEN_BATCHES if fault.amount >= 0.9 else 0):
            if part.log.end <= before and stage.writable(part):
                write_some(stage, part)
    return None


@kind("F-40")
def recreate(stage: Stage, fault: Fault) -> End | None:
    """The topic is deleted and made again, empty, with a new id."""
    stage.cluster.recreate_topic(TOPIC)
    return None


@kind("F-41", amount=amount(1, 2, 5))
def add_partitions(stage: Stage, fault: Fault) -> End | None:
    """The topic grows."""
    if len(stage.partitions()) < 100:
        stage.cluster.add_partitions(TOPIC, len(stage.partitions()) + int(fault.amount))
    return None


@kind("F-42", target=partition)
def compact(stage: Stage, fault: Fault) -> End | None:
    """Older records of a key go, leaving gaps and empty batches."""
    stage.cluster.compact(TOPIC, target(stage, fault).number)
    return None
