"""Fetch sessions (KIP-227): epochs, news, forgotten partitions, and the slots that sessions take from each other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.embedded.api_error import ApiError
from kclient.embedded.apis.fetch import sessions_of
from kclient.embedded.fetch_sessions import LAST_EPOCH, NO_SESSION, CachedPartition, FetchSessionCache
from kclient.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kclient.protocol.errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INCONSISTENT_TOPIC_ID,
    INVALID_FETCH_SESSION_EPOCH,
    NONE,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_TOPIC_ID,
)
from kclient.runtime import Runtime
from tests.embedded.one_topic import MANY
from tests.embedded.raw_client import RawClient

FULL = 0


class Talk:
    """One client's fetch session. `reported`: partition, error code, bool(records) of each row of the last response."""

    def __init__(self, cluster: EmbeddedCluster, raw_client: RawClient) -> None:
        self.cluster = cluster
        self.raw_client = raw_client
        self.session_id = 0
        self.reported: list[tuple[int, int, bool]] = []

    async def say(
        self,
        epoch: int,
        offsets: dict[int, int] | None = None,
        forget: tuple[int, ...] = (),
        topic_id: bytes | None = None,
        session_id: int | None = None,
    ) -> int:
        """The error code of the response. By the topic's name unless by an id."""
        rows = [
            FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=MANY)
            for number, offset in (offsets or {}).items()
        ]
        named: dict[str, Any] = {"topic": "orders"} if topic_id is None else {"topic_id": topic_id}
        request = FetchRequest(
            session_id=self.session_id if session_id is None else session_id,
            session_epoch=epoch,
            topics=[FetchTopic(partitions=rows, **named)] if rows else [],
            forgotten_topics_data=[ForgottenTopic(partitions=list(forget), **named)] if forget else [],
        )
        response = await self.raw_client.ask(request, 12 if topic_id is None else 13, 1)
        if epoch == FULL:
            self.session_id = response.session_id
        self.reported = [
            (row.partition_index, row.error_code, bool(row.records))
            for topic in response.responses
            for row in topic.partitions
        ]
        return int(response.error_code)


def run(test: Callable[[EmbeddedCluster, Talk], Awaitable[None]], **config: Any) -> None:
    async def main() -> None:
        topics = {"orders": 3}
        async with EmbeddedCluster(topics=topics, config=config) as cluster, RawClient(cluster) as raw_client:
            await test(cluster, Talk(cluster, raw_client))

    asyncio.run(main())


@pytest.mark.spec("B.10.14")
def test_only_news_is_reported() -> None:
    async def test(cluster: EmbeddedCluster, talk: Talk) -> None:
        assert await talk.say(FULL, {0: 0, 1: 0}) == NONE
        assert talk.reported == [(0, NONE, False), (1, NONE, False)]
        assert await talk.say(1) == NONE
        assert talk.reported == []
        cluster.produce("orders", ["a"], partition=1)
        await talk.say(2)
        assert talk.reported == [(1, NONE, True)]
        await talk.say(3)  # still the same offset, so the same records
        assert talk.reported == [(1, NONE, True)]
        await talk.say(4, {1: 1})
        assert talk.reported == []
        await talk.say(5, {0: 7})
        assert talk.reported == [(0, OFFSET_OUT_OF_RANGE, False)]
        await talk.say(6)
        assert talk.reported == [(0, OFFSET_OUT_OF_RANGE, False)]
        await talk.say(7, {0: 0})  # the end of an error is news
        assert talk.reported == [(0, NONE, False)]
        cluster.delete_records("orders", 1, 1)
        await talk.say(8)
        assert talk.reported == [(1, NONE, False)]
        await talk.say(9, {2: 0}, forget=(0, 1))
        assert talk.reported == [(2, NONE, False)]

    run(test)


@pytest.mark.spec("B.10.5")
def test_a_partition_that_was_served_is_last_next_time() -> None:
    async def test(cluster: EmbeddedCluster, talk: Talk) -> None:
        for number in range(3):
            cluster.produce("orders", ["a"], partition=number)
        await talk.say(FULL, {0: 0, 1: 1, 2: 0})
        await talk.say(1, {0: 1})
        assert [number for number, _, _ in talk.reported] == [2]
        await talk.say(2, {0: 0, 1: 0})
        assert [number for number, _, _ in talk.reported] == [0, 1, 2]
        await talk.say(3, {0: 1})
        await talk.say(4, {0: 0})
        assert [number for number, _, _ in talk.reported] == [0, 1, 2]

    run(test)


@pytest.mark.spec("B.10.14", "F-37")
def test_a_wrong_session_or_epoch_is_refused_and_the_session_stays() -> None:
    async def test(cluster: EmbeddedCluster, talk: Talk) -> None:
        await talk.say(FULL, {0: 0})
        assert await talk.say(1, session_id=talk.session_id + 1) == FETCH_SESSION_ID_NOT_FOUND
        assert await talk.say(2) == INVALID_FETCH_SESSION_EPOCH
        assert talk.reported == []
        topic_id = cluster.state.topics["orders"].topic_id
        assert await talk.say(1, {0: 0}, topic_id=topic_id) == FETCH_SESSION_TOPIC_ID_ERROR
        assert await talk.say(1) == NONE
        cluster.kill(1)
        await cluster.restart(1)
        assert await talk.say(2) == FETCH_SESSION_ID_NOT_FOUND

    run(test)


@pytest.mark.spec("B.10.14")
def test_a_session_ends_with_a_full_request_a_last_one_or_its_last_partition() -> None:
    async def test(cluster: EmbeddedCluster, talk: Talk) -> None:
        sessions = sessions_of(cluster.state.brokers[1])
        await talk.say(FULL, {0: 0})
        first = talk.session_id
        await talk.say(FULL, {0: 0})
        assert (talk.session_id != first, list(sessions.open)) == (True, [talk.session_id])
        await talk.say(-1)
        assert sessions.open == {}
        await talk.say(FULL, {0: 0})
        assert await talk.say(1, forget=(0,)) == NONE
        assert (talk.reported, sessions.open) == ([], {})

    run(test)


@pytest.mark.spec("B.10.14")
def test_epochs_continue_at_1() -> None:
    async def test(cluster: EmbeddedCluster, talk: Talk) -> None:
        await talk.say(FULL, {0: 0})
        sessions_of(cluster.state.brokers[1]).open[talk.session_id].epoch = LAST_EPOCH
        assert [await talk.say(epoch) for epoch in (LAST_EPOCH, 1, 2)] == [NONE, NONE, NONE]

    run(test)


@pytest.mark.spec("B.10.14", "F-40")
def test_a_session_holds_on_to_topic_ids() -> None:
    async def test(cluster: EmbeddedCluster, talk: Talk) -> None:
        topic_id = cluster.state.topics["orders"].topic_id
        await talk.say(FULL, {0: 0}, topic_id=topic_id)
        cluster.recreate_topic("orders")
        await talk.say(1, topic_id=topic_id)
        assert talk.reported == [(0, INCONSISTENT_TOPIC_ID, False)]
        await talk.say(2, {0: 0}, topic_id=b"\7" * 16)
        assert talk.reported == [(0, INCONSISTENT_TOPIC_ID, False), (0, UNKNOWN_TOPIC_ID, False)]
        new_id = cluster.state.topics["orders"].topic_id
        await talk.say(3, {0: 0}, topic_id=new_id)
        assert (0, NONE, False) in talk.reported

    run(test)


@pytest.mark.spec("F-37")
def test_without_a_slot_there_is_no_session_and_two_minutes_give_one() -> None:
    async def test(cluster: EmbeddedCluster, talk: Talk) -> None:
        other = Talk(cluster, talk.raw_client)
        await talk.say(FULL, {0: 0})
        await other.say(FULL, {0: 0})
        assert (other.session_id, other.reported) == (NO_SESSION, [(0, NONE, False)])
        cluster.clock.advance(121)
        await other.say(FULL, {0: 0})
        assert other.session_id != NO_SESSION
        assert await talk.say(1) == FETCH_SESSION_ID_NOT_FOUND

    run(test, **{"max.incremental.fetch.session.cache.slots": 1})


def wanted(count: int) -> dict[Any, CachedPartition]:
    rows = [
        CachedPartition("orders", bytes(16), FetchPartition(partition=number), False)
        for number in range(count)
    ]
    return {row.key: row for row in rows}


@pytest.mark.parametrize(
    ("created", "used", "size", "privileged", "evicts"),
    [
        (0, 200, 1, False, False),  # as small as the old one, and that is in use
        (0, 200, 2, False, True),  # larger than one that is older than two minutes
        (150, 200, 2, False, False),  # that one is young
        (0, 50, 1, False, True),  # unused for two minutes
        (199, 200, 1, True, True),  # brokers go before clients
    ],
)
def test_which_session_takes_which_slot(
    created: int, used: int, size: int, privileged: bool, evicts: bool
) -> None:
    sessions = FetchSessionCache(Runtime(rng=Random(5)), slots=1)
    old = sessions.create(wanted(1), False, False, float(created))
    sessions.advance(sessions.find(old, 1, False), float(used))
    new = sessions.create(wanted(size), False, privileged, 200.0)
    assert (new != NO_SESSION, old not in sessions.open) == (evicts, evicts)
    with pytest.raises(ApiError):
        sessions.find(old if evicts else NO_SESSION, 2, False)
