"""The error tables of FindCoordinator, OffsetFetch and OffsetCommit, with every code that a broker could send.

What the tables say of a code is written down here. One that they do not name is the application's, for a partition
also where Kafka calls the code retriable (CORRUPT_MESSAGE, say), as in Java. JoinGroup, SyncGroup, Heartbeat and
LeaveGroup want a member in motion: test_join_and_sync_errors.py, test_heartbeats.py and test_rejoining.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from kclient.errors import (
    BrokerError,
    CommitFailedError,
    GroupAuthorizationError,
    KclientError,
    TopicAuthorizationError,
    UnknownTopicError,
)
from kclient.types import OffsetAndMetadata
from tests.group.offset_requests import F0, Asking, committing, lookups, read, stored
from tests.group.scripted_group import coordinating, found, refused, scripted
from tests.scripted_broker import On, ScriptedBroker

EVERY_CODE: Final = (-1, *range(1, 134), 999)
RETRIABLE: Final = {3, 5, 6, 9, 13, 56, 72, 74, 80, 83, 84, 100, 103} | {
    *(2, 7, 14, 15, 16, 19, 20, 41, 51, 70, 71, 75, 78, 88, 89, 106, 122, 123, 133)
}  # B.15.1
HASTY: Final[dict[str, Any]] = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 1}
AT_3 = {F0: OffsetAndMetadata(3)}


def seen_as(error: KclientError | None) -> object:
    """What an application sees of an error: its class, and the code or the reason."""
    match error:
        case CommitFailedError():
            return error.reason
        case GroupAuthorizationError() | TopicAuthorizationError() | UnknownTopicError():
            return type(error)
        case BrokerError():
            return error.code
    return error


@pytest.mark.spec("B.15.2", "B.15.1")
def test_find_coordinator() -> None:
    """Retriable codes are asked again; the others are the application's."""

    async def run() -> None:
        async with scripted() as peer, coordinating(peer, **HASTY) as (_, coordinator, *_rest):
            for code in EVERY_CODE:
                peer.script.append(On("FindCoordinatorRequest", refused(code)))
                if code in RETRIABLE:
                    peer.script.append(On("FindCoordinatorRequest", found(peer)))
                    assert await coordinator.ensure() == peer.node_id, code
                    coordinator.mark_unknown("the test goes on")
                    continue
                with pytest.raises(KclientError) as caught:
                    await coordinator.ensure()
                if code == 30:
                    assert isinstance(caught.value, GroupAuthorizationError)
                assert getattr(caught.value, "code", code) == code
                assert coordinator.node_id is None

    asyncio.run(run())


def each_code(
    api: str, response: Callable[[int], Any], good: Any, call: Callable[[Asking], Awaitable[Any]]
) -> dict[int, tuple[object, int, bool]]:
    """Code → what was raised, how often it was asked, and whether the coordinator was sought again."""
    outcomes: dict[int, tuple[object, int, bool]] = {}

    async def one(peer: ScriptedBroker, asking: Asking, code: int) -> None:
        asked, sought, raised = len(peer.of(api)), lookups(peer), None
        peer.script[:] = [On(api, response(code)), On(api, good)]
        try:
            await call(asking)
        except KclientError as exc:
            raised = exc
        peer.script.clear()
        await asking.coordinator.ensure()
        outcomes[code] = seen_as(raised), len(peer.of(api)) - asked, lookups(peer) > sought

    async def run() -> None:
        async with scripted() as peer, committing(peer, **HASTY) as asking, asyncio.timeout(60):
            await asking.coordinator.ensure()
            for code in EVERY_CODE:
                await one(peer, asking, code)

    asyncio.run(run())
    return outcomes


@pytest.mark.spec("B.15.7", "S0-33", "D-20")
def test_offset_fetch_for_the_group() -> None:
    def expected(code: int) -> tuple[object, int, bool]:
        if code in RETRIABLE:
            return None, 2, code in (15, 16)
        return (
            GroupAuthorizationError if code == 30 else TopicAuthorizationError if code == 29 else code,
            1,
            False,
        )

    outcomes = each_code(
        "OffsetFetchRequest",
        lambda code: read({}, group_code=code),
        read({F0: (3, 0)}),
        lambda asking: asking.committed.fetch([F0]),
    )
    assert outcomes == {code: expected(code) for code in EVERY_CODE}


@pytest.mark.spec("B.15.7", "S0-27", "S0-28", "S0-29", "S0-30")
def test_offset_fetch_for_a_partition() -> None:
    classes = {3: UnknownTopicError, 29: TopicAuthorizationError, 30: GroupAuthorizationError}

    def expected(code: int) -> tuple[object, int, bool]:
        return (None, 2, False) if code in (88, 100) else (classes.get(code, code), 1, False)

    outcomes = each_code(
        "OffsetFetchRequest",
        lambda code: read({F0: (-1, code)}),
        read({F0: (3, 0)}),
        lambda asking: asking.committed.fetch([F0]),
    )
    assert outcomes == {code: expected(code) for code in EVERY_CODE}


ELSEWHERE: Final = (15, 16, 7)  # the coordinator is sought again
COMMIT_REFUSED: Final[dict[int, object]] = {
    **dict.fromkeys((22, 25, 27, 82), "occupied"),  # of a consumer that is no member
    29: TopicAuthorizationError,
    30: GroupAuthorizationError,
    69: "group_gone",
}
COMMIT_AGAIN: Final = (3, 14, 100, *ELSEWHERE)


@pytest.mark.spec("B.15.8", "B.14.1")
def test_offset_commit_that_waits() -> None:
    def expected(code: int) -> tuple[object, int, bool]:
        if code in COMMIT_AGAIN:
            return None, 2, code in ELSEWHERE
        return COMMIT_REFUSED.get(code, code), 1, False

    outcomes = each_code(
        "OffsetCommitRequest",
        lambda code: stored({F0: code}),
        stored({F0: 0}),
        lambda asking: asking.commits.commit(AT_3, retry=True),
    )
    assert outcomes == {code: expected(code) for code in EVERY_CODE}


@pytest.mark.spec("B.15.8", "B.14.2")
def test_offset_commit_beside() -> None:
    def expected(code: int) -> tuple[object, int, bool]:
        if code in COMMIT_AGAIN:
            return "retriable", 1, code in ELSEWHERE
        return COMMIT_REFUSED.get(code, code), 1, False

    outcomes = each_code(
        "OffsetCommitRequest",
        lambda code: stored({F0: code}),
        stored({F0: 0}),
        lambda asking: asking.commits.commit(AT_3, retry=False),
    )
    assert outcomes == {code: expected(code) for code in EVERY_CODE}
