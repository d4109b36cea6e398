"""Moving about in the assigned partitions: position, seek, pause. Records in hand that no longer fit are taken back."""

from __future__ import annotations

from collections.abc import Iterable

from kclient.consumer.arguments import checked_offset
from kclient.consumer.core import ConsumerCore
from kclient.consumer.subscription import checked_partitions
from kclient.positions.state import EARLIEST, LATEST, ResetStrategy
from kclient.types import OffsetAndMetadata, TopicPartition


async def position(session: ConsumerCore, partition: TopicPartition, timeout: float) -> int:
    """The offset of the next record that will be handed out, waited for."""
    (tp,) = checked_partitions([partition])
    async with session.waits.limit(timeout, f"the position of {tp}"):
        while True:
            seen = session.news.count
            known = session.positions.position(tp)
            if known is not None:
                here = OffsetAndMetadata(known.offset, known.offset_epoch)
                return session.hand.consumed({tp: here})[tp].offset
            await session.start()
            session.positions.start_deferred_lookups([tp])
            session.raise_stored()
            await session.news.wait(seen)


def seek(session: ConsumerCore, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
    """Go to an offset; the next poll begins there."""
    (tp,) = checked_partitions([partition])
    given = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
    target = checked_offset(tp, given)
    session.positions.state(tp)
    session.take_back([tp])
    session.cluster.saw_leader_epoch(
        tp, target.leader_epoch
    )  # before the leader is read: metadata may be older
    session.positions.seek(tp, target, session.cluster.metadata.leader(tp))
    session.buffer.drop([tp])


def seek_to_beginning(session: ConsumerCore, partitions: Iterable[TopicPartition]) -> None:
    """Go to the first offset of each; looked up when it is next needed."""
    _reset(session, partitions, EARLIEST)


def seek_to_end(session: ConsumerCore, partitions: Iterable[TopicPartition]) -> None:
    """Seek to the end of each; the offset is looked up when it is next needed."""
    _reset(session, partitions, LATEST)


def pause(session: ConsumerCore, partitions: Iterable[TopicPartition]) -> None:
    """Hand out nothing of these until `resume`."""
    for tp in _assigned(session, partitions):
        session.take_back([tp])
        session.positions.pause(tp)


def resume(session: ConsumerCore, partitions: Iterable[TopicPartition]) -> None:
    """Undo `pause`."""
    for tp in _assigned(session, partitions):
        session.positions.resume(tp)


def _reset(session: ConsumerCore, partitions: Iterable[TopicPartition], strategy: ResetStrategy) -> None:
    for tp in _assigned(session, partitions) or session.positions.assigned():
        session.take_back([tp])
        session.positions.request_offset_reset(tp, strategy)
        session.buffer.drop([tp])


def _assigned(session: ConsumerCore, partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    """All or none: partitions as given. Raises NotAssignedError for the first that is not assigned."""
    chosen = checked_partitions(partitions)
    for tp in chosen:
        session.positions.state(tp)
    return chosen
