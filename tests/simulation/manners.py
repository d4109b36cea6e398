"""What some applications do in their own way: pause after an error, hope that it passes, commit before they poll."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING

from kclient.errors import BrokerError, KclientError
from kclient.types import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from tests.simulation.application import Member

A_LITTLE = 3  # offsets
THINKS_SECONDS = 0.05  # before it commits: as long as a look-up that went ahead would need


def pause_after(member: Member, error: KclientError) -> float:
    """How long the application waits before it polls again, in seconds."""
    pause = 0.0 if member.stage.quiet else member.stage.scenario.error_pause
    return pause or (0.1 if isinstance(error, BrokerError) else 0.02)


def shrugs(member: Member) -> bool:
    """Whether it logs an error of a position and hopes that it passes."""
    stage = member.stage
    if stage.quiet or not stage.scenario.error_pause:
        return False
    return Random(f"{stage.world.seed}:{member}:{stage.now}:shrug").random() < 0.7


async def commit_first(member: Member, partitions: Iterable[TopicPartition]) -> None:
    """Commit a little less than the group has for these, before anything of them is polled: reading begins there."""
    consumer, stage = member.consumer, member.stage
    if consumer is None or stage.quiet or not stage.scenario.commits_first:
        return
    await asyncio.sleep(THINKS_SECONDS)
    if not (offsets := _a_little_less(member, partitions)):
        return
    stage.watch.commit_began(member, offsets)
    failure: KclientError | None = None
    try:
        with member.calling("commit"):
            await consumer.commit(offsets)
    except KclientError as exc:
        failure = exc
    stage.watch.commit_ended(member, offsets, failure)
    for tp in offsets:
        if (holding := member.holdings.get(tp)) is not None:
            holding.committed, holding.free = offsets[tp], failure is not None


def _a_little_less(
    member: Member, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, OffsetAndMetadata]:
    """With the epoch of the record before, so that a log that is cut shows; none where that record is not known."""
    ledger, found = member.stage.ledger, dict[TopicPartition, OffsetAndMetadata]()
    for tp in partitions:
        committed, partition = ledger.committed_offsets.get(tp), member.stage.cluster.state.partition(tp)
        offset = 0 if committed is None else committed.offset - A_LITTLE
        before = ledger.at(tp, offset - 1)
        if partition is not None and before is not None and offset > partition.log.start:
            found[tp] = OffsetAndMetadata(offset, before.epoch)
    return found
