"""What happens to records that are in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kclient.embedded.partition import Partition
from tests.simulation.application import TOPIC
from tests.simulation.faults.kinds import End, amount, kind, partition
from tests.simulation.plan import Fault
from tests.simulation.publishing import write_some

if TYPE_CHECKING:
    from tests.simulation.stage import Stage


REWRITTEN_BATCHES: Final = 20


def target(stage: Stage, fault: Fault) -> Partition | None:
    """The partition that the fault names; there may be others than when it was drawn, or none for a while."""
    parts = stage.partitions()
    return parts[int(fault.target) % len(parts)] if parts else None


@kind("F-38", target=partition, amount=amount(0.1, 0.5, 1.0))
def expire(stage: Stage, fault: Fault) -> End | None:
    """The log start moves over a part of what there is."""
    if (part := target(stage, fault)) is not None:
        span = part.high_watermark - part.log.start
        stage.cluster.delete_records(TOPIC, part.number, part.log.start + int(span * fault.amount))
    return None


@kind("F-39", target=partition, amount=amount(0.5, 0.9, 0.99))
def truncate(stage: Stage, fault: Fault) -> End | None:
    """An unclean election loses the tail; of a short one producers write over it before anybody looks."""
    part = target(stage, fault)
    if part is not None and stage.writable(part):
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
    if stage.partitions():
        stage.cluster.recreate_topic(TOPIC)
    return None


@kind("F-40")
def delete_topic(stage: Stage, fault: Fault) -> End | None:
    """The topic is deleted, and made again, with a new id, when the fault ends."""
    if stage.partitions():
        stage.cluster.delete_topic(TOPIC)
    return stage.make_topic


@kind("F-43", target=partition, amount=amount(0, 1))
def hang(stage: Stage, fault: Fault) -> End | None:
    """A transaction stays open for as long as the fault lasts; then it is aborted (0) or committed (1)."""
    part = target(stage, fault)
    if part is not None and stage.writable(part):
        stage.transactions.hang(part, stage.now + fault.seconds, commits=bool(fault.amount))
    return None


@kind("F-41", amount=amount(1, 2, 5))
def add_partitions(stage: Stage, fault: Fault) -> End | None:
    """The topic grows."""
    if 0 < len(stage.partitions()) < 100:
        stage.cluster.add_partitions(TOPIC, len(stage.partitions()) + int(fault.amount))
    return None


@kind("F-42", target=partition)
def compact(stage: Stage, fault: Fault) -> End | None:
    """Older records of a key go, leaving gaps and empty batches."""
    if (part := target(stage, fault)) is not None:
        stage.cluster.compact(TOPIC, part.number)
    return None
