"""The start of a new partition: its committed offset, else the reset policy; and a failed OffsetFetch."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from kclient.errors import (
    BrokerError,
    NoOffsetError,
    TopicAuthorizationError,
)
from kclient.positions.state import EARLIEST, LATEST, FetchPosition
from kclient.types import LeaderAndEpoch, OffsetAndMetadata, TopicPartition
from tests.positions.fake_cluster import run, settle
from tests.positions.updater_support import (
    AWAIT_VALIDATION,
    EPOCH,
    INITIALIZING,
    LIST,
    NOW_MS,
    ON_1,
    P0,
    P1,
    P2,
    Committed,
    all_found,
    epoch_ends,
    led_by_1,
    lists,
    timestamps,
    updater,
)
from tests.waiting import until


@pytest.mark.spec("S0-09", "S0-24", "S0-05", "S0-31")
def test_a_committed_offset_becomes_the_position_and_nothing_else_is_asked() -> None:
    async def committed(partitions: Sequence[TopicPartition]) -> Committed:
        asked.append(list(partitions))
        return {P0: OffsetAndMetadata(0), P1: OffsetAndMetadata(42)}

    async def scenario() -> None:
        cluster = led_by_1()
        async with updater(cluster, P0, P1, committed=committed) as (positions, _):
            assert positions.position(P0) == FetchPosition(0, None, ON_1)
            assert positions.position(P1) == FetchPosition(42, None, ON_1)
            assert all_found(positions)
            assert cluster.asked == []

    asked: list[list[TopicPartition]] = []
    run(scenario())
    assert asked == [[P0, P1]]


@pytest.mark.spec("S0-23", "S0-24")
def test_a_committed_epoch_updates_metadata_and_is_validated() -> None:
    async def committed(partitions: Sequence[TopicPartition]) -> Committed:
        return {P0: OffsetAndMetadata(10, 4), P1: OffsetAndMetadata(10, 7)}

    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(EPOCH, epoch_ends(4, 100))
        async with updater(cluster, P0, P1, committed=committed) as (positions, _):
            assert positions.position(P0) == FetchPosition(10, 4, ON_1)
            assert cluster.updates
            assert cluster.metadata.leader(P1).node_id is None
            assert positions.state(P1).fetch_state is AWAIT_VALIDATION
            assert [p.partition for a in cluster.of(EPOCH) for p in a.message.topics[0].partitions] == [0]

    run(scenario())


@pytest.mark.spec("S0-02", "S0-07", "S0-41", "S0-48", "E1")
def test_without_a_group_the_policy_decides_at_once() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, lists(500))
        async with updater(cluster, P0) as (positions, _):
            assert positions.position(P0) == FetchPosition(500, None, ON_1)
            assert timestamps(cluster) == [-1]

    run(scenario())


@pytest.mark.parametrize(
    ("policy", "timestamp"),
    [("earliest", -2), ("latest", -1), ("by_duration:PT1H", NOW_MS - 3_600_000)],
)
@pytest.mark.spec("S0-25", "S0-41", "S0-44", "S0-48")
def test_a_partition_without_commit_begins_where_the_policy_says(policy: str, timestamp: int) -> None:
    async def committed(partitions: Sequence[TopicPartition]) -> Committed:
        return {P0: None, P1: OffsetAndMetadata(7)}

    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, lists(33))
        async with updater(cluster, P0, P1, committed=committed, auto_offset_reset=policy) as (positions, _):
            assert positions.position(P0) == FetchPosition(33, None, ON_1)
            assert positions.position(P1) == FetchPosition(7, None, ON_1)
            assert timestamps(cluster) == [timestamp]

    run(scenario())


@pytest.mark.spec("S0-07", "S0-41")
def test_policy_none_raises_once_for_all_partitions_without_commit_paused_ones_too() -> None:
    async def committed(partitions: Sequence[TopicPartition]) -> Committed:
        return {P0: None, P1: None, P2: OffsetAndMetadata(7)}

    async def scenario() -> None:
        cluster = led_by_1()
        async with updater(cluster, P0, P1, P2, committed=committed, auto_offset_reset="none") as (
            positions,
            one,
        ):
            positions.pause(P1)
            error = one.take_error()
            assert isinstance(error, NoOffsetError)
            assert error.partitions == (P0, P1)
            assert one.take_error() is None
            assert cluster.asked == []
            await settle()
            assert one.take_error() is None  # the user may commit first
            positions.start_deferred_lookups()
            await settle()
            assert isinstance(one.take_error(), NoOffsetError)
            positions.seek(P0, OffsetAndMetadata(1), ON_1)
            positions.seek(P1, OffsetAndMetadata(1), ON_1)
            await settle()
            assert one.take_error() is None

    run(scenario())


@pytest.mark.spec("S0-06", "S0-20", "S0-26", "D-20")
def test_a_stalled_offset_fetch_is_waited_for_and_never_taken_for_no_commit() -> None:
    async def scenario() -> None:
        stalled: asyncio.Future[Committed] = asyncio.get_running_loop().create_future()
        asked: list[Sequence[TopicPartition]] = []

        def committed(partitions: Sequence[TopicPartition]) -> Any:
            asked.append(partitions)
            return stalled

        cluster = led_by_1()
        async with updater(cluster, P0, committed=committed) as (positions, _):
            for _ in range(10):
                await asyncio.sleep(1)
                positions.changed.notify()
            assert positions.state(P0).fetch_state is INITIALIZING
            assert (len(asked), cluster.asked) == (1, [])
            stalled.set_result({P0: OffsetAndMetadata(5)})
            await settle()
            assert positions.position(P0) == FetchPosition(5, None, ON_1)

    run(scenario())


@pytest.mark.spec("S0-21", "S0-29", "D-20", "D-21")
def test_a_retriable_failure_of_offset_fetch_is_retried_with_backoff_and_not_reported() -> None:
    async def scenario() -> None:
        times: list[float] = []

        async def committed(partitions: Sequence[TopicPartition]) -> Committed:
            times.append(asyncio.get_running_loop().time())
            if len(times) < 4:
                raise BrokerError("unstable", code=88, retriable=True)
            return {P0: OffsetAndMetadata(5)}

        cluster = led_by_1()
        async with updater(cluster, P0, committed=committed) as (positions, one):
            await until(lambda: all_found(positions))
            assert one.take_error() is None
            assert cluster.asked == []
            gaps = [b - a for a, b in itertools.pairwise(times)]
            assert [0.08 <= gaps[0] <= 0.12, 0.16 <= gaps[1] <= 0.24, 0.32 <= gaps[2] <= 0.48] == [True] * 3

    run(scenario())


@pytest.mark.spec("S0-28", "S0-30")
def test_a_fatal_failure_of_offset_fetch_is_reported_once_and_then_asked_again() -> None:
    async def scenario() -> None:
        failures = [TopicAuthorizationError("no", topics=("orders",))]

        async def committed(partitions: Sequence[TopicPartition]) -> Committed:
            if failures:
                raise failures.pop()
            return {P0: OffsetAndMetadata(5)}

        async with updater(led_by_1(), P0, committed=committed) as (positions, one):
            await asyncio.sleep(5)
            assert not all_found(positions)
            assert isinstance(one.take_error(), TopicAuthorizationError)
            assert one.take_error() is None
            positions.start_deferred_lookups()
            await until(lambda: all_found(positions))

    run(scenario())


@pytest.mark.spec("S0-58", "S0-24")
def test_a_seek_during_offset_fetch_wins_and_the_rest_is_asked_again() -> None:
    async def scenario() -> None:
        asked: list[tuple[list[TopicPartition], asyncio.Future[Committed]]] = []

        def committed(partitions: Sequence[TopicPartition]) -> Any:
            asked.append((list(partitions), asyncio.get_running_loop().create_future()))
            return asked[-1][1]

        async with updater(led_by_1(), P0, P1, committed=committed) as (positions, _):
            positions.seek(P0, OffsetAndMetadata(99), ON_1)
            await settle()
            assert [partitions for partitions, _ in asked] == [[P0, P1], [P1]]
            assert asked[0][1].cancelled()
            asked[1][1].set_result({P1: OffsetAndMetadata(5)})
            await settle()
            assert positions.all_consumed() == {P0: OffsetAndMetadata(99), P1: OffsetAndMetadata(5)}

    run(scenario())


@pytest.mark.spec("S0-58", "S0-24")
def test_seeks_one_after_the_other_do_not_each_ask_for_all_that_are_left() -> None:
    """As a listener does that seeks every partition, from a thread: the coordinator is asked twice at once, and after
    retry_backoff_ms for those that are left."""
    partitions = [TopicPartition("orders", n) for n in range(100)]

    async def scenario() -> None:
        asked: list[Sequence[TopicPartition]] = []

        async def committed(partitions: Sequence[TopicPartition]) -> Committed:
            asked.append(partitions)
            await asyncio.sleep(0.01 if len(asked) > 2 else 1000)
            return {tp: OffsetAndMetadata(5) for tp in partitions}

        async with updater(led_by_1(100), *partitions, committed=committed, retry_backoff_ms=100) as (
            positions,
            _,
        ):
            for tp in partitions[:50]:
                positions.seek(tp, OffsetAndMetadata(99), ON_1)
                await settle(10)
            assert asked == [partitions, partitions[1:]]
            await asyncio.sleep(0.12)
            assert asked[2:] == [partitions[50:]]
            assert {at.offset for at in positions.all_consumed().values()} == {99, 5}
            assert all_found(positions)

    run(scenario())


@pytest.mark.parametrize(
    ("meanwhile", "left"),
    [
        (lambda positions: positions.seek(P0, OffsetAndMetadata(99), ON_1), {P0: OffsetAndMetadata(99)}),
        (lambda positions: positions.assign([]), {}),
        (lambda positions: (positions.assign([]), positions.assign([P0])), {}),
    ],
    ids=["seek", "revoked", "revoked and back"],
)
@pytest.mark.spec("S0-23", "S0-24", "S0-58", "D-28")
def test_a_response_that_came_a_moment_before_is_not_used_where_things_changed(
    meanwhile: Any, left: dict[TopicPartition, OffsetAndMetadata]
) -> None:
    async def scenario() -> None:
        replies = [asyncio.get_running_loop().create_future() for _ in range(2)]
        asked: list[Sequence[TopicPartition]] = []

        def committed(partitions: Sequence[TopicPartition]) -> Any:
            asked.append(partitions)
            return replies[len(asked) - 1]

        cluster = led_by_1()
        async with updater(cluster, P0, committed=committed) as (positions, _):
            replies[0].set_result({P0: OffsetAndMetadata(5, 7)})  # read before anybody hears of what follows
            meanwhile(positions)
            await settle()
            assert positions.all_consumed() == left
            assert (
                cluster.metadata._last_seen_epochs.get(P0) == 7
            )  # with or without the partition: older metadata is stale
            assert "a newer leader epoch was seen" in cluster.updates

    run(scenario())


@pytest.mark.spec("S0-07", "S0-25")
def test_a_paused_partition_gets_its_position_like_any_other() -> None:
    async def committed(partitions: Sequence[TopicPartition]) -> Committed:
        return {P0: None, P1: OffsetAndMetadata(7)}

    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, lists(33))
        async with updater(cluster, committed=committed) as (positions, _):
            positions.assign([P0, P1])
            positions.pause(P0)
            positions.pause(P1)
            await settle()
            assert positions.all_consumed() == {P0: OffsetAndMetadata(33), P1: OffsetAndMetadata(7)}
            assert not positions.is_fetchable(P0)

    run(scenario())


@pytest.mark.spec("S0-58")
def test_a_new_generation_forgets_the_pending_offset_fetch() -> None:
    async def scenario() -> None:
        asked: list[asyncio.Future[Committed]] = []

        def committed(partitions: Sequence[TopicPartition]) -> Any:
            asked.append(asyncio.get_running_loop().create_future())
            return asked[-1]

        async with updater(led_by_1(), P0, committed=committed) as (positions, one):
            one.cancel_committed_lookup()
            await settle()
            assert len(asked) == 2
            assert asked[0].cancelled()
            asked[1].set_result({P0: OffsetAndMetadata(5)})
            await settle()
            assert positions.position(P0) == FetchPosition(5, None, ON_1)

    run(scenario())


@pytest.mark.spec("S0-13", "S0-19")
def test_only_new_partitions_are_looked_up() -> None:
    async def scenario() -> None:
        asked: list[list[TopicPartition]] = []

        async def committed(partitions: Sequence[TopicPartition]) -> Committed:
            asked.append(list(partitions))
            return {tp: OffsetAndMetadata(5) for tp in partitions}

        async with updater(led_by_1(), P0, committed=committed) as (positions, _):
            positions.advance(P0, 50, None)
            positions.assign([P0, P1])
            await settle()
            assert asked == [[P0], [P1]]
            assert positions.all_consumed()[P0] == OffsetAndMetadata(50)

    run(scenario())


@pytest.mark.spec("S0-57")
def test_a_partition_that_waits_for_a_reset_needs_no_coordinator() -> None:
    async def scenario() -> None:
        asked: list[Sequence[TopicPartition]] = []

        async def committed(partitions: Sequence[TopicPartition]) -> Committed:
            asked.append(partitions)
            return {}

        cluster = led_by_1()
        cluster.answer(LIST, lists(8))
        async with updater(cluster, committed=committed) as (positions, _):
            positions.assign([P0])
            positions.request_offset_reset(P0, LATEST)
            await settle()
            assert positions.position(P0) == FetchPosition(8, None, ON_1)
            assert asked == []

    run(scenario())


@pytest.mark.spec("S0-57")
def test_a_partition_that_waits_for_a_validation_needs_no_coordinator() -> None:
    async def scenario() -> None:
        asked: list[Sequence[TopicPartition]] = []

        async def committed(partitions: Sequence[TopicPartition]) -> Committed:
            asked.append(partitions)
            return {}

        cluster = led_by_1()
        async with updater(cluster, committed=committed) as (positions, _):
            positions.assign([P0])
            positions.seek(P0, OffsetAndMetadata(10, 7), LeaderAndEpoch(None, None))  # a leader to come
            await settle()
            assert positions.state(P0).fetch_state is AWAIT_VALIDATION
            assert asked == []

    run(scenario())


@pytest.mark.spec("S0-63", "U-28")
def test_a_response_leaves_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def committed(partitions: Sequence[TopicPartition]) -> Committed:
        return {tp: OffsetAndMetadata(5) for tp in [*partitions, TopicPartition("gone", 0)]}

    async def scenario() -> None:
        cluster = led_by_1(300)
        cluster.answer(LIST, lists(9))
        many = [TopicPartition("orders", n) for n in range(300)]
        async with updater(cluster, *many, committed=committed) as (positions, _):
            for tp in many:
                positions.request_offset_reset(tp, EARLIEST)
            await settle()
            assert all_found(positions)

    caplog.set_level(logging.INFO)
    run(scenario())
    assert {record.levelno for record in caplog.records} == {logging.INFO}
    assert [record.getMessage() for record in caplog.records] == [
        "The commits of gone-0 are not used: moved or revoked meanwhile",
        "Going on at committed offsets: orders-0 at 5, orders-1 at 5, orders-2 at 5, orders-3 at 5, orders-4 at 5 "
        "and 295 more",
        "Beginning orders-0 at 9, orders-1 at 9, orders-2 at 9, orders-3 at 9, orders-4 at 9 and 295 more",
    ]


@pytest.mark.spec("S0-04", "U-07")
def test_a_position_updater_that_begins_again_asks_again_for_what_it_had_asked() -> None:
    """A flow that ended with an error is started again by the poll that raises it."""
    asked = 0

    async def committed(partitions: object) -> Committed:
        nonlocal asked
        asked += 1
        if asked == 1:
            await asyncio.sleep(3_000)
        return {P0: OffsetAndMetadata(7)}

    async def scenario() -> None:
        async with updater(led_by_1(), P0, committed=committed) as (positions, one):
            assert asked == 1
        again = asyncio.create_task(one.run())
        await settle()
        again.cancel()
        assert positions.position(P0) == FetchPosition(7, None, ON_1)

    run(scenario())
