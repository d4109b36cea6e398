"""Fetch sessions of one broker (KIP-227): it caches the partitions of a client, and only sends changes.

    request            session id, epoch   what it does                                     response
    full               any, 0              ends that session, opens a new one if a slot is free   every partition
    last               any, −1             ends that session                                every partition asked for
    incremental        id, n               alters the session, counts on to n + 1           partitions with news

Epochs continue at 1 after 2³¹−1. If all slots are taken, a session that was unused for two minutes is evicted, else one
that is older than that and smaller than the new one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from kclient.embedded.api_error import ApiError
from kclient.generated.fetch_request import FetchPartition
from kclient.generated.fetch_response import PartitionData
from kclient.protocol.errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
    NONE,
)
from kclient.runtime import Runtime

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
LAST_EPOCH: Final = 2**31 - 1
EVICTION_SECONDS: Final = 120.0

Key = tuple[str | bytes, int]  # topic name or id, partition


@attrs.define(eq=False)
class CachedPartition:
    """A partition of a session: its last request and last response. `topic` is None if unknown."""

    topic: str | None
    topic_id: bytes
    asked: FetchPartition
    by_id: bool
    high_watermark: int = -1
    log_start_offset: int = -1

    @property
    def key(self) -> Key:
        """Its key in a session."""
        return (self.topic_id if self.by_id else self.topic or ""), self.asked.partition

    def remember(self, row: PartitionData) -> None:
        """Remember the response of the partition."""
        self.high_watermark = -1 if row.error_code != NONE else row.high_watermark
        self.log_start_offset = row.log_start_offset

    def is_changed(self, row: PartitionData) -> bool:
        """Whether the row must be sent: it has records, an error, or changes since the last response."""
        return (
            bool(row.records)
            or row.error_code != NONE
            or row.high_watermark != self.high_watermark
            or row.log_start_offset != self.log_start_offset
            or row.preferred_read_replica >= 0
            or row.diverging_epoch is not None
        )


@attrs.define(eq=False)
class BrokerFetchSession:
    """One client's session; `epoch` is that of the next request. Times in seconds."""

    session_id: int
    by_id: bool
    privileged: bool
    created: float
    used: float
    partitions: dict[Key, CachedPartition]
    epoch: int = 1

    def alter(self, asked: Iterable[CachedPartition], forgotten: Iterable[Key]) -> None:
        """Add, update and forget partitions of an incremental request."""
        for one in asked:
            known = self.partitions.setdefault(one.key, one)
            known.asked = one.asked
        for key in forgotten:
            self.partitions.pop(key, None)

    @property
    def eviction_key(self) -> tuple[bool, int, int]:
        """Sort key of eviction, the least first."""
        return self.privileged, len(self.partitions), self.session_id


class FetchSessionCache:
    """The fetch sessions of one broker."""

    def __init__(self, runtime: Runtime, slots: int) -> None:
        self.slots = slots
        self.open: dict[int, BrokerFetchSession] = {}
        self._runtime = runtime

    def find(self, session_id: int, epoch: int, by_id: bool) -> BrokerFetchSession:
        """Return the session of an incremental request. Raise ApiError."""
        session = self.open.get(session_id)
        if session is None:
            raise ApiError(FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            raise ApiError(INVALID_FETCH_SESSION_EPOCH)
        if session.by_id != by_id:
            raise ApiError(FETCH_SESSION_TOPIC_ID_ERROR)
        return session

    def advance(self, session: BrokerFetchSession, now: float) -> None:
        """Advance the epoch after a request."""
        session.used = now
        session.epoch = 1 if session.epoch == LAST_EPOCH else session.epoch + 1

    def end(self, session_id: int) -> None:
        """Remove a session, if it exists."""
        self.open.pop(session_id, None)

    def create(
        self, partitions: dict[Key, CachedPartition], by_id: bool, privileged: bool, now: float
    ) -> int:
        """Create a session and return its id; 0 if all slots are taken."""
        if len(self.open) >= self.slots and not self._evict(privileged, len(partitions), now):
            return NO_SESSION
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self.open:
            session_id = self._runtime.rng.randrange(1, LAST_EPOCH)
        self.open[session_id] = BrokerFetchSession(session_id, by_id, privileged, now, now, partitions)
        return session_id

    def _evict(self, privileged: bool, size: int, now: float) -> bool:
        if not self.open:
            return False
        stale = min(self.open.values(), key=lambda session: (session.used, session.session_id))
        if now - stale.used > EVICTION_SECONDS:
            self.end(stale.session_id)
            return True
        evictable = [one for one in self.open.values() if self._may_go(one, privileged, now)]
        least = min(evictable, key=lambda session: session.eviction_key, default=None)
        if least is None or (privileged, size, NO_SESSION) < least.eviction_key:
            return False
        self.end(least.session_id)
        return True

    def _may_go(self, session: BrokerFetchSession, privileged: bool, now: float) -> bool:
        """Whether a session may be evicted; followers evict consumers' sessions of any age."""
        return now - session.created > EVICTION_SECONDS or (privileged and not session.privileged)
