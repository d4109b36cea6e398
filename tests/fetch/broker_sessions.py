"""A broker's side of fetch sessions, without logs: the embedded cluster's own bookkeeping, fed with real requests."""

from __future__ import annotations

import random

from kclient.embedded.api_error import ApiError
from kclient.embedded.apis.fetch import _forgotten
from kclient.embedded.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    CachedPartition,
    FetchSessionCache,
    Key,
)
from kclient.generated.fetch_request import FetchRequest
from kclient.generated.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kclient.protocol.primitives import ZERO_UUID
from kclient.runtime import Runtime

NEWEST_BY_NAME = 12


class BrokerSessions:
    """`fetched` is what the broker fetched for the last request; an incremental response omits `unheard` partitions."""

    def __init__(self, seed: int = 1, slots: int = 3) -> None:
        self.sessions = FetchSessionCache(Runtime(rng=random.Random(seed)), slots)
        self.fetched: dict[Key, CachedPartition] = {}
        self.unheard: set[Key] = set()

    def handle(self, request: FetchRequest, version: int) -> FetchResponse:
        """What `embedded.apis.fetch` does with sessions, in its order."""
        by_id = version > NEWEST_BY_NAME
        asked = {one.key: one for one in _asked(request, by_id)}
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self.sessions.end(request.session_id)
            self.fetched = asked
            session_id = NO_SESSION
            if request.session_epoch == INITIAL_EPOCH:
                session_id = self.sessions.create(dict(asked), by_id, False, 0.0)
            return _answer(session_id, list(asked.values()))
        try:
            session = self.sessions.find(request.session_id, request.session_epoch, by_id)
        except ApiError as exc:
            return FetchResponse(error_code=exc.code)
        session.alter(asked.values(), _forgotten(request, by_id))
        self.fetched = dict(session.partitions)
        if not session.partitions:
            self.sessions.end(session.session_id)
            return _answer(NO_SESSION, [])
        self.sessions.advance(session, 0.0)
        news = [one for key, one in session.partitions.items() if key not in self.unheard]
        return _answer(session.session_id, news)


def _asked(request: FetchRequest, by_id: bool) -> list[CachedPartition]:
    return [
        CachedPartition(topic.topic, topic.topic_id, partition, by_id)
        for topic in request.topics
        for partition in topic.partitions
    ]


def _answer(session_id: int, reported: list[CachedPartition]) -> FetchResponse:
    topics = [
        FetchableTopicResponse(
            topic="" if one.by_id else one.topic or "",
            topic_id=one.topic_id if one.by_id else ZERO_UUID,
            partitions=[PartitionData(partition_index=one.asked.partition, records=b"")],
        )
        for one in reported
    ]
    return FetchResponse(session_id=session_id, responses=topics)
