"""A fetch session (KIP-227): the node remembers what we fetch, so that a request names only what changed. Pure.

    what happened                                          the next request
    nothing yet; 70 (the session is not known)             (0, 0)        full: every partition, asks for a session
    a full request was answered with a session id          (id, 1)       incremental: what changed since
    … with id 0 (no slot is free, or an old broker)        (0, 0)
    … with other partitions than were asked for            (0, 0)
    an incremental request was answered                    (id, n + 1)   after 2³¹ − 1 comes 1
    … with id 0 (the broker ended the session)             (0, 0)
    … with partitions that are not in the session          (id, 0)       full, and ends the session that was
    any other error; no answer; names instead of ids       (id, 0)
    the consumer closes                                    (id, −1)      nothing

A request counts as lost until its answer is accepted: whatever ends the wait, a cancellation too, leaves (id, 0), for
nobody knows whether the broker took it in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from kclient.protocol.errors import FETCH_SESSION_ID_NOT_FOUND
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.generated.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData


NO_SESSION: Final = 0
FULL: Final = 0
LAST: Final = -1
LAST_EPOCH: Final = 2**31 - 1


@attrs.frozen
class PartitionFetch:
    """What is fetched of one partition, at `position_version`. None of an epoch or id: unknown.

    `offset_epoch` is that of the data before the offset: a leader whose log differs there says where they part. `turn`
    is its place in the order of service.
    """

    tp: TopicPartition
    offset: int
    leader_epoch: int | None
    topic_id: bytes | None
    position_version: int
    offset_epoch: int | None = None
    turn: int = 0

    def asks_the_same(self, other: PartitionFetch) -> bool:
        """Whether both are the same on the wire, so that a session need not be told."""
        return (
            self.offset == other.offset
            and self.leader_epoch == other.leader_epoch
            and self.topic_id == other.topic_id
            and self.offset_epoch == other.offset_epoch
        )


Row = tuple[PartitionFetch | None, "PartitionData"]
Wanted = Mapping[TopicPartition, PartitionFetch]


@attrs.frozen
class FetchRequestData:
    """What the next request says. Epoch 0: `to_send` is everything; else it is news and `forgotten` goes."""

    session_id: int
    epoch: int
    to_send: Sequence[PartitionFetch]
    forgotten: Sequence[PartitionFetch] = ()
    by_id: bool = False


class FetchSession:
    """What we and one node know of each other.

    `partitions` is what the node fetches for us, in its order, as far as the last request reached it. `epoch` is that
    of the next request, 0 for a full one.
    """

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = FULL
        self.by_id = False
        self._partitions: dict[TopicPartition, PartitionFetch] = {}
        self._names: dict[bytes, str] = {}
        self._sent = FULL

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionFetch]:
        """What the last request asked for, as a whole."""
        return self._partitions

    # --- asking ----------------------------------------------------------------------------------

    def next_step(
        self, wanted: Wanted, news: Collection[TopicPartition] | None = None, *, by_id: bool = False
    ) -> FetchRequestData:
        """What to send so that the broker fetches exactly `wanted`, each in its turn. `by_id`: it takes topic ids.

        Costs little where little changed: only `news` can differ from the last step (None: anything can), and an entry
        that is the same object as before is not looked into.
        """
        step = self._go_on(wanted, news, by_id) if self.epoch != FULL else None
        if step is None:
            step = self._begin(wanted, by_id and _have_ids(wanted.values()))
        self.epoch, self._sent = FULL, step.epoch
        return step

    def last_step(self) -> FetchRequestData | None:
        """What to send to give the session back, None where there is none; the next request is a full one."""
        session_id, self.session_id, self.epoch = self.session_id, NO_SESSION, FULL
        return FetchRequestData(session_id, LAST, ()) if session_id else None

    def _begin(self, wanted: Wanted, by_id: bool) -> FetchRequestData:
        self.by_id = by_id
        ones = _in_order(wanted.values())
        self._partitions = {one.tp: one for one in ones}
        self._names = _names(ones)
        return FetchRequestData(self.session_id, FULL, ones, by_id=by_id)

    def _go_on(
        self, wanted: Wanted, news: Collection[TopicPartition] | None, by_id: bool
    ) -> FetchRequestData | None:
        """Added partitions first, then those that are asked for otherwise than before, in the order of the session.

        None where the session has to change between topic ids and names.
        """
        known = self._partitions
        before = known if news is None else {tp: known[tp] for tp in news if tp in known}
        others = [(old, wanted.get(tp)) for tp, old in before.items() if wanted.get(tp) is not old]
        forgotten = [old for old, one in others if one is None]
        kept = [(old, one) for old, one in others if one is not None]
        added: Sequence[PartitionFetch] = ()
        if len(wanted) > len(known) - len(forgotten):
            added = _in_order(
                wanted[tp] for tp in (wanted if news is None else news) if tp in wanted and tp not in known
            )
        differing = [*added, *(one for _, one in kept)]
        if self.by_id != (by_id and _have_ids(differing if self.by_id else wanted.values())):
            return None
        for old in forgotten:
            del known[old.tp]
        for one in differing:
            known[one.tp] = one
        self._names |= _names(differing)
        if len(self._names) > len(known):
            self._names = _names(known.values())  # of the topics that went, too many were kept
        if self.by_id:
            forgotten += [old for old, one in kept if one.topic_id != old.topic_id]
        changed = [one for old, one in kept if not one.asks_the_same(old)]
        return FetchRequestData(self.session_id, self.epoch, (*added, *changed), forgotten, self.by_id)

    # --- answers ---------------------------------------------------------------------------------

    def rows(self, answer: FetchResponse) -> Iterator[Row]:
        """Each answered partition with what was asked of it; None where the session does not have it."""
        for topic in answer.responses:
            for partition in topic.partitions:
                yield self._find(topic, partition.partition_index), partition

    def _find(self, topic: FetchableTopicResponse, index: int) -> PartitionFetch | None:
        if topic.topic:
            return self._partitions.get(TopicPartition(topic.topic, index))
        topic_id = bytes(topic.topic_id)
        asked = self._partitions.get(TopicPartition(self._names.get(topic_id, ""), index))
        return asked if asked is not None and asked.topic_id == topic_id else None

    def accepts(self, answer: FetchResponse, rows: Sequence[Row]) -> bool:
        """Whether the answer may be used; what the next request says depends on it."""
        if answer.error_code:
            if answer.error_code == FETCH_SESSION_ID_NOT_FOUND:
                self.session_id = NO_SESSION
            return False
        known = {asked.tp for asked, _ in rows if asked is not None}
        fits = len(known) == len(rows)
        if self._sent == FULL:
            fits = fits and len(known) == len(self._partitions)
            self.session_id = answer.session_id if fits else NO_SESSION
        elif answer.session_id == NO_SESSION:
            self.session_id = NO_SESSION
        else:
            fits = fits and answer.session_id == self.session_id
        if fits and self.session_id != NO_SESSION:
            self.epoch = 1 if self._sent == LAST_EPOCH else self._sent + 1
        return fits


def _in_order(ones: Iterable[PartitionFetch]) -> list[PartitionFetch]:
    return sorted(ones, key=lambda one: one.turn)


def _have_ids(ones: Iterable[PartitionFetch]) -> bool:
    return all(one.topic_id is not None for one in ones)


def _names(ones: Iterable[PartitionFetch]) -> dict[bytes, str]:
    return {one.topic_id: one.tp.topic for one in ones if one.topic_id is not None}
