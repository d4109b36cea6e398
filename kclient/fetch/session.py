"""Fetch session of one node (KIP-227): the node keeps the list of partitions, a request sends what changed. Pure.

    what happened                                          (id, epoch) of the next request
    nothing yet; FETCH_SESSION_ID_NOT_FOUND (70)           (0, 0)        full: every partition, asks for a session
    response to a full request with a session id           (id, 1)       incremental: what changed since
    … with id 0 (no cache slot is free, or an old broker)  (0, 0)
    … with other partitions than were requested            (0, 0)
    response to an incremental request                     (id, n + 1)   after 2³¹ − 1 comes 1
    … with id 0 (the broker closed the session)            (0, 0)
    … with partitions that are not in the session          (id, 0)       full, and closes the session before it
    any other error; no response; names instead of ids     (id, 0)
    the consumer closes                                    (id, −1)      no partitions

A request counts as lost until its response is accepted: `next_request` sets the epoch to 0, `handle_response` sets it
to the following one. However the wait ends, also by cancellation, the next request is (id, 0), because the broker may
or may not have applied the lost one.

An incremental request compares the partitions to fetch with those of the session:

    added      not in the session                      sent, and before the altered ones
    altered    another offset, epoch or topic id       sent; under a new topic id the old id is also forgotten
    unchanged  nothing that the broker would see       not sent
    removed    in the session, no longer fetched       sent as forgotten

    session: a-0 at 5, a-1 at 7     to fetch: a-0 at 9, a-2 at 0     request: a-2 at 0, a-0 at 9, forget a-1
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from kclient.protocol.errors import FETCH_SESSION_ID_NOT_FOUND
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.generated.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData

INVALID_SESSION_ID: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
MAX_EPOCH: Final = 2**31 - 1


@attrs.frozen
class PartitionFetch:
    """A partition of a Fetch request. An epoch or id is None if unknown.

    `position_version` is the version of the position that `offset` comes from; a response for another version is
    dropped. `offset_epoch` is the epoch of the record before the offset: a leader whose log differs there answers with
    the diverging epoch (KIP-595). `fetch_order` sorts the partitions of a request (KIP-74).
    """

    tp: TopicPartition
    offset: int
    leader_epoch: int | None
    topic_id: bytes | None
    position_version: int
    offset_epoch: int | None = None
    fetch_order: int = 0

    def is_same_on_wire(self, other: PartitionFetch) -> bool:
        """Return whether both have the same wire fields, so that an incremental request can leave this one out."""
        return (
            self.offset == other.offset
            and self.leader_epoch == other.leader_epoch
            and self.topic_id == other.topic_id
            and self.offset_epoch == other.offset_epoch
        )


PartitionFetches = Mapping[TopicPartition, PartitionFetch]
Row = tuple[PartitionFetch | None, "PartitionData"]


@attrs.frozen
class FetchRequestData:
    """What the next request contains: with epoch 0 all partitions, else those added and altered, and `to_forget`."""

    session_id: int
    epoch: int
    to_send: Sequence[PartitionFetch]
    to_forget: Sequence[PartitionFetch] = ()
    by_id: bool = False


class FetchSession:
    """Our side of a fetch session.

    `partitions` are those of the last request, in the order in which the broker serves them. `epoch` is the one of the
    next request, 0 for a full request.
    """

    def __init__(self) -> None:
        self.session_id: int = INVALID_SESSION_ID
        self.epoch: int = INITIAL_EPOCH
        self.by_id: bool = False
        self._partitions: dict[TopicPartition, PartitionFetch] = {}
        self._topic_names: dict[bytes, str] = {}
        self._sent_epoch = INITIAL_EPOCH

    @property
    def partitions(self) -> PartitionFetches:
        """All partitions of the last request, those included that an incremental one left out."""
        return self._partitions

    # --- requests --------------------------------------------------------------------------------

    def next_request(
        self,
        to_fetch: PartitionFetches,
        changed: Collection[TopicPartition] | None = None,
        *,
        by_id: bool = False,
    ) -> FetchRequestData:
        """Return the request after which the broker fetches exactly `to_fetch`. `by_id`: it supports topic ids.

        `changed` are the partitions that may differ from the request before; None: any may. With 5,000 partitions of
        which 3 changed, only these 3 are looked at, and of them those whose PartitionFetch is another object.
        """
        data = self._incremental_request(to_fetch, changed, by_id) if self.epoch != INITIAL_EPOCH else None
        if data is None:
            data = self._full_request(to_fetch, by_id and _have_ids(to_fetch.values()))
        self.epoch, self._sent_epoch = INITIAL_EPOCH, data.epoch
        return data

    def close_request(self) -> FetchRequestData | None:
        """Return the request that closes the session, None if there is no session. The next request is a full one."""
        session_id, self.session_id, self.epoch = self.session_id, INVALID_SESSION_ID, INITIAL_EPOCH
        return FetchRequestData(session_id, FINAL_EPOCH, ()) if session_id else None

    def _full_request(self, to_fetch: PartitionFetches, by_id: bool) -> FetchRequestData:
        self.by_id = by_id
        entries = _in_fetch_order(to_fetch.values())
        self._partitions = {entry.tp: entry for entry in entries}
        self._topic_names = _topic_names(entries)
        return FetchRequestData(self.session_id, INITIAL_EPOCH, entries, by_id=by_id)

    def _incremental_request(
        self, to_fetch: PartitionFetches, changed: Collection[TopicPartition] | None, by_id: bool
    ) -> FetchRequestData | None:
        """Apply the changes to `_partitions` and return them: the added partitions first, then the altered ones in the
        order of the session. Return None, changing nothing, if the session has to change between topic ids and names.
        """
        known = self._partitions
        looked_at = known if changed is None else {tp: known[tp] for tp in changed if tp in known}
        pairs = [(old, to_fetch.get(tp)) for tp, old in looked_at.items() if to_fetch.get(tp) is not old]
        removed = [old for old, new in pairs if new is None]
        kept = [(old, new) for old, new in pairs if new is not None]
        added: Sequence[PartitionFetch] = ()
        # Counting shows whether any partition is new: without one, the search through `to_fetch` is not needed.
        if len(to_fetch) > len(known) - len(removed):
            candidates = to_fetch if changed is None else changed
            added = _in_fetch_order(to_fetch[tp] for tp in candidates if tp in to_fetch and tp not in known)
        entries = [*added, *(new for _, new in kept)]
        # A session by ids stays one if the new entries have ids; a session by names can change if now all have one.
        if self.by_id != (by_id and _have_ids(entries if self.by_id else to_fetch.values())):
            return None
        self._apply(entries, removed)
        to_forget = removed
        if (
            self.by_id
        ):  # for the broker, a recreated topic is another topic: forget the partition under its old id
            to_forget = removed + [old for old, new in kept if new.topic_id != old.topic_id]
        altered = [new for old, new in kept if not new.is_same_on_wire(old)]
        return FetchRequestData(self.session_id, self.epoch, (*added, *altered), to_forget, self.by_id)

    def _apply(self, entries: Sequence[PartitionFetch], removed: Iterable[PartitionFetch]) -> None:
        known = self._partitions
        for entry in removed:
            del known[entry.tp]
        for entry in entries:
            known[entry.tp] = entry
        # Names of removed topics stay until they are more than the partitions: cheaper than counting users of each.
        self._topic_names |= _topic_names(entries)
        if len(self._topic_names) > len(known):
            self._topic_names = _topic_names(known.values())

    # --- responses -------------------------------------------------------------------------------

    def rows(self, response: FetchResponse) -> Iterator[Row]:
        """Return each partition of the response after what was requested of it, None if it is not in the session."""
        for topic in response.responses:
            for partition in topic.partitions:
                yield self._find(topic, partition.partition_index), partition

    def _find(self, topic: FetchableTopicResponse, index: int) -> PartitionFetch | None:
        if topic.topic:
            return self._partitions.get(TopicPartition(topic.topic, index))
        topic_id = bytes(topic.topic_id)
        entry = self._partitions.get(TopicPartition(self._topic_names.get(topic_id, ""), index))
        return entry if entry is not None and entry.topic_id == topic_id else None

    def handle_response(self, response: FetchResponse, rows: Sequence[Row]) -> bool:
        """Set id and epoch of the next request. Return whether the response may be used."""
        if response.error_code:
            if response.error_code == FETCH_SESSION_ID_NOT_FOUND:
                self.session_id = INVALID_SESSION_ID
            return False
        known = {entry.tp for entry, _ in rows if entry is not None}
        is_valid = len(known) == len(rows)  # no partition is unknown, none comes twice
        if self._sent_epoch == INITIAL_EPOCH:
            is_valid = is_valid and len(known) == len(self._partitions)
            self.session_id = response.session_id if is_valid else INVALID_SESSION_ID
        elif response.session_id == INVALID_SESSION_ID:
            self.session_id = INVALID_SESSION_ID
        else:
            is_valid = is_valid and response.session_id == self.session_id
        if is_valid and self.session_id != INVALID_SESSION_ID:
            self.epoch = 1 if self._sent_epoch == MAX_EPOCH else self._sent_epoch + 1
        return is_valid


def _in_fetch_order(entries: Iterable[PartitionFetch]) -> list[PartitionFetch]:
    return sorted(entries, key=lambda entry: entry.fetch_order)


def _have_ids(entries: Iterable[PartitionFetch]) -> bool:
    return all(entry.topic_id is not None for entry in entries)


def _topic_names(entries: Iterable[PartitionFetch]) -> dict[bytes, str]:
    return {entry.topic_id: entry.tp.topic for entry in entries if entry.topic_id is not None}
