"""AWAIT_RESET: the brokers that get ListOffsets, the retries, and the responses that are used."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kclient.errors import (
    PortClosedError,
    TopicAuthorizationError,
)
from kclient.positions.state import EARLIEST, FetchPosition
from kclient.types import LeaderAndEpoch, OffsetAndMetadata, TopicPartition
from tests.positions.fake_cluster import FakeCluster, run, settle
from tests.positions.test_list_offsets import answer
from tests.positions.updater_support import (
    AWAIT_RESET,
    FETCHING,
    LIST,
    ON_1,
    P0,
    P1,
    all_found,
    led_by_1,
    lists,
    updater,
)
from tests.waiting import until


@pytest.mark.spec("S0-08", "S0-45", "D-24")
def test_resets_of_six_partitions_go_to_three_leaders_in_parallel() -> None:
    async def scenario() -> None:
        answers_may_come = asyncio.Event()

        async def held_back(node: int, request: Any) -> Any:
            await answers_may_come.wait()
            return lists(1)(node, request)

        cluster = FakeCluster({("orders", n): (1 + n % 3, 5) for n in range(6)})
        cluster.answer(LIST, held_back)
        async with updater(cluster, *(TopicPartition("orders", n) for n in range(6))) as (positions, _):
            assert sorted(asked.node_id for asked in cluster.of(LIST)) == [1, 2, 3]
            answers_may_come.set()
            await settle()
            assert all_found(positions)
            assert len(cluster.of(LIST)) == 3

    run(scenario())


@pytest.mark.spec("S0-45")
def test_a_partition_without_leader_waits_for_metadata() -> None:
    async def scenario() -> None:
        cluster = FakeCluster({})
        cluster.answer(LIST, lists(1))
        async with updater(cluster, P0) as (positions, _):
            for _ in range(3):
                cluster.set_leaders({})  # a response without news must not be followed by ever more questions
                await settle()
            assert cluster.updates
            assert cluster.impatient_updates == []
            assert cluster.asked == []
            cluster.set_leaders({("orders", 0): (2, 5)})
            await settle()
            assert positions.position(P0) == FetchPosition(1, None, LeaderAndEpoch(2, 5))

    run(scenario())


@pytest.mark.spec("S0-43", "S0-46")
def test_a_reset_in_flight_is_not_asked_for_again_before_the_request_timeout() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, lambda node, request: asyncio.sleep(29, answer((P0, 0, 1))))
        async with updater(cluster, P0) as (positions, _):
            for _ in range(20):
                await asyncio.sleep(1)
                positions.changed.notify()
            assert len(cluster.of(LIST)) == 1
            await until(lambda: all_found(positions))

    run(scenario())


@pytest.mark.spec("S0-43", "S0-46")
def test_a_request_that_fails_at_its_very_end_is_followed_by_one_other_only() -> None:
    """The deadline of a request is the time from which it may be sent again."""

    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, lambda node, request: asyncio.sleep(30.01, PortClosedError("timed out")))
        async with updater(cluster, P0) as (positions, _):
            await asyncio.sleep(30.0)
            positions.changed.notify()
            await asyncio.sleep(0.02)
            assert len(cluster.of(LIST)) == 1
            await asyncio.sleep(20)
            assert len(cluster.of(LIST)) == 2

    run(scenario())


@pytest.mark.parametrize(
    "reply",
    [
        answer((P0, 0, 1)),
        answer((P0, 6, -1)),
        answer((P0, 0, -1)),
        answer((P0, 29, -1)),
        PortClosedError("gone"),
    ],
)
@pytest.mark.spec("S0-46", "S0-47", "S0-49")
def test_a_request_counts_as_in_flight_only_until_it_ends(reply: Any) -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, lambda node, request: asyncio.sleep(0.05, reply))
        async with updater(cluster, P0) as (positions, _):
            assert positions.state(P0).request_in_flight
            seen = positions.changed.count
            await asyncio.sleep(0.06)
            assert not positions.state(P0).request_in_flight
            assert positions.changed.count > seen

    run(scenario())


@pytest.mark.spec("S0-47", "S0-60", "D-42")
def test_found_offsets_are_applied_and_the_refused_partition_is_asked_again_with_the_new_leader() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, lambda node, request: answer((P0, 0, 10), (P1, 6, -1)))
        async with updater(cluster, P0, P1) as (positions, one):
            assert positions.position(P0) == FetchPosition(10, None, ON_1)
            assert positions.state(P1).fetch_state is AWAIT_RESET
            assert cluster.updates
            cluster.set_leaders({("orders", 0): (1, 5), ("orders", 1): (2, 6)})
            cluster.answer(LIST, lists(20))
            await until(lambda: all_found(positions))
            again = cluster.of(LIST)[-1]
            assert again.node_id == 2
            assert [
                (p.partition_index, p.current_leader_epoch) for p in again.message.topics[0].partitions
            ] == [(1, 6)]
            assert one.take_error() is None

    run(scenario())


@pytest.mark.spec("S0-47")
def test_all_refused_partitions_of_a_response_are_requested_again_together_after_the_backoff() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, lists(-1, 6))
        async with updater(cluster, P0, P1, retry_backoff_ms=100) as (positions, _):
            cluster.answer(LIST, lists(20))
            await asyncio.sleep(0.07)
            assert len(cluster.of(LIST)) == 1
            await asyncio.sleep(0.06)
            assert all_found(positions)
            assert len(cluster.of(LIST)) == 2

    run(scenario())


@pytest.mark.spec("S0-49")
def test_a_lost_connection_is_retried_with_fresh_metadata_and_not_reported() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        responses: list[Any] = [PortClosedError("gone"), answer((P0, 0, 4))]
        cluster.answer(LIST, lambda node, request: responses.pop(0))
        async with updater(cluster, P0) as (positions, one):
            assert cluster.updates
            assert len(cluster.of(LIST)) == 1
            await until(lambda: all_found(positions))
            assert one.take_error() is None

    run(scenario())


@pytest.mark.spec("S0-42", "S0-49", "S0-60", "U-07")
def test_a_fatal_error_of_a_reset_is_reported_once_by_each_poll_until_it_is_gone() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, lambda node, request: answer((P0, 0, 9), (P1, 29, -1)))
        async with updater(cluster, P0, P1) as (positions, one):
            await asyncio.sleep(10)
            assert len(cluster.of(LIST)) == 1
            assert positions.position(P0) is None
            error = one.take_error()
            assert isinstance(error, TopicAuthorizationError)
            assert error.topics == ("orders",)
            assert one.take_error() is None
            await asyncio.sleep(1)
            assert isinstance(one.take_error(), TopicAuthorizationError)
            cluster.answer(LIST, lists(9))
            await until(lambda: all_found(positions))
            assert one.take_error() is None

    run(scenario())


@pytest.mark.parametrize(
    ("meanwhile", "state", "offset"),
    [
        (lambda positions: positions.seek(P0, OffsetAndMetadata(77), ON_1), FETCHING, 77),
        (lambda positions: positions.request_offset_reset(P0, EARLIEST), AWAIT_RESET, None),
        (lambda positions: positions.assign([P1]), None, None),
        (lambda positions: (positions.assign([]), positions.assign([P0])), AWAIT_RESET, None),
    ],
    ids=["seek", "other strategy", "revoked", "revoked and back"],
)
@pytest.mark.spec("S0-48")
def test_a_response_is_used_only_while_its_request_is_current(
    meanwhile: Any, state: Any, offset: Any
) -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        first: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        never: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        replies = [first, never, never]
        cluster.answer(LIST, lambda node, request: replies.pop(0))
        async with updater(cluster, P0) as (positions, _):
            meanwhile(positions)
            await settle()
            first.set_result(answer((P0, 0, 123)))
            await settle()
            found = positions.find(P0)
            assert (found.fetch_state if found else None) is state
            assert (found.position.offset if found and found.position else None) == offset

    run(scenario())


@pytest.mark.spec("S0-48", "B.5.5")
def test_the_epoch_of_a_response_makes_older_metadata_stale() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, lambda node, request: answer((P0, 0, 10), epoch=7))
        async with updater(cluster, P0) as (positions, _):
            assert positions.position(P0) == FetchPosition(10, None, LeaderAndEpoch(None, 7))
            assert "a newer leader epoch was seen" in cluster.updates
            cluster.set_leaders({("orders", 0): (2, 6)})
            await settle()
            assert cluster.metadata.leader(P0).node_id is None
            cluster.set_leaders({("orders", 0): (2, 7)})
            await settle()
            assert positions.position(P0) == FetchPosition(10, None, LeaderAndEpoch(2, 7))

    run(scenario())


@pytest.mark.spec("B.8")
def test_a_search_by_time_that_finds_nothing_is_repeated_after_the_request_timeout() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, lists(-1))
        async with updater(cluster, P0, auto_offset_reset="by_duration:PT1H", request_timeout_ms=3_000) as (
            positions,
            _,
        ):
            await asyncio.sleep(2.9)
            assert len(cluster.of(LIST)) == 1
            cluster.answer(LIST, lists(6))
            await asyncio.sleep(0.2)
            assert positions.position(P0) == FetchPosition(6, None, ON_1)

    run(scenario())
